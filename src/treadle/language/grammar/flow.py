"""The fields of a workflow that keep its runs from running each other over (6.7)."""

from __future__ import annotations

from treadle.language.grammar.kinds import Sourced
from treadle.language.phrases import SourceValue
from treadle.language.record import Field, Record
from treadle.language.shapes import Choice, Milliseconds, Whole
from treadle.model import definition as d

_KEY = Field("key", SourceValue(), "Source on the input; each of its values is counted by itself")

CONCURRENCY = Record(
    "RunConcurrency",
    "How many runs may be live at a time.",
    (
        Field("limit", Whole(1), "Live runs, per key", required=True),
        _KEY,
        Field(
            "on_limit",
            Choice("queue", "skip", "cancel_oldest", "fail"),
            "What happens to a start beyond the limit",
            default="queue",
        ),
    ),
    d.RunConcurrency,
    unknown="BAD_VALUE",
)
RATE = Record(
    "RunRate",
    "How many runs may start in a time.",
    (
        Field("limit", Whole(1), "Starts in any window, per key", required=True),
        Field("per_ms", Milliseconds(1, code="BAD_VALUE"), "Length of the window", required=True),
        _KEY,
        Field("burst", Whole(1), "Size of a bucket, full at the beginning and refilled at the rate"),
        Field("on_limit", Choice("queue", "skip"), "What happens to a start beyond the limit", default="queue"),
    ),
    d.RunRate,
    unknown="BAD_VALUE",
)
DEBOUNCE = Record(
    "Debounce",
    "Only the last of a flurry of starts runs.",
    (
        Field("key", SourceValue(), "Source on the input: starts with the same value are one flurry", required=True),
        Field("ms", Milliseconds(1, code="BAD_VALUE"), "Time after the last start of a flurry", required=True),
        Field("max_wait_ms", Milliseconds(1, code="BAD_VALUE"), "Time after its first start, at the latest"),
    ),
    d.Debounce,
    unknown="BAD_VALUE",
)
BATCH = Record(
    "RunBatch",
    "Several starts become one run with input {items: […]}.",
    (
        Field("size", Whole(1), "Starts that make a full batch", required=True),
        Field("within_ms", Milliseconds(1, code="BAD_VALUE"), "Time after the first start of a batch", required=True),
        _KEY,
    ),
    d.RunBatch,
    unknown="BAD_VALUE",
)
PRIORITY_MIN, PRIORITY_MAX = -100, 100

FLOW = (
    Field("concurrency", CONCURRENCY, "Live runs at a time, per key"),
    Field("rate", RATE, "Starts in a time, per key"),
    Field("debounce", DEBOUNCE, "Only the last of a flurry of starts runs"),
    Field("batch", BATCH, "Several starts become one run"),
    Field("priority", Sourced(Whole(PRIORITY_MIN, PRIORITY_MAX)), "Which queued run goes first: the larger number"),
)
