"""As `forgeries`, for what happens to visits, in the world outside, and at the end of runs."""

from __future__ import annotations

from typing import Any

from tests.driving import TASK, graph_of
from tests.sim.forgeries import AT, NO, ONE, TWO, Forged, chain, one_arrived
from tests.sim.watching import Forgery, Watching, changed, twice, watching, without, without_effect
from treadle.model import commands as c
from treadle.model import effects as x
from treadle.model import events as e
from treadle.model.errors import Error
from treadle.model.ids import RUN_GATE, RecordId, RunId, TimerId, TokenId
from treadle.model.references import EntityRef, ParentLink
from treadle.model.states import Waiting

Json = Any
CHILD = RunId("run-1.1")


def node(kind: str, **config: Json) -> dict[str, Json]:
    return {"nodes": {"a": {"action": {"kind": kind, **config}}}}


def gate() -> Watching:
    return watching(node("human", due_ms=50))


def claimed() -> Watching:
    return gate().do(c.ClaimGate(ONE, "ann"))


def several() -> Watching:
    """A gate that two of three people decide; one has answered."""
    watched = watching(node("human", assign={"quorum": {"of": 3, "accept": 2}}))
    return watched.do(c.CompleteGate(ONE, {"ok": True}, "ann"))


def clocked() -> Watching:
    watched = watching(node("human", remind_ms=50, escalate={"after_ms": 50, "to": "eve"}))
    watched.driven.now += 50
    return watched


def fired(watched: Watching, purpose: str, forge: Forgery) -> Watching:
    timer = next(timer.id for timer in watched.driven.state.timers.values() if timer.purpose == purpose)
    return watched.do(c.FireTimer(timer), forge)


def wait() -> Watching:
    watched = watching(node("wait", ms=50))
    watched.driven.now += 50
    return watched


def hook() -> Watching:
    return watching(node("webhook", url="https://worker.test/"))


def listening() -> Watching:
    """Two visits that wait for the same signal."""
    ear = {"action": {"kind": "signal", "name": "s"}}
    return watching({"start": ["a", "b"], "nodes": {"a": ear, "b": ear}})


def calling() -> Watching:
    child = graph_of({"workflow": "child", "nodes": {"x": TASK}})
    return watching(node("workflow_call", workflow="child"), None, child)


def begun(document: dict[str, Json], forge: Forgery) -> Watching:
    return Watching(graph_of(document)).do(c.StartRun(run=RunId("run-1")), forge)


def ends_twice() -> Watching:
    watched = calling()
    run = RunId(next(iter(watched.record.children)))
    return watched.do(c.EndChild(ONE, run, "completed"), twice(e.ChildEnded))


def waits_for_the_dead(life: int) -> Watching:
    """A paused run waits again for a child that has failed and was not reopened."""
    watched = calling()
    run = RunId(next(iter(watched.record.children)))
    watched.do(c.PauseRun()).do(c.EndChild(ONE, run, "failed", error=NO, life=1))
    return watched.show(e.TokenWaiting(0, AT, ONE, Waiting.SUBWORKFLOW, detail={"child": run, "life": life}))


def mistold() -> Watching:
    watched = calling()
    return watched.do(
        c.EndChild(ONE, RunId(next(iter(watched.record.children))), "completed"), changed(e.ChildEnded, status="failed")
    )


def child() -> Watching:
    watched = Watching(graph_of({"nodes": {"a": TASK}}))
    return watched.do(c.StartRun(run=CHILD, parent=ParentLink(RunId("run-1"), ONE), depth=1, depth_max=10))


def undoing(status: str = "compensating") -> Watching:
    """b is being undone, a is next; or nothing has failed yet."""
    undo = {**TASK, "compensate": TASK}
    pairs = [{"from": "a", "to": "b"}, {"from": "b", "to": "c"}]
    watched = watching({"nodes": {"a": undo, "b": undo, "c": TASK}, "transitions": pairs}).finish(1).finish(2)
    return watched.do(c.FailAttempt(TokenId(3), 1, NO)) if status == "compensating" else watched


