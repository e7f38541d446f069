"""The labels of nodes and edges, the same in every kind of drawing.

Owns the words and their lengths. Labels contain authors' text, unescaped: the drawing module must escape it.
"""

from __future__ import annotations

from typing import Any, Literal

from treadle.graph.execution_graph import ExecutionGraph, GraphNode, GraphTransition, JoinSite
from treadle.model import definition as d

Kind = Literal["pass", "task", "human", "waits", "calls", "native"]
TEXT_MAX = 34
"""Characters of one line: without a limit, one long condition would decide the width of the picture."""

QUEUE_MAX = 16
"""Characters of a queue's name, beside a node's action."""

_WAITS = frozenset({"wait", "signal", "webhook"})


WHOLE = 1 << 30
"""No limit on the characters of a line: for a pipe, where nothing is too wide."""


def clip(text: str, most: int = TEXT_MAX) -> str:
    """The text as one line, cut to `most` characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def duration(ms: float) -> str:
    """`90000` → `1 min 30 s`: the two largest units."""
    if ms < 1000:
        return f"{ms:g} ms"
    parts, rest = [], int(ms)
    for name, size in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000)):
        if rest >= size:
            parts.append(f"{rest // size} {name}")
            rest %= size
    if rest and len(parts) == 1 and ms < 60_000:
        return f"{ms / 1000:g} s"
    return " ".join(parts[:2])


def kind_of(node: GraphNode) -> Kind:
    """The shape of a node, by its kind of action."""
    if node.task is None:
        return "pass"
    if node.suspends == "human":
        return "human"
    if node.suspends == "workflow_call":
        return "calls"
    if node.suspends in _WAITS:
        return "waits"
    return "native" if node.native else "task"


def describe(node: GraphNode, most: int = TEXT_MAX) -> str:
    """A node's action and its queue in a few words; empty for a node without an action."""
    if node.task is None:
        return ""
    queue = (
        f", queue {clip(node.definition.queue, max(QUEUE_MAX, most - TEXT_MAX))}"
        if node.definition.queue is not None
        else ""
    )
    if len(node.task.steps) > 1:
        return clip(" · ".join(step.action.kind for step in node.task.steps), most) + queue
    action = node.task.steps[0].action
    said = _said(action.kind, action.config)
    return clip(f"{action.kind} {said}" if said else action.kind, most) + queue


_TELLING = {
    "python": ("function",),
    "http": ("method", "url"),
    "llm": ("model", "profile"),
    "mcp": ("tool",),
    "human": ("title",),
    "workflow_call": ("workflow",),
    "signal": ("name",),
    "send": ("signal",),
    "emit": ("type",),
    "artifact_write": ("name",),
    "artifact_read": ("name",),
    "cancel_group": ("group",),
    "add_siblings": ("group",),
    "close_group": ("group",),
}


def _said(kind: str, config: dict[str, Any]) -> str:
    if kind == "wait" and isinstance(config.get("ms"), int):
        return duration(config["ms"])
    words = [str(config[key]) for key in _TELLING.get(kind, ()) if isinstance(config.get(key), str)]
    return " ".join(words[:2]).rpartition(":")[2] if kind == "python" else " ".join(words[:2])


def badges(node: GraphNode) -> list[str]:
    """Marks in a node's corner: retries, undoing, a critical section, ending the run."""
    found = []
    if (retry := node.definition.retry) is not None and retry.max_attempts > 1:
        found.append(f"↻{retry.max_attempts}")
    if node.definition.compensate is not None:
        found.append("↩")
    if node.definition.mutex is not None:
        found.append("⊘")
    if node.definition.terminates is not None:
        found.append("■")
    return found


def joins(node: GraphNode, graph: ExecutionGraph, most: int = TEXT_MAX) -> list[str]:
    """The tokens that a node waits for before it is visited."""
    found = [clip(site_words(site), most) for site in graph.sites if site.target is node]
    return found + ([_node_join(node.definition.join)] if node.definition.join is not None else [])


def site_words(site: JoinSite) -> str:
    """How many branches of which group a join waits for."""
    strategy, group = site.sync.strategy, site.sync.sibling_group
    if strategy.kind == "m_of_n":
        return f"{strategy.count} of {group}"
    if strategy.kind == "percent":
        return f"{strategy.count} % of {group}"
    if strategy.kind == "cel":
        return f"{strategy.expr} of {group}"
    return f"{'first' if strategy.kind == 'any' else 'all'} of {group}"


def _node_join(join: d.NodeJoin) -> str:
    if join.kind == "inbound":
        return f"{join.count} inbound"
    return f"every {join.count} tokens" if join.kind == "tokens" else join.kind.replace("_", " ")


def edge_words(t: GraphTransition, most: int = TEXT_MAX) -> list[str]:
    """The lines of an edge's label, most telling first; at most three."""
    found = [_many(t)] if t.replicates else []
    definition = t.definition
    if definition.trigger is not None:
        found.append(_trigger(definition.trigger, t))
    if definition.on != "success":
        found.append(f"on {definition.on}")
    if t.condition is not None:
        found.append(t.condition.text)
    if definition.loop_max_iterations is not None:
        found.append(f"at most {definition.loop_max_iterations}×")
    if len({other.definition.priority for tier in t.source.success for other in tier}) > 1:
        found.append(f"priority {definition.priority:g}")
    return [clip(line, most) for line in found[:3]]


def _many(t: GraphTransition) -> str:
    definition = t.definition
    if definition.foreach is not None:
        item = definition.foreach.item_var
        where = definition.foreach.collection.removeprefix("$.")
        return f"each {item} in {where}" if item else f"each of {where}"
    if definition.spawn_count is not None:
        return f"× {definition.spawn_count}"
    source = definition.spawn_from
    shown = next(iter(source.values())) if isinstance(source, dict) and source else source
    return f"× {str(shown).removeprefix('$.')}"


def _trigger(trigger: d.Trigger, t: GraphTransition) -> str:
    if trigger.signal is not None:
        return f"signal {trigger.signal}"
    if trigger.after_ms is not None:
        return f"after {duration(trigger.after_ms)}"
    return f"when {t.trigger_when.text}" if t.trigger_when is not None else "when …"
