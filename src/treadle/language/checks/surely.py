"""Sure writes: the paths written on every way to a node, by a forward must-analysis over sets of paths as bit masks.

Alternatives are intersected, branches that are waited for together are united:

  inbound transitions            any one of them may have been taken
  one join of an unconditional   all of its branches are in
  fork, `all_inbound`
  a join with `merge`            what was sure at the fan-out, and the merge's target

A transition that was followed proves that the paths its condition needs are there. Doubt is decided in the author's
favour: this feeds a warning (MAYBE_UNWRITTEN_READ), and a wrong warning teaches people not to read warnings.
"""

from __future__ import annotations

import re
from typing import Any

from treadle.errors import ExpressionError
from treadle.expression.conditions import compile_condition
from treadle.expression.paths import Path as DataPath
from treadle.expression.paths import parse_path
from treadle.language.checks.flow import Edge, Flow
from treadle.language.checks.groups import is_node_group, replicates, started_by
from treadle.language.checks.writes import Paths, Write
from treadle.language.phrases import without_strings
from treadle.model.definition import Transition

_CONDITIONAL = re.compile(r"\|\||\?|!(?!=)|\((?<!has\()(?<!size\()")


class Sure:
    """For each node the paths written on every way to it."""

    def __init__(self, flow: Flow, writes: list[Write], given: list[DataPath]) -> None:
        self.flow = flow
        self._bits: dict[DataPath, int] = {}
        self._own: dict[str, int] = dict.fromkeys(flow.workflow.nodes, 0)
        self._target: dict[str, int] = {}
        for write in writes:
            bit = self._bit(write.path)
            if write.merge is None:
                self._own[write.node] |= bit
            else:
                self._target[write.merge.id] = bit
        self._proven = {t.id: self._mask(proven_by(t.condition)) for _, t in flow.edges}
        self._given = self._mask(given)
        self._paths = Paths(self._bits)
        self._all = (1 << len(self._bits)) - 1
        self.before: dict[str, int] = dict.fromkeys(flow.workflow.nodes, self._all)
        self._settle()

    def _bit(self, path: DataPath) -> int:
        return self._bits.setdefault(path, 1 << len(self._bits))

    def _mask(self, paths: list[DataPath]) -> int:
        mask = 0
        for path in paths:
            mask |= self._bit(path)
        return mask

    def _settle(self) -> None:
        for ref in self.flow.workflow.start:
            self.before[ref] = self._given
        todo = list(self.flow.live)
        while todo:
            ref = todo.pop()
            for _, transition in self.flow.out[ref]:
                target = transition.to
                facts = self._entering(target)
                if facts != self.before[target]:
                    self.before[target] = facts
                    todo.append(target)

    def _entering(self, ref: str) -> int:
        edges = [edge for edge in self.flow.into[ref] if edge[1].from_ in self.flow.live]
        facts = self._given if ref in self.flow.workflow.start else self._all
        join = self.flow.workflow.nodes[ref].join
        if join is not None and join.kind != "tokens" and not (join.kind == "inbound" and join.count < len(edges)):
            return facts & self._together(edges)
        for edges_of_one in self._alternatives(edges):
            facts &= self._together(edges_of_one)
        return facts & self._all

    def _together(self, edges: list[Edge]) -> int:
        facts = 0
        for _, transition in edges:
            facts |= self._behind(transition)
        return facts

    def _alternatives(self, edges: list[Edge]) -> list[list[Edge]]:
        """Each inbound transition on its own, but the branches of an unconditional fork that are awaited, together."""
        sites: dict[str, list[Edge]] = {}
        alone: list[list[Edge]] = []
        for edge in edges:
            sync = edge[1].synchronization
            if sync is not None and sync.strategy.kind == "all" and self._unconditional(sync.sibling_group):
                sites.setdefault(sync.sibling_group, []).append(edge)
            else:
                alone.append([edge])
        return [*alone, *sites.values()]

    def _unconditional(self, name: str) -> bool:
        makers = [transition for _, transition in started_by(self.flow, name)]
        return len({maker.from_ for maker in makers}) == 1 and all(
            maker.condition is None
            and maker.trigger is None
            and maker.on == "success"
            and maker.priority == makers[0].priority
            and (is_node_group(self.flow, name) or not replicates(maker))
            for maker in makers
        )

    def leaving(self, transition: Transition) -> int:
        """The paths that are sure when the transition's condition is evaluated; its node's own writes count only after
        success."""
        succeeded = transition.on == "success" and transition.trigger is None
        return self.before[transition.from_] | (self._own[transition.from_] if succeeded else 0)

    def _behind(self, transition: Transition) -> int:
        facts = self.leaving(transition) | self._proven[transition.id]
        sync = transition.synchronization
        if sync is None or sync.merge is None:
            return facts
        # The overlay is dropped: only what was sure at the fan-out remains sure.
        for _, maker in started_by(self.flow, sync.sibling_group):
            facts &= self.leaving(maker) | self._proven[maker.id]
        return facts | self._target.get(transition.id, 0)

    def covers(self, facts: int, path: DataPath) -> bool:
        """Whether some fact is about the path, a part of it or something it is part of."""
        return any(facts & self._bits[fact] for fact in self._paths.touching(path))


def proven_by(condition: Any) -> list[DataPath]:
    """The paths that must have been there for a condition to hold: a missing field never matches (1.10)."""
    if not isinstance(condition, dict):
        return []
    kind = condition.get("type")
    if kind == "and":
        return [path for part in condition["conditions"] for path in proven_by(part)]
    if kind == "cel":
        return _proven_by_cel(condition)
    operands = (condition.get("field"), *(_field(condition.get(side)) for side in ("left", "right")))
    if kind in ("exists", "in_set", "array_length", "comparison"):
        return [parse_path(path) for path in operands if path is not None]
    return []


def _field(operand: Any) -> str | None:
    return operand.get("field") if isinstance(operand, dict) else None


def _proven_by_cel(condition: dict[str, Any]) -> list[DataPath]:
    if _CONDITIONAL.search(without_strings(condition["expr"])):
        return []
    try:
        return list(compile_condition(condition, _any_name(condition["expr"])).reads)
    except ExpressionError:
        return []


def _any_name(expr: str) -> list[str]:
    return re.findall(r"[A-Za-z_]\w*", without_strings(expr))
