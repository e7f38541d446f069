"""One falsified history for every rule about an operator's changes, forks, other versions and budgets."""

from __future__ import annotations

from typing import Any

from tests.driving import TASK, graph_of, versions_of
from tests.sim.forgeries import AT, GROUP, ONE, TWO, Forged, chain, joined, one_arrived
from tests.sim.watching import Forgery, Watching, changed, watching, without
from tests.simulator.audit import forking
from tests.simulator.audit.auditor import inspect
from treadle.model import commands as c
from treadle.model import effects as x
from treadle.model import events as e
from treadle.model.errors import Error
from treadle.model.ids import RunId

Json = Any
BOOM = Error("BOOM", "boom")
FORK = RunId("fork-1")
WAIT = {"action": {"kind": "wait", "ms": 50}}


def paused() -> Watching:
    return chain().do(c.PauseRun())


def failed() -> Watching:
    return chain().do(c.FailAttempt(ONE, 1, BOOM))


def written(**fields: Json) -> e.ContextUpdated:
    return e.ContextUpdated(0, AT, [(("state", "x"), 1)], by="operator", **fields)


EDIT = c.EditRun({"state.x": 1})


def dispatched(given: Json) -> Watching:
    watched = paused().do(c.PauseRun())
    watched.record.visits[1].given = ({"x": 1},)
    watched.record.visits[1].state, watched.record.visits[1].attempt = "pending", 0
    return watched.show(e.TokenDispatched(0, AT, ONE, 1, given))


CHANGED = [
    Forged("edited", "while the run is running", lambda: chain().show(written(), cause=EDIT)),
    Forged("edited", "is written by None", lambda: paused().show(written())),
    Forged("edited", "meant is None", lambda: paused().show(written(scope=(GROUP, 0)), cause=EDIT)),
    Forged("skipped", "is skipped by None", lambda: chain().show(e.TokenSkipped(0, AT, ONE, {}, "ann"))),
    Forged(
        "skipped",
        "while the run is completed",
        lambda: chain().finish(1).finish(2).show(e.TokenSkipped(0, AT, ONE, {}, "ann"), cause=c.SkipToken(ONE, {})),
    ),
    Forged(
        "skipped",
        "has brought its result",
        lambda: one_arrived().show(e.TokenSkipped(0, AT, TWO, {}, "ann"), cause=c.SkipToken(TWO, {})),
    ),
    Forged(
        "results",
        "not the operator's output",
        lambda: chain().do(c.SkipToken(ONE, {"v": 1}), changed(e.TokenCompleted, output={"v": 2})),
    ),
    Forged("jumped", "jumps to b by None", lambda: paused().show(e.TokenJumped(0, AT, ONE, "b", "ann"))),
    Forged("jumped", "and is executing", lambda: paused().do(c.JumpToken(ONE, "b"), without(e.TokenCancelled))),
    Forged("jumped", "is not at [('b'", lambda: failed().do(c.JumpToken(ONE, "b"), changed(e.TokenCreated, node="a"))),
    Forged("input", "is given 1 by None", lambda: paused().show(e.TokenInputSet(0, AT, ONE, 1, "ann"))),
    Forged(
        "input",
        "while the run is running",
        lambda: chain().show(e.TokenInputSet(0, AT, ONE, 1, "ann"), cause=c.SetInput(ONE, 1)),
    ),
    Forged("input", "set was {'x': 1}", lambda: dispatched({"x": 2})),
]


# Forks


def forked(watched: Watching, forge: Forgery | None = None, **asked: Json) -> Watching:
    """A fork of this run, whose own first commit is falsified."""
    driven, decision = watched.driven.fork(FORK, **asked)
    place = forking.place(decision.events) or 0
    made = Watching(watched.driven.graph)
    made.driven, made.record = driven, watched.record
    made.record.is_fork, made.record.store_timers, made.record.run = True, {}, FORK
    events, effects = list(decision.events[place:]), list(decision.effects)
    if forge is not None:
        forge(events, effects)
    command = c.ForkRun(FORK, origin=RunId("run-1"), **asked)
    inspect(made.record, events, effects, command, driven.now)
    return made


def inherits(point: int = 4, count: int = 4, lie: e.Event | None = None) -> Watching:
    """A past that is held against that of its origin, in which the first decision ends with event 4."""
    watched = chain()
    origin = list(watched.driven.history)
    past = [*origin[: count - 1], lie] if lie is not None else origin[:count]
    forking.check_past(watched.record, past, e.RunForked(0, AT, RunId("run-1"), point, "ann"), origin, [4])
    return watched


def started_otherwise() -> Watching:
    watched = chain()
    origin = list(watched.driven.history)
    first = origin[0]
    assert isinstance(first, e.RunStarted)
    other = e.RunStarted(1, AT, FORK, first.workflow, 7, first.hash, first.input)
    forking.check_past(watched.record, [other, *origin[1:]], e.RunForked(0, AT, RunId("run-1"), 4, "ann"), origin, [4])
    return watched


