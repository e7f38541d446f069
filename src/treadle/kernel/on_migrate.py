"""Another version: a run goes on under another graph, if nothing is in the way (6.5). `migration_plan` finds what is,
`evolve_migration` folds the change."""

from __future__ import annotations

from msgspec.structs import replace

from treadle.graph.execution_graph import ExecutionGraph
from treadle.kernel import migration_plan, on_gate, reopen, standing, timers
from treadle.kernel.deciding import Deciding, Refused
from treadle.kernel.lifecycle import LIVE
from treadle.kernel.migration_outputs import HistoryNeeded, unkept
from treadle.kernel.migration_parts import Obstacle
from treadle.kernel.renaming import Renaming
from treadle.model import commands as c
from treadle.model import effects as x
from treadle.model.errors import FieldProblem
from treadle.model.ids import TokenId
from treadle.model.states import GateState, RunStatus

MIGRATABLE = ("running", "paused", "queued", "failed")
TOLD_MAX = 20
"""Obstacles that the message of a refusal tells. The list beside it has all of them."""


def migrate_run(d: Deciding, command: c.MigrateRun) -> None:
    """Go on under another version. Refused with everything that is in the way; a dry run changes nothing."""
    state = d.state
    if state.status.value not in MIGRATABLE:
        text = f"run {state.run} is {state.status}: only runs that are {', '.join(MIGRATABLE)} can be migrated"
        raise Refused("INVALID_STATE", text)
    new = wanted_version(d, command.to)
    if command.to == state.version:
        return  # it is there already: the same command again, or nothing to do
    check(d, new, command.nodes)
    if command.dry_run:
        return
    if command.seq != state.seq and unkept(state.graph, new, command.nodes):
        raise HistoryNeeded
    change_version(d, command, new)
    if state.status is not RunStatus.QUEUED:  # a queued fork opens its gates when it starts
        _move_gates(d, set(command.nodes.values()))
    if d.running:
        reopen.wake_all(d)


def _move_gates(d: Deciding, nodes: set[str]) -> None:
    """Lists of open gates tell the nodes that visits have now."""
    for token in d.state.tokens.values():
        if token.gate is GateState.OPEN and token.state in LIVE and token.asked is not None and token.node in nodes:
            asked = token.asked.opened
            moved = x.MovedGate(token.node, asked.at, asked.title, asked.assign, asked.due)
            d.effect(replace(on_gate.noted(token), moved=moved))


def wanted_version(d: Deciding, version: int) -> ExecutionGraph:
    """The graph of a version of the run's workflow. Refused if there is none."""
    new = d.catalog.lookup(d.state.graph.workflow_name, version) if version >= 1 else None
    if new is None:
        text = f"workflow {d.state.graph.workflow_name!r} has no version {version}: deploy it first"
        raise Refused("NOT_FOUND", text)
    return new


def check(d: Deciding, new: ExecutionGraph, nodes: dict[str, str]) -> None:
    """Refuse if the mapping names unknown nodes, or if anything is in the way."""
    unknown = list(migration_plan.unknown_nodes(d.state, new, nodes))
    if unknown:
        raise Refused("NOT_FOUND", "; ".join(unknown))
    found = migration_plan.obstacles(d.state, new, nodes)
    if found:
        raise in_the_way(d, new, found)


def in_the_way(d: Deciding, new: ExecutionGraph, found: list[Obstacle]) -> Refused:
    """The refusal that lists everything in the way."""
    entries = tuple(FieldProblem(obstacle.place, obstacle.told()) for obstacle in found)
    told = "; ".join(entry.message for entry in entries[:TOLD_MAX])
    more = f"; and {len(entries) - TOLD_MAX} more" if len(entries) > TOLD_MAX else ""
    things = "1 thing is" if len(found) == 1 else f"{len(found)} things are"
    text = (
        f"run {d.state.run} cannot be migrated from version {d.state.version} to {new.version}: {things} in the way: "
    )
    return Refused("INVALID_STATE", f"{text}{told}{more}", entries)


def change_version(d: Deciding, command: c.MigrateRun, new: ExecutionGraph) -> None:
    """Record the migration, and set the clocks that it brings and takes. Nothing is in the way of it."""
    state = d.state
    clocks, started = set(state.timers), _clocks_of_triggers(d, Renaming(d.graph, new, command.nodes))
    d.run_migrated(state.version, command.to, command.nodes, command.by)
    d.graph = new
    d.effect(x.NoteVersion(command.to))
    for timer in sorted(clocks - set(state.timers)):
        d.effect(x.ClearTimer(timer))
    for kept in command.outputs:
        d.context_updated([(("nodes", kept.node, "output"), kept.output)], kept.scope)
    if (state.stands or state.status) in (
        RunStatus.RUNNING,
        RunStatus.PAUSED,
    ):  # those of a failed run start when it is reopened
        _start_clocks(d, started)


def _clocks_of_triggers(d: Deciding, names: Renaming) -> set[tuple[TokenId, str]]:
    """The clocks of triggers that every visit has had, by their names in the new version: some may have fired."""
    return {
        (token.id, names.via(t.id))
        for token in d.state.tokens.values()
        if standing.is_standing(token)
        for t in d.node(token).triggers
        if t.definition.trigger is not None and t.definition.trigger.after_ms is not None
    }


def _start_clocks(d: Deciding, started: set[tuple[TokenId, str]]) -> None:
    """Start the clocks that the new version has and the old one had not: of triggers, and of joins where a visit
    waits."""
    for token in [token for token in d.state.tokens.values() if standing.is_standing(token)]:
        for t in d.node(token).triggers:
            trigger = t.definition.trigger
            if trigger is not None and trigger.after_ms is not None and (token.id, t.id) not in started:
                timers.start(d, _now(d) + trigger.after_ms, "trigger", token, t.id)
    reopen.restart_clocks(d, _now(d))


def _now(d: Deciding) -> int:
    """Now, or the moment at which the clocks of a paused run stand still."""
    return d.state.paused_at if d.state.paused_at is not None else d.now
