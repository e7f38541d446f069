"""What operators ask of a run, sensible or not. One table: feature of the plan → commands it may send."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.simulator import changes
from treadle.kernel.state import RunState
from treadle.model import commands as c
from treadle.model.ids import RecordId, RunId, TimerId, TokenId
from treadle.model.states import TokenState

if TYPE_CHECKING:
    from tests.simulator.world import World

Maker = Callable[["World", RunState], c.Command | None]


def command(world: World, state: RunState) -> c.Command | None:
    """Something to ask of this run; None: nothing comes to mind."""
    makers = [maker for feature, maker, _ in _COMMANDS if world.plan.has(feature)]
    if not makers:
        return None
    if world.plan.has("operator_group") and world.draw.chance(0.5) and any(g.open for g in state.groups.values()):
        return _group(world, state)  # open groups are rare and short-lived: operators who may change them do
    weights = [weight for feature, _, weight in _COMMANDS if world.plan.has(feature)]
    return world.draw.weighted(list(zip(makers, weights, strict=True)))(world, state)


def _any_token(world: World, state: RunState) -> TokenId:
    """Mostly one that is there."""
    if state.tokens and world.draw.chance(0.8):
        return world.draw.pick(list(state.tokens))
    return TokenId(world.draw.between(0, state.last_token + 1))


def _any_group(world: World, state: RunState) -> str:
    groups = [group for group in state.groups.values() if group.open] or list(state.groups.values())
    names = [name.split(":", 1)[1] for group in groups for name in group.names]
    return world.draw.pick(names) if names and world.draw.chance(0.95) else "nobody"


def _attempt(world: World, state: RunState, token: TokenId) -> int:
    known = state.tokens.get(token)
    return (known.attempt if known is not None else 1) + world.draw.pick((0, 0, 0, -1, 1))


def _cancel_run(_world: World, _state: RunState) -> c.Command:
    return c.CancelRun()


def _abort(_world: World, _state: RunState) -> c.Command:
    return c.AbortRun()


def _cancel_token(world: World, state: RunState) -> c.Command:
    return c.CancelToken(_any_token(world, state))


def _pause(_world: World, _state: RunState) -> c.Command:
    return c.PauseRun()


def _resume(world: World, _state: RunState) -> c.Command:
    return c.ResumeRun() if world.draw.chance(0.7) else c.ExtendTimeout(world.draw.pick((0, 50, 500, 5_000)))


def _retry(world: World, state: RunState) -> c.Command:
    """A failed visit, one whose join's clock has run out, the whole run; now and then one that was only cancelled."""
    if world.draw.chance(0.4):
        return c.RetryRun()
    failed = [t.id for t in state.tokens.values() if t.state in (TokenState.FAILED, TokenState.TIMED_OUT)]
    failed += state.fallen
    return c.RetryToken(world.draw.pick(failed) if failed else _any_token(world, state))


def _group(world: World, state: RunState) -> c.Command:
    name = _any_group(world, state)
    if world.draw.chance(0.5):
        identity = f"grow-{world.serial()}"
        if world.draw.chance(0.5):
            return c.AddSiblings(name, items=[world.draw.between(0, 9)], id=identity)
        return c.AddSiblings(name, count=world.draw.between(0, 2), id=identity)
    if world.draw.chance(0.5):
        return c.CloseGroup(name)
    return c.CancelGroup(name, world.draw.pick(("fire", "drop")))


def _undo(world: World, state: RunState) -> c.Command | None:
    if not state.records:
        return None
    record = world.draw.pick(list(state.records))
    return world.draw.pick((c.RetryCompensation(record), c.SkipCompensation(record), c.ResumeRun()))


def _move_entity(world: World, state: RunState) -> c.Command:
    """To a node of the workflow or to a section; recognisable by its reason."""
    reason = f"move-{world.serial()}"
    if world.draw.chance(0.7):
        return c.MoveEntity(node=world.draw.pick(list(state.graph.nodes)), reason=reason)
    return c.MoveEntity(section=world.draw.pick(("inbox", "archive")), reason=reason)


def _keep_artifact(world: World, _state: RunState) -> c.Command:
    """An attachment, recognisable by its digest, under one of few names; the run itself writes one of them, too."""
    digest = f"sha256:added-{world.serial()}"
    return c.KeepArtifact(world.draw.pick(("note", "picture", "report")), digest, 10, by="ann")


def _nonsense(world: World, state: RunState) -> c.Command:
    """Any command about anything: answered by a refusal or not at all, but never with a changed run."""
    draw = world.draw
    token = _any_token(world, state)
    attempt = _attempt(world, state, token)
    return draw.pick(
        (
            c.StartRun(run=state.run, input={"other": True}),
            c.StartAttempt(token, attempt, "stranger", world.schedule.now + 50),
            c.ExtendLease(token, attempt, "stranger", world.schedule.now + 50),
            c.FinishAttempt(token, attempt + 7, {"v": -7}),
            c.FailAttempt(token, attempt + 7, world.crew.error()),
            c.LoseWorker(token, attempt),
            c.FireTimer(TimerId(draw.between(0, state.last_timer + 1))),
            c.CompleteGate(TokenId(state.last_token + 5), {"v": 1}),
            c.ClaimGate(token, "stranger"),
            c.DelegateGate(token, "nobody", by="stranger"),
            c.ReleaseGate(token, "stranger"),
            c.ReceiveCallback(token, attempt + 7, {"v": -7}),
            c.EndChild(token, RunId("nobody"), "completed", {"v": -7}),
            c.ReopenCall(token, RunId("nobody"), 9),
            c.RefuseCall(token, RunId("nobody")),
            c.SkipCompensation(RecordId(draw.between(0, 3))),
            c.RetryCompensation(RecordId(draw.between(0, 3))),
            c.ExtendTimeout(-1),
            c.MoveEntity(node="nowhere", reason="nonsense"),
            c.AllowAttempt(),
            c.RaiseBudget(cost=-1),
            c.EditRun({}),
            c.SkipToken(token, "no object", reason=f"nonsense-{world.serial()}"),
            c.JumpToken(token, "nowhere", reason="nonsense"),
            c.SetInput(TokenId(state.last_token + 5)),
            c.MigrateRun(99),
        )
    )


_COMMANDS: tuple[tuple[str, Maker, float], ...] = (
    ("operator_cancel", _cancel_run, 0.3),
    ("operator_cancel", _abort, 0.2),
    ("operator_cancel", _cancel_token, 2),
    ("operator_pause", _pause, 2),
    ("operator_pause", _resume, 3),
    ("operator_retry", _retry, 3),
    ("operator_group", _group, 3),
    ("operator_undo", _undo, 2),
    ("entity", _move_entity, 1),
    ("human", _keep_artifact, 1),
    ("nonsense", _nonsense, 3),
    ("operator_fork", changes.fork, 2),
    ("operator_edit", changes.edit, 2),
    ("operator_skip", changes.skip, 1.5),
    ("operator_jump", changes.jump, 2),
    ("operator_input", changes.set_input, 2),
    ("operator_migrate", changes.migrate, 3),
    ("operator_budget", changes.raise_budget, 1),
)