def tried_again() -> Watching:
    watched = undoing()
    watched.record.undo[2] = "failed"
    return watched.show(e.CompensationStarted(0, AT, RecordId(2), "b"))


def added(name: str) -> e.ArtifactWritten:
    return e.ArtifactWritten(0, AT, RUN_GATE, name, "sha256:a", 1, by="ann")


def written(name: str) -> e.ArtifactWritten:
    return e.ArtifactWritten(0, AT, ONE, name, "sha256:b", 1)


def travelling() -> Watching:
    watched = Watching(graph_of({"nodes": {"a": TASK}}))
    return watched.do(c.StartRun(run=RunId("run-1"), entity=EntityRef("e", "order")))


def crowded() -> Watching:
    """The second visit was let into the critical section."""
    section = {**TASK, "mutex": "m"}
    watched = watching({"start": ["a", "b"], "nodes": {"a": section, "b": section}})
    watched.record.visits[2].begun = True
    return watched.do(c.SendSignal("s", id="1"))


def claimed_by_another() -> Watching:
    watched = chain(queue="q").do(c.StartAttempt(ONE, 1, "w1", 10_000))
    watched.record.visits[1].worker = "w2"
    return watched.finish(1)


def held(watched: Watching) -> Watching:
    """The visit has left its node for a join, as far as the auditor knows."""
    watched.record.visits[1].held = True
    return watched


def never_began() -> Watching:
    watched = chain().finish(1, None, without(e.TokenDispatched, e.TokenStarted))
    return watched.show(e.TokenWaiting(0, AT, TWO, Waiting.TIMER))


def deferred() -> Watching:
    watched = chain().do(c.PauseRun()).finish(1, {"v": 1})
    return watched.do(c.ResumeRun(), changed(e.TokenCompleted, output={"v": 2}))


def callback(attempt: int = 1) -> e.CallbackReceived:
    return e.CallbackReceived(0, AT, ONE, attempt)


def retried() -> Watching:
    busy = c.FailAttempt(ONE, 1, Error("X", "x", retryable=True))
    return chain(retry={"max_attempts": 2}).do(busy, changed(e.TokenRetryScheduled, attempt=9))


def superseded() -> Watching:
    watched = chain()
    watched.record.visits[1].attempt = 2
    return watched.finish(1)


def paused() -> Watching:
    watched = chain()
    watched.record.status = "paused"
    return watched.finish(1)


def undone_too_soon() -> Watching:
    return undoing().show(e.RunCompensated(0, AT))


def out_of_order() -> Watching:
    failed = c.FailAttempt(TokenId(3), 1, NO)
    return undoing("running").do(failed, changed(e.CompensationStarted, record=1))


