"""What operators ask of a run after they have changed their mind (6.3 to 6.5, 6.8): fork, edit, skip, jump, another
input, another version, a larger budget. Mostly sensible: a run that has to stand still for it is paused first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from treadle.kernel.state import RunState
from treadle.model import commands as c
from treadle.model.ids import TokenId
from treadle.model.references import EntityRef
from treadle.model.states import RunStatus, TokenState

if TYPE_CHECKING:
    from tests.simulator.world import World

FORKS_MAX = 4
"""A fork may be forked, too: without an end to it a seed would be about nothing else."""
RAISED = {"cost": 50.0, "tokens": 5_000, "visits": 300, "elapsed_ms": 100_000}
"""By how much a helpful person raises a budget: far more than any run needs."""


def fork(world: World, state: RunState) -> c.Command | None:
    """Of a point that exists, or of one that does not; with some changes."""
    if world.forks >= FORKS_MAX:
        return None
    draw = world.draw
    world.forks += 1
    run = world.place(f"fork-{world.forks}", state.graph.workflow_name)
    point: dict[str, Any] = draw.pick(
        (
            {},
            {"at": draw.between(1, state.seq + (1 if draw.chance(0.05) else 0))},
            {"visit": TokenId(draw.between(1, max(state.last_token, 1)))},
            {"node": draw.pick(list(state.graph.nodes))},
        )
    )
    entity = EntityRef(f"entity of {run}", "order") if world.plan.has("entity") and draw.chance(0.5) else None
    return c.ForkRun(
        run=run,
        origin=state.run,
        entity=entity,
        idempotency_key=f"key of {run}" if draw.chance(0.3) else None,
        changes=_fork_changes(world, state),
        inherit_compensation=draw.chance(0.4),
        **point,
    )


def _fork_changes(world: World, state: RunState) -> c.ForkChanges:
    draw = world.draw
    fields: dict[str, Any] = {}
    if draw.chance(0.2):
        value = world.people.input()
        batch = state.graph.definition.batch is not None
        fields["input"] = {"items": [value]} if batch and draw.chance(0.9) else value
    if draw.chance(0.3):
        fields["state"] = {"state.v": world.serial(), "state.n": draw.between(0, 3)}
    if draw.chance(0.3):
        visit = str(draw.between(1, max(state.last_token, 1)))
        fields["outputs"] = {draw.pick((visit, draw.pick(list(state.graph.nodes)))): world.crew.answer()}
    if world.plan.has("versions") and draw.chance(0.3):
        fields["version"] = draw.between(1, world.deployed[state.graph.workflow_name])
    return c.ForkChanges(**fields)


def _stands_still(world: World, state: RunState) -> bool:
    return state.status is not RunStatus.RUNNING or world.draw.chance(0.1)


def edit(world: World, state: RunState) -> c.Command:
    """The run's data, or that of a branch; now and then a place that nobody may write."""
    draw = world.draw
    if not _stands_still(world, state):
        return c.PauseRun()
    writes: dict[str, Any] = draw.pick(
        (
            {"state.v": world.serial()},
            {"state.n": draw.between(0, 3), "state.list": [world.serial()]},
            {"output.v": world.serial()},
            {"state.deep.er": 1},
            {"state.n": "x"},
            {"input.n": 1},
        )
    )
    branch = _visit(world, state) if draw.chance(0.4) else None
    return c.EditRun(writes, branch, reason=f"edit-{world.serial()}")


def skip(world: World, state: RunState) -> c.Command:
    """A visit that may be at work, wait, or have failed."""
    output = world.crew.answer() if world.draw.chance(0.9) else {"v": 1, "n": 99}
    return c.SkipToken(_visit(world, state), output, reason=f"skip-{world.serial()}")


def jump(world: World, state: RunState) -> c.Command:
    """To any node; most lie in another fan-out, and the visit stays."""
    if not _stands_still(world, state):
        return c.PauseRun()
    to = world.draw.pick(list(state.graph.nodes))
    return c.JumpToken(_visit(world, state), to, reason=f"jump-{world.serial()}")


def set_input(world: World, state: RunState) -> c.Command:
    """What a visit is given from its next attempt on."""
    if not _stands_still(world, state):
        return c.PauseRun()
    return c.SetInput(_visit(world, state), {"x": world.serial()}, reason=f"input-{world.serial()}")


def migrate(world: World, state: RunState) -> c.Command | None:
    """To any version that is deployed, forth or back, mostly with the mapping its author would give."""
    draw, name = world.draw, state.graph.workflow_name
    newest = world.deployed[name]
    if newest == 1:
        return None
    to = draw.between(1, newest) if draw.chance(0.9) else newest + 1
    nodes = world.mapping(name, state.version, to) if draw.chance(0.9) else {}
    return c.MigrateRun(to, nodes, dry_run=draw.chance(0.15))


def raise_budget(world: World, state: RunState) -> c.Command:
    """A little more of something; now and then of what is not limited, or nothing."""
    draw = world.draw
    parts: tuple[dict[str, Any], ...] = (
        {"visits": draw.between(1, 3)},
        {"cost": 0.5},
        {"tokens": 20},
        {"elapsed_ms": 100},
        {},
    )
    known = _limited(state)
    chosen = {part: RAISED[part] / 10 for part in known if part in ("cost", "elapsed_ms") and draw.chance(0.5)}
    chosen |= {part: draw.between(1, 3) for part in known if part in ("tokens", "visits")}
    if "elapsed_ms" in chosen:
        chosen["elapsed_ms"] = int(chosen["elapsed_ms"])
    return c.RaiseBudget(**(chosen if draw.chance(0.8) else draw.pick(parts)), id=f"raise-{world.serial()}")


def raise_enough(world: World, state: RunState) -> c.Command:
    """So much that the run can end."""
    more: dict[str, Any] = {part: RAISED[part] for part in _limited(state)}
    return c.RaiseBudget(**more, id=f"raise-{world.serial()}")


def _limited(state: RunState) -> list[str]:
    limits = state.graph.definition.budget
    return [part for part in RAISED if limits is not None and getattr(limits, part) is not None]


def _visit(world: World, state: RunState) -> TokenId:
    """Mostly one that is there, those that have failed foremost."""
    failed = [t.id for t in state.tokens.values() if t.state in (TokenState.FAILED, TokenState.TIMED_OUT)]
    if failed and world.draw.chance(0.5):
        return world.draw.pick(failed)
    if state.tokens and world.draw.chance(0.9):
        return world.draw.pick(list(state.tokens))
    return TokenId(world.draw.between(0, state.last_token + 1))
