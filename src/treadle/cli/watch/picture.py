"""The picture of a run: one line per node with its mark, the bar of a fan-out, and the reason of a wait.

Owns the words and marks; lines on a pipe use the same. Must not read stores or clocks: it gets an `Overview` and the
time as arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from treadle.cli.screen.output import duration, plain, shortened
from treadle.cli.watch.overview import Overview
from treadle.cli.watch.tallies import PENDING, RUNNING, WAITING, LiveVisit, NodeTally
from treadle.model.states import RunStatus, Waiting

if TYPE_CHECKING:
    from rich.console import Group
    from rich.text import Text

    from treadle.model.errors import Error

NODES_MAX = 30
"""Lines of a picture: of a larger graph, live and failed nodes are shown first, and the rest is counted."""
NAME_MAX = 40
"""Characters of a node's name on a terminal; a pipe gets all of it."""
BAR = 24
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"

STATUS_STYLES = {
    RunStatus.COMPLETED: "bold green",
    RunStatus.RUNNING: "bold cyan",
    RunStatus.CREATED: "dim",
    RunStatus.PAUSED: "bold yellow",
    RunStatus.COMPENSATING: "bold yellow",
    RunStatus.CANCELLED: "bold yellow",
}
FAILED_STYLE = "bold red"


def mark(node: NodeTally, tick: int = 0) -> tuple[str, str]:
    """A node's mark and its colour: running before waiting, failed, to come and done."""
    if node.counted(RUNNING):
        return SPINNER[tick % len(SPINNER)], "bold cyan"
    if any(visit.waiting is not Waiting.SIBLINGS for visit in node.live.values() if visit.state == WAITING):
        return "…", "yellow"
    if node.failed and not node.live:
        return ("!", "yellow") if node.done else ("✗", FAILED_STYLE)
    if node.live:
        return "·", "cyan"
    if node.done:
        return "✓", "green"
    return ("–", "dim") if node.cancelled else ("·", "dim")


def reason(visit: LiveVisit, now: int, turns: Mapping[str, str] | None = None, *, paused: bool = False) -> str:
    """What a visit waits for, and until when. `turns`: queue → why its work does not begin. `paused`: the run's timers
    stand still."""
    left = f", due in {duration(visit.until - now)}" if visit.until is not None and visit.until > now else ""
    detail = visit.detail if isinstance(visit.detail, dict) else {}
    if visit.waiting is Waiting.HUMAN:
        who = detail.get("claimed_by") or detail.get("assigned_to")
        title = (
            f": “{visit.title}”" if visit.title else ""
        )  # last, where a line is cut: the user needs the number of the visit
        return f"waits for a person (visit {visit.token}{f', {who}' if who else ''}{left}){title}"
    if visit.waiting is Waiting.SIGNAL:
        key = f" with key {shortened(detail['key'], 30)}" if detail.get("key") is not None else ""
        return f"waits for signal {detail.get('signal', '?')!r}{key}{left}"
    if visit.waiting is Waiting.TIMER:
        again = f"tries again (attempt {detail['retry']})" if "retry" in detail else "wakes up"
        when = f" in {duration(visit.until - now)}" if visit.until is not None else ""
        when = " some time after the run goes on: it is paused" if paused else when
        because = f" after {visit.error.kind}: {shortened(visit.error.message, 60)}" if visit.error is not None else ""
        return f"{again}{when}{because}"
    if visit.waiting is Waiting.SUBWORKFLOW:
        return f"waits for run {detail.get('child', '?')}"
    if visit.waiting is Waiting.QUEUE:
        queue = detail.get("queue") or ""
        why = f": {turns[queue]}" if turns and queue in turns else ""
        return (f"waits in queue {queue!r}" if queue else "waits for its turn") + why
    if visit.waiting is Waiting.MUTEX:
        return f"waits for mutex {detail.get('mutex', '?')!r}"
    if visit.waiting is Waiting.EXTERNAL:
        return f"waits for the callback of its webhook{left}"
    if visit.waiting is Waiting.TRIGGER:
        return f"waits for {', '.join(detail.get('triggers', ())) or 'a trigger'}"
    return f"waits for {visit.waiting.value if visit.waiting else 'its turn'}{left}"


def remark(view: Overview, node: NodeTally, now: int) -> str:
    """The words of a node's line."""
    parts = []
    running, pending = node.counted(RUNNING), node.counted(PENDING)
    expected = view.expected(node)
    if running:
        since = min(visit.since for visit in node.live.values() if visit.state == RUNNING)
        parts.append((f"{running} running" if expected else "running") + f" {duration(now - since)}")
    parts += _waits(node, now, view.turns, paused=view.status is RunStatus.PAUSED)
    if pending and not running:
        parts.append(f"{pending} to come" if pending > 1 else "next")
    if node.failed:
        parts.append(f"{node.failed} failed" if expected or node.failed > 1 else "failed")
    if node.error is not None and node.failed:
        parts.append(f"{node.error.kind}: {shortened(node.error.message, 60)}")
    if node.cancelled:
        parts.append(f"{node.cancelled} cancelled" if node.cancelled > 1 else "cancelled")
    if node.retries and not node.live:
        parts.append(f"{node.retries} retried" if node.retries > 1 else "after a retry")
    for target, arrived, needed in view.joins():
        if target == node.ref and not node.live:
            parts.append(f"waits for siblings: {arrived}/{needed}")
    if node.done > 1 and expected is None:
        parts.append(f"{node.done} times")
    return " · ".join(parts)