ANSWER = c.ReceiveCallback(ONE, 1, {})
FINE = c.CompleteGate(ONE, {"ok": True})
ANSWERS = [
    Forged("attempts", "result of attempt 1", superseded),
    Forged("results", "not {'v': 1}", lambda: chain().finish(1, {"v": 1}, changed(e.TokenCompleted, output={}))),
    Forged("gates", "is decided and gets", lambda: gate().do(FINE, twice(e.GateCompleted))),
    Forged("gates", "was completed by", lambda: gate().do(FINE, changed(e.GateCompleted, data={"ok": False}))),
    Forged("gates", "is None and gets gate.answered", lambda: chain().show(e.GateAnswered(0, AT, ONE, 1, "ann"))),
    Forged("gates", "ann answers visit 1 twice", lambda: several().show(e.GateAnswered(0, AT, ONE, 1, "ann"))),
    Forged("gates", "bob answers visit 1 by None", lambda: several().show(e.GateAnswered(0, AT, ONE, 1, "bob"))),
    Forged("gates", "was completed with 2", lambda: several().show(e.GateCompleted(0, AT, ONE, 2))),
    Forged("artifacts", "ann adds note by None", lambda: gate().show(added("note"))),
    Forged("artifacts", "which the run has written", lambda: gate().show(written("note")).show(added("note"))),
    Forged("gates", "is None and gets gate.claimed", lambda: chain().show(e.GateClaimed(0, AT, ONE, "ann"))),
    Forged("gates", "bob claims what ann has", lambda: claimed().show(e.GateClaimed(0, AT, ONE, "bob"))),
    Forged("gates", "by bob instead of None", lambda: claimed().show(e.GateReleased(0, AT, ONE, "bob"))),
    Forged("gates", "bob takes", lambda: claimed().show(e.GateDelegated(0, AT, ONE, "eve", "bob", "ann"))),
    Forged("signals", "is taken and is not there", lambda: listening().show(e.SignalTaken(0, AT, 9, ONE))),
    Forged("timers", "ms early", lambda: wait().do(c.FireTimer(TimerId(1)), late_ms=1)),
    Forged("attempts", "answers for", claimed_by_another),
    Forged("attempts", "callback for attempt 7", lambda: hook().show(callback(7), cause=ANSWER)),
    Forged("attempts", "recovery 3", lambda: chain().do(c.LoseWorker(ONE, 1), changed(e.TokenDispatched, recovery=3))),
    Forged("attempts", "skips to 5", lambda: chain().finish(1, None, changed(e.TokenDispatched, attempt=5))),
    Forged("attempts", "starts attempt 5", lambda: chain().finish(1, None, changed(e.TokenStarted, attempt=5))),
    Forged("attempts", "starts again", lambda: chain().show(e.TokenStarted(0, AT, ONE, 1))),
    Forged("attempts", "will try 9", retried),
    Forged("results", "not the recorded output", deferred),
    Forged("results", "succeeded by NoneType", lambda: chain().show(e.TokenCompleted(0, AT, ONE))),
    Forged("results", "has a callback by NoneType", lambda: hook().show(callback())),
    Forged("results", "callback for visit 1, which", lambda: held(hook()).show(callback(), cause=ANSWER)),
    Forged("gates", "without its clock", lambda: gate().show(e.GateExpired(0, AT, ONE))),
    Forged(
        "signals",
        "does not wait for other",
        lambda: listening().do(c.SendSignal("other", id="1")).show(e.SignalTaken(0, AT, 1, ONE)),
    ),
    Forged(
        "signals",
        "has waited longer",
        lambda: listening().do(c.SendSignal("s", id="1"), changed(e.SignalTaken, token=2)),
    ),
    Forged("timers", "is not set", lambda: chain().show(e.TimerFired(0, AT, TimerId(9), "wait"))),
    Forged("timers", "fired at 0", lambda: wait().do(c.FireTimer(TimerId(1)), changed(e.TimerFired, at=0))),
    Forged("timers", "timer of visit 1, which", lambda: held(wait()).do(c.FireTimer(TimerId(1)))),
]
FAMILY = [
    Forged("children", "ends twice", ends_twice),
    Forged("children", "waits again for", lambda: waits_for_the_dead(1)),
    Forged("children", "is not cancelled", lambda: calling().do(c.CancelRun(), without_effect(x.CancelChild))),
    Forged("children", "never started", lambda: chain().show(e.ChildEnded(0, AT, ONE, CHILD, "completed"))),
    Forged("children", "ended failed by", mistold),
    Forged("children", "tells its parent", lambda: child().finish(1, None, without_effect(x.NotifyParent))),
]
LIFE = [
    Forged("lifecycle", "must not happen to it", lambda: chain().finish(1, None, twice(e.TokenCompleted))),
    Forged("paused", "while the run is paused", paused),
    Forged("lifecycle", "before it began", never_began),
    Forged("lifecycle", "while waiting for human", lambda: gate().show(e.TokenCompleted(0, AT, ONE))),
    Forged("lifecycle", "waits for siblings and gets", lambda: one_arrived().show(e.TokenFailed(0, AT, TWO, NO))),
    Forged("lifecycle", "never created", lambda: chain().show(e.TokenStarted(0, AT, TokenId(9), 1))),
    Forged("lifecycle", "run.resumed must not", lambda: chain().show(e.RunResumed(0, AT, "x"))),
    Forged("deadlock", "nothing can ever move", lambda: chain().finish(1, None, without(e.TokenCreated))),
    Forged("nonsense", "what is not there", lambda: chain().show(e.GateOpened(0, AT, TokenId(9)))),
]
OUTSIDE = [
    Forged("dispatch", "asked of the world []", lambda: chain().finish(1, None, without_effect(x.RunTask))),
    Forged("timers", "the store keeps {}", lambda: begun(node("wait", ms=50), without_effect(x.SetTimer))),
    Forged("gates", "asked of the world []", lambda: begun(node("human"), without_effect(x.OpenGate))),
    Forged("gates", "asked of the world []", lambda: gate().do(c.ClaimGate(ONE, "ann"), without_effect(x.NoteGate))),
    Forged("gates", "asked of the world []", lambda: fired(clocked(), "gate_remind", without_effect(x.RemindGate))),
    Forged("gates", "asked of the world []", lambda: fired(clocked(), "gate_escalate", without_effect(x.EscalateGate))),
    Forged(
        "entity",
        "asked of the world []",
        lambda: travelling().do(c.MoveEntity(section="inbox"), without_effect(x.NoteMove)),
    ),
]
ENDS = [
    Forged("saga", "starts, waiting [1, 2]", out_of_order),
    Forged("saga", "is compensated and", undone_too_soon),
    Forged("entity", "departs over", lambda: travelling().show(e.EntityMoved(0, AT, "departed", edge="nowhere"))),
    Forged("over", "visits [1] are live", lambda: chain().do(c.CancelRun(), without(e.TokenCancelled))),
    Forged("saga", "starts while [2]", lambda: undoing().show(e.CompensationStarted(0, AT, RecordId(1), "a"))),
    Forged(
        "saga",
        "while the run is running",
        lambda: undoing("running").show(e.CompensationStarted(0, AT, RecordId(2), "b")),
    ),
    Forged("saga", "without an operator", tried_again),
    Forged("saga", "which is recorded", lambda: undoing().show(e.CompensationCompleted(0, AT, RecordId(1)))),
    Forged("saga", "is skipped and is", lambda: undoing().show(e.CompensationSkipped(0, AT, RecordId(1), "x"))),
    Forged(
        "saga",
        "a token undoes record 1",
        lambda: undoing().show(e.TokenCreated(0, AT, TokenId(5), "a", "root", record=RecordId(1))),
    ),
    Forged("entity", "at once", lambda: travelling().show(e.EntityMoved(0, AT, "moved", node="a", section="s"))),
    Forged("entity", "enters twice", lambda: travelling().show(e.EntityMoved(0, AT, "entered"))),
    Forged(
        "entity",
        "moves the entity of a run that is running by None",
        lambda: travelling().show(e.EntityMoved(0, AT, "moved", node="a", by="ann")),
    ),
    Forged("entity", "travels on", lambda: chain().show(e.EntityMoved(0, AT, "arrived", node="a"))),
    Forged("over", "holds arrivals", lambda: one_arrived().do(c.CancelRun(), without(e.TokenCancelled))),
    Forged("over", "gates of [1] are open", lambda: gate().do(c.CancelRun(), without(e.TokenCancelled))),
    Forged("over", "keeps timers", lambda: wait().do(c.CancelRun(), without_effect(x.ClearTimer))),
    Forged("mutex", "at once", crowded),
]
