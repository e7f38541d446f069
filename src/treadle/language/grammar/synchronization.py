"""Synchronization: joins on a sibling group, and how branches' results become one value (1.7)."""

from __future__ import annotations

from typing import Any

from treadle.language.compounds import Adapt, Forms
from treadle.language.grammar.retry import TIMEOUT
from treadle.language.phrases import CelText, PathText, TargetPath
from treadle.language.reading import Place, Reading
from treadle.language.record import Field, OneKey, Record
from treadle.language.shapes import BAD, Choice, Flag, Json, Text, Whole
from treadle.model import definition as d

GROUP = Text("a sibling group", longest=500)


def _strategy_from(value: Any) -> d.Strategy:
    if isinstance(value, str):
        return d.Strategy(kind=value)  # type: ignore[arg-type]
    kind, argument = value
    return d.Strategy(kind="cel", expr=argument) if kind == "cel" else d.Strategy(kind=kind, count=argument)


def _strategy_back(strategy: d.Strategy) -> Any:
    if strategy.kind in ("all", "any"):
        return strategy.kind
    return (strategy.kind, strategy.expr if strategy.kind == "cel" else strategy.count)


_QUORUM = OneKey(
    {
        "m_of_n": (Whole(1), "So many successful arrivals"),
        "percent": (Whole(1, 100), "So many percent of the branches, rounded up"),
        "cel": (CelText(), "An expression over arrived, succeeded, failed, live, total, results and state"),
    },
)
STRATEGY = Adapt(
    Forms(
        "`all`, `any`, {m_of_n: M}, {percent: P} or {cel: …}",
        text=Choice("all", "any"),
        map=_QUORUM,
        writes=lambda value: _QUORUM if isinstance(value, tuple) else Choice("all", "any"),
    ),
    _strategy_from,
    _strategy_back,
)


class MergeSource(PathText):
    """`_branch.output[.path]`; a canvas collector reads the arriving visit's own output, `_visit.output`."""

    wants = "a path in the branch, such as `_branch.output.vote`"

    def read(self, value: Json, at: Place, reading: Reading) -> Any:
        path = super().read(value, at, reading)
        if path is BAD or path.startswith(("$._branch", "$._visit.output")):
            return path
        return self.wrong(value, at, reading, f"did you mean `_branch.output.{path.removeprefix('$.')}`?")


_MERGE = Record(
    "Merge",
    "How the branches' results become one value.",
    (
        Field("source", MergeSource(), "What each branch contributes: `_branch.output[.path]`", required=True),
        Field(
            "target",
            TargetPath("state", "output", "_visit"),
            "Where the merged value is written",
            required=True,
        ),
        Field(
            "strategy",
            Choice(
                *("append", "concat", "merge_object", "keyed_by_branch", "last_wins", "vote"),
                also={"collect": "append"},
            ),
            "How the contributions are put together",
            default="append",
        ),
        Field("streaming", Flag(), "Write the target as each branch arrives", default=False),
    ),
    d.Merge,
)

SYNCHRONIZATION = Record(
    "Synchronization",
    "A join: wait for the branches of a sibling group.",
    (
        Field(
            "sibling_group",
            GROUP,
            "Whom to wait for: a declared group, a transition id, or a node ref (all that a visit started)",
            also=("joins_transition",),
            required=True,
        ),
        Field("strategy", STRATEGY, "When the join fires", default="all"),
        Field("timeout_ms", TIMEOUT, "Longest wait, from the first arrival"),
        Field(
            "on_timeout",
            Choice("fail", "proceed_with_available", also={"proceed": "proceed_with_available"}),
            "What the timeout does",
            default="fail",
        ),
        Field("min_success_count", Whole(0), "Below so many successful branches the fan-in fails"),
        Field(
            "on_branch_failure",
            Choice("include_errors", "exclude", "fail"),
            "What a failed branch contributes",
            default="include_errors",
        ),
        Field(
            "on_early_complete",
            Choice("abandon", "cancel", "pass_through", "block"),
            "What becomes of the rest when the join fires before all are in",
            default="abandon",
        ),
        Field("merge", _MERGE, "How the branches' results become one value"),
    ),
    d.Synchronization,
    hints={
        "wait_for": "that is `strategy`: all, any, {m_of_n: M}, {percent: P} or {cel: …}",
        "on_completion": "that is `on_early_complete: cancel`",
    },
)