def asking(effect: x.Effect) -> Watching:
    watched = forked(chain())
    inspect(watched.record, [], [effect], None, watched.driven.now)
    return watched


FORKED = [
    Forged("fork", "is not the end of a decision", lambda: inherits(3, 3)),
    Forged("fork", "3 events are inherited up to 4", lambda: inherits(4, 3)),
    Forged("fork", "of its start are not those", started_otherwise),
    Forged("fork", "inherits", lambda: inherits(lie=e.SignalTaken(4, AT, 1, ONE))),
    Forged("fork", "is made by None", lambda: chain().show(e.RunForked(0, AT, RunId("other"), 1, "ann"))),
    Forged("fork", "which the fork has not started", lambda: asking(x.CancelChild(RunId("run-1.1")))),
    Forged("fork", "a fork has no parent", lambda: asking(x.NotifyParent(RunId("up"), ONE, "completed"))),
    Forged("attempts", "skips to 2", lambda: forked(chain(), changed(e.TokenDispatched, attempt=2))),
    Forged(
        "lifecycle",
        "is completed: token.dispatched",
        lambda: forked(chain().finish(1)).show(e.TokenDispatched(0, AT, ONE, 1, {})),
    ),
    Forged(
        "timers",
        "the store keeps",
        lambda: forked(watching({"nodes": {"a": WAIT}}), changed(e.RunForked, shift_ms=7)),
    ),
]


# Other versions


def versions(after: dict[str, Json] | None = None) -> Watching:
    """a → b, and a version in which a is called x and b waits."""
    first = {"nodes": {"a": TASK, "b": TASK}, "transitions": [{"id": "t", "from": "a", "to": "b"}]}
    second = after or {"nodes": {"x": TASK, "b": TASK}, "transitions": [{"id": "t", "from": "x", "to": "b"}]}
    watched = Watching(versions_of(graph_of(first), graph_of(second)))
    return watched.do(c.StartRun(run=watched.driven.state.run))


def migrated(**fields: Json) -> e.RunMigrated:
    return e.RunMigrated(0, AT, **{"from_": 1, "to": 2, "nodes": {"a": "x"}, **fields})


MIGRATE = c.MigrateRun(2, {"a": "x"})


def moved_join(**gone: Json) -> Watching:
    """Two branches, of which one has arrived at z; another version has not what is named."""
    before, after = joined(), joined()
    if "sync" in gone:
        after["transitions"][1].pop("synchronization")
    if "fan_out" in gone:
        after["transitions"][0]["id"] = "other"
        after["transitions"][1]["synchronization"]["sibling_group"] = "other"
    watched = Watching(versions_of(graph_of(before), graph_of(after)))
    watched.do(c.StartRun(run=watched.driven.state.run)).finish(2)
    return watched.show(migrated(nodes={}), cause=c.MigrateRun(2))


def other_kind() -> Watching:
    first, second = {"nodes": {"a": WAIT}}, {"nodes": {"a": {"action": {"kind": "human"}}}}
    watched = Watching(versions_of(graph_of(first), graph_of(second)))
    watched.do(c.StartRun(run=watched.driven.state.run))
    watched.record.visits[1].reason = "signal"
    return watched.show(migrated(nodes={}), cause=c.MigrateRun(2))


MIGRATED = [
    Forged("migrated", "to 2 by None", lambda: versions().show(migrated())),
    Forged("migrated", "to 2 by ForkRun", lambda: versions().show(migrated(), cause=c.ForkRun(FORK))),
    Forged(
        "migrated",
        "that is completed",
        lambda: versions().finish(1).finish(2).show(migrated(), cause=MIGRATE),
    ),
    Forged("migrated", "it has version 1", lambda: versions().show(migrated(from_=3), cause=MIGRATE)),
    Forged("migrated", "is at a, which", lambda: versions().show(migrated(nodes={}), cause=c.MigrateRun(2))),
    Forged("migrated", "it was wait, it is human", other_kind),
    Forged("migrated", "where no join is", lambda: moved_join(sync=True)),
    Forged("migrated", "['t'] are gone", lambda: moved_join(fan_out=True)),
]


# Budgets


def budgeted(**budget: Json) -> Watching:
    document = {"budget": budget, "nodes": {"a": TASK, "b": TASK}, "transitions": [{"from": "a", "to": "b"}]}
    return watching(document)


def beyond() -> Watching:
    """The second visit begins although one was all."""
    watched = budgeted(visits=2)
    watched.record.budget.visits = 2
    return watched.finish(1)


BUDGETS = [
    Forged("budget", "2 of 2 visits are spent", beyond),
    Forged("budget", "and 1 of 2 visits", lambda: budgeted(visits=2).show(e.BudgetExceeded(0, AT, "visits", 2, 2))),
    Forged("budget", "something is left", lambda: budgeted(visits=2).show(e.BudgetExceeded(0, AT, "visits", 1, 2))),
    Forged("budget", "by None", lambda: budgeted(visits=2).show(e.BudgetRaised(0, AT, "ann", visits=1))),
]
