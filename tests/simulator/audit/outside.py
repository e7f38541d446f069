"""Effects against events: whatever history says was begun outside was asked for, exactly once, and nothing else was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tests.simulator.audit.answers import holder_after
from tests.simulator.audit.lifecycle import OVER
from tests.simulator.audit.record import Record
from treadle.model import commands as c
from treadle.model import effects as x
from treadle.model import events as e
from treadle.model.ids import RUN_GATE


def settled(record: Record, effects: Sequence[x.Effect]) -> None:
    """Compare what a commit asks of the world with what it records."""
    _check_dispatches(record, effects)
    events = record.doing.events
    opened = [g.token for g in events if isinstance(g, e.GateOpened)]
    opened += [RUN_GATE for p in events if isinstance(p, e.RunPaused) and _asks(record, p)]
    if record.is_fork and record.overdue and record.stands is None:  # it is opened again when the fork begins
        opened += [RUN_GATE] if any(isinstance(event, e.RunForked | e.RunStarted) for event in events) else []
    _same(record, "gates", opened, _of(effects, x.OpenGate, "token"))
    moved = [g for g in events if isinstance(g, e.GateClaimed | e.GateReleased | e.GateDelegated)]
    noted = _noted(effects)
    _same(record, "gates", [(g.token, holder_after(g)) for g in moved], noted if moved else [])
    reminded = [g.token for g in events if isinstance(g, e.GateReminded)]
    _same(record, "gates", reminded, _of(effects, x.RemindGate, "token"))
    escalated = [g.token for g in events if isinstance(g, e.GateEscalated)]
    _same(record, "gates", escalated, _of(effects, x.EscalateGate, "token"))
    _same(
        record,
        "children",
        [c.run for c in events if isinstance(c, e.ChildStarted)],
        _of(effects, x.StartChild, "child"),
    )
    moves = [(move.seq, move.event) for move in events if isinstance(move, e.EntityMoved)]
    asked = [(effect.seq, effect.event) for effect in effects if isinstance(effect, x.NoteMove)]
    _same(record, "entity", moves, asked)
    _check_timers(record)
    _check_children(record, effects)
    _check_parent(record, effects)


def _asks(record: Record, paused: e.RunPaused) -> bool:
    """Whether a gate of the run itself is open: it is out of time, or has spent its budget."""
    budget = record.chart.workflow.budget
    gate = budget is not None and budget.on_exceeded == "gate"
    return paused.by == "timeout" or (paused.by == "budget" and gate)


def _noted(effects: Sequence[x.Effect]) -> list[object]:
    return [(effect.token, effect.by) for effect in effects if isinstance(effect, x.NoteGate)]


def _of(effects: Sequence[x.Effect], kind: type[x.Effect], name: str) -> list[object]:
    return [getattr(effect, name) for effect in effects if isinstance(effect, kind)]


def _same(record: Record, rule: str, recorded: Sequence[object], asked: Sequence[object]) -> None:
    fits = Counter(recorded) == Counter(asked)
    record.expect(fits, rule, f"recorded {recorded}, asked of the world {asked}")


def _check_dispatches(record: Record, effects: Sequence[x.Effect]) -> None:
    recorded = [(ev.token, ev.attempt) for ev in record.doing.events if isinstance(ev, e.TokenDispatched)]
    asked = [(ef.token, ef.attempt) for ef in effects if isinstance(ef, x.RunTask | x.CallWebhook)]
    _same(record, "dispatch", recorded, asked)


def _check_timers(record: Record) -> None:
    """The store keeps exactly the timers that history says are set, with the same due times."""
    wanted = {identity: timer.due for identity, timer in record.timers.items()}
    if record.status in OVER or record.stands is not None:  # the clocks of a fork are set when it starts
        wanted = {}
    kept = record.store_timers
    record.expect(kept == wanted, "timers", f"the store keeps {kept}, history says {wanted}")


def _check_children(record: Record, effects: Sequence[x.Effect]) -> None:
    """A visit that ends, or tries again, before its child has ended has the child cancelled."""
    cancelled = _of(effects, x.CancelChild, "child")
    cause = record.doing.cause
    refused = cause.child if isinstance(cause, c.RefuseCall) else None  # it was never reopened
    for child in record.doing.orphans:
        if child == refused:
            continue
        record.expect(child in cancelled, "children", f"nobody waits for {child} any more, and it is not cancelled")


def _check_parent(record: Record, effects: Sequence[x.Effect]) -> None:
    """A run that has come to its end tells its parent."""
    ended = record.status in OVER and any(event in record.ends for event in record.doing.events)
    told = [effect for effect in effects if isinstance(effect, x.NotifyParent)]
    for parent, token, alias in record.callers if ended else ():
        fits = [t for t in told if (t.parent, t.token, t.status) == (parent, token, record.status) and t.child == alias]
        record.expect(len(fits) == 1, "children", f"the run is {record.status} and tells its parent {told}")
