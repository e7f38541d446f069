"""Falsified histories of several runs of a workflow that limits its starts (6.7), one for every rule about them."""

from __future__ import annotations

from typing import Any

from tests.driving import TASK, graph_of
from tests.sim.forgeries import AT, Forged
from tests.sim.watching import Watching
from tests.simulator.audit.starts import Starts
from treadle.model import commands as c
from treadle.model import events as e
from treadle.model.ids import RunId

Json = Any


class Several:
    """Runs of one workflow, each as far as its commits say; the last one's record has the complaints."""

    def __init__(self, **flow: Json) -> None:
        self.graph = graph_of({"nodes": {"a": TASK}, **flow})
        self.starts = Starts()
        self.watched: dict[str, Watching] = {}

    def show(self, run: str, *events: e.Event, cause: c.Command | None = None) -> Several:
        watched = self.watched.get(run)
        if watched is None:
            watched = self.watched[run] = Watching(self.graph)
            watched.record.run = RunId(run)
        watched.show(*events, cause=cause)
        self.starts.committed(watched.record, list(events))
        return self

    def start(self, run: str, at: int = AT, input: Json = None) -> Several:
        return self.show(run, e.RunStarted(0, at, RunId(run), "driven", 1, "", input or {}))

    def queue(self, run: str, at: int = AT, why: str = "concurrency", **fields: Json) -> Several:
        given = fields.pop("input", {})
        return self.show(run, e.RunQueued(0, at, RunId(run), "driven", 1, "", given, why=why, **fields))

    def of(self, run: str) -> Watching:
        return self.watched[run]

    def lost(self) -> Watching:
        records = {RunId(name): watched.record for name, watched in self.watched.items()}
        self.starts.conclude([(RunId("r1"), {"id": 1}, RunId("r1"))], records)
        return self.of("r1")


ONE_LIVE = {"concurrency": {"limit": 1}}
BATCH = {"batch": {"size": 3, "within_ms": 100}}
FLURRY = {"debounce": {"key": "$.input.k", "ms": 100}}


def passed_over() -> Watching:
    """r1 waits first, and others start before it again and again."""
    return overtaken({}, concurrency={"limit": 9})


def overtaken(others: Json, **flow: Json) -> Watching:
    """r1 waits first, and several with this input start before it."""
    several = Several(**flow).queue("r1", input={"k": 1})
    for number in range(2, 6):
        several.queue(f"r{number}", input=others).start(f"r{number}", input={"items": [others]})
    return several.of("r5")


STARTS = [
    Forged("concurrency", "starts beside ['r1']", lambda: Several(**ONE_LIVE).start("r1").start("r2").of("r2")),
    Forged(
        "rate",
        "limit 1 in 100 ms",
        lambda: Several(rate={"limit": 1, "per_ms": 100}).start("r1", 1_000).start("r2", 1_099).of("r2"),
    ),
    Forged(
        "rate",
        "the bucket has 1.99",
        lambda: Several(rate={"limit": 1, "per_ms": 100, "burst": 1}).start("r1", 1_000).start("r2", 1_099).of("r2"),
    ),
    Forged("turn", "has waited longer", passed_over),
    Forged(
        "flurry",
        "another of its flurry came after it",
        lambda: (
            Several(**FLURRY)
            .queue("r1", 1_000, "debounce", due=1_100)
            .queue("r2", 1_050, "debounce", due=1_150)
            .start("r1", 1_100)
            .of("r1")
        ),
    ),
    Forged(
        "flurry",
        "before its time",
        lambda: Several(**FLURRY).queue("r1", 1_000, "debounce", due=1_100).start("r1", 1_050).of("r1"),
    ),
    Forged(
        "flurry",
        "nobody came after it",
        lambda: (
            Several(**FLURRY)
            .queue("r1", 1_000, "debounce", due=1_100)
            .show("r1", e.RunCancelled(0, AT, "debounce", None))
            .of("r1")
        ),
    ),
    Forged(
        "batch",
        "asked for were [{'id': 1}]",
        lambda: (
            Several(**BATCH)
            .queue("r1", 1_000, "batch", due=1_100, input={"id": 1})
            .start("r1", 1_100, {"items": [{"id": 2}]})
            .of("r1")
        ),
    ),
    Forged(
        "batch",
        "has more than 3",
        lambda: Several(**BATCH).start("r1", 1_000, {"items": [1, 2, 3, 4]}).of("r1"),
    ),
    Forged(
        "batch",
        "items before its time",
        lambda: (
            Several(**BATCH)
            .queue("r1", 1_000, "batch", due=1_100, input={"id": 1})
            .start("r1", 1_050, {"items": [{"id": 1}]})
            .of("r1")
        ),
    ),
    Forged("batch", "is in []", lambda: Several(**BATCH).start("r1", 1_000, {"items": [{"id": 2}]}).lost()),
]