def _waits(node: NodeTally, now: int, turns: Mapping[str, str], *, paused: bool) -> list[str]:
    """The first visit's reason in full; the others are counted."""
    waiting = [v for v in node.live.values() if v.state == WAITING and v.waiting is not Waiting.SIBLINGS]
    if not waiting:
        return []
    many = len(waiting)
    if many > 1 and all(visit.waiting is Waiting.QUEUE for visit in waiting):
        return [f"{many} {reason(waiting[0], now, turns)}".replace("waits", "wait").replace("its turn", "their turn")]
    more = f" and {many - 1} more" if many > 1 else ""
    return [reason(waiting[0], now, turns, paused=paused) + more]


def elapsed(view: Overview, now: int) -> str:
    began = view.started.at if view.started is not None else now
    return duration((view.ended_at if view.ended_at is not None else now) - began)


def picture(view: Overview, now: int, tick: int = 0, title: str | None = None, rows_max: int = NODES_MAX) -> Group:
    """The whole run, as rich draws it."""
    from rich.console import Group
    from rich.text import Text

    shown = _chosen(view, rows_max)
    bars = [_bar(view, node) for node in shown]
    names = max((len(_name(node)) for node in shown), default=0)
    widest = max((len(bar) for bar in bars), default=0)
    lines = [_line(view, node, bar, (names, widest), now, tick) for node, bar in zip(shown, bars, strict=True)]
    hidden = len(view.nodes) - len(shown)
    if hidden:
        lines.append(Text(f"   … and {hidden} more nodes", style="dim"))
    return Group(headline(view, now, title), *lines)


def _line(view: Overview, node: NodeTally, bar: Text, widths: tuple[int, int], now: int, tick: int) -> Text:
    """The line of one node. Rich's table would cut all columns of a narrow terminal, not just the words."""
    from rich.text import Text

    sign, style = mark(node, tick)
    name = _name(node)
    line = Text.assemble(
        (f" {sign} ", style), (name, "" if node.created else "dim"), " " * (widths[0] - len(name) + 2), bar
    )
    words = plain(remark(view, node, now))
    if widths[1] and words:
        line.append(" " * (widths[1] - len(bar) + 2))
    line.append(words, style="red" if node.failed and not node.live else "dim")
    line.rstrip()
    line.no_wrap, line.overflow = True, "ellipsis"
    return line


def _name(node: NodeTally) -> str:
    return plain(shortened(node.ref, NAME_MAX))


def headline(view: Overview, now: int, title: str | None = None) -> Text:
    """Workflow, status, time, run."""
    from rich.text import Text

    name = title or (f"{view.started.workflow} v{view.version}" if view.started is not None else "")
    status = view.status.value.replace("_", " ")
    line = Text.assemble(
        (plain(name), "bold"), "  ", (status, STATUS_STYLES.get(view.status, FAILED_STYLE)), f"  {elapsed(view, now)}"
    )
    if view.run is not None:
        line.append(f"  {plain(view.run)}", style="dim")
    if view.note:
        line.append(f"  {plain(view.note)}", style="yellow")
    line.no_wrap, line.overflow = True, "ellipsis"
    return line


def _bar(view: Overview, node: NodeTally) -> Text:
    """`━━━━━━━───── 4/7`: green is done, red has failed."""
    from rich.text import Text

    total = view.expected(node)
    if not total:
        return Text("")
    held = sum(1 for visit in node.live.values() if visit.waiting is Waiting.SIBLINGS)
    done, failed = node.done + held, node.failed
    green = BAR * done // total
    red = max(BAR * (done + failed) // total - green, 1 if failed and green < BAR else 0)
    rest = max(BAR - green - red, 0)
    return Text.assemble(("━" * green, "green"), ("━" * red, "red"), ("─" * rest, "dim"), f" {done + failed}/{total}")


def _chosen(view: Overview, rows_max: int) -> list[NodeTally]:
    """All nodes if there is room; else the live ones first, then the failed ones, then the latest."""
    nodes = list(view.nodes.values())
    if len(nodes) <= rows_max:
        return nodes
    ranked = sorted(nodes, key=lambda node: (not node.live, not node.failed, -(node.last or 0)))
    keep = {node.ref for node in ranked[:rows_max]}
    return [node for node in nodes if node.ref in keep]


def ending(view: Overview) -> Any:
    """The last line of a run: its status, and where and why it failed."""
    from rich.text import Text

    style = STATUS_STYLES.get(view.status, FAILED_STYLE)
    line = Text(f"{view.status.value.replace('_', ' ')}", style=style)
    if view.error is not None:
        line.append(f"  {plain(error_line(view.error))}", style="red")
    elif view.note:
        line.append(f"  {plain(view.note)}")
    if undone := not_undone(view):
        line.append(f"  (not undone: {plain(undone)})", style="yellow")
    if view.warnings:
        line.append(f"  ({view.warnings} warnings: treadle runs history {view.run} --warnings)", style="yellow")
    return line


def error_line(error: Error | None) -> str:
    """`TASK_FAILED at judge (root.brief.2), attempt 3: …`"""
    if error is None:
        return ""
    place = f" at {error.node}" if error.node else ""
    path = f" ({error.path})" if error.path and error.path != "root" else ""
    tries = f", attempt {error.attempts}" if error.attempts > 1 else ""
    return f"{error.kind}{place}{path}{tries}: {error.message}"


def not_undone(view: Overview) -> str:
    """Work that stays although its run was undone: skipped by an operator, or not undone because that failed."""
    parts = [f"{node}, skipped by {by}" for node, by in view.skipped.values()]
    if view.undo_error is not None:
        remedy = f"treadle runs compensations {view.run} (--retry, --skip)"
        parts.append(f"{error_line(view.undo_error)}; {remedy}")
    return " · ".join(parts)
