"""The visits that moved between two moments of a run (6.1), those that began or ended in between included. Pure.

A state holds only the visits that have not ended, so the difference of two states does not say how a visit ended. The
log and the history do.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from treadle.model import events as e
from treadle.model.ids import TokenId
from treadle.model.states import TokenState
from treadle.runtime.view.snapshot_shapes import StateView, VisitMove
from treadle.runtime.view.visit_log import VisitLog, VisitRecord

_ENDS = {
    e.TokenCompleted: TokenState.COMPLETED,
    e.TokenFailed: TokenState.FAILED,
    e.TokenTimedOut: TokenState.TIMED_OUT,
    e.TokenCancelled: TokenState.CANCELLED,
}


def touched_between(log: VisitLog, begin: int, end: int) -> list[VisitRecord]:
    """The visits that any event between two numbers is about."""
    return [one for one in log.visits.values() if bisect_right(one.seqs, begin) < bisect_right(one.seqs, end)]


def ends_in_doubt(touched: Iterable[VisitRecord], *moments: StateView) -> list[int]:
    """The numbers of the events that say how visits had ended which went on later: they were tried again."""
    return sorted(
        {
            seq
            for record in touched
            for moment in moments
            if record.created_seq <= moment.seq < record.seqs[-1]
            and all(visit.visit != record.visit for visit in moment.visits)
            for seq in record.seqs[: bisect_right(record.seqs, moment.seq)]
        }
    )


def moved_between(
    touched: Iterable[VisitRecord], before: StateView, after: StateView, ends: Sequence[e.Event]
) -> list[VisitMove]:
    """The visits whose status differs. `ends`: the events that `ends_in_doubt` asks for."""
    was, now = _Moment(before, ends), _Moment(after, ends)
    moves = [VisitMove(one.visit, one.node, one.path, was.status(one), now.status(one)) for one in touched]
    return [move for move in moves if move.begin != move.end]


class _Moment:
    def __init__(self, state: StateView, ends: Sequence[e.Event]) -> None:
        self._seq = state.seq
        self._live = {visit.visit: visit.status for visit in state.visits}
        self._ended: dict[TokenId, str] = {}
        for event in ends:
            if event.seq <= self._seq and type(event) in _ENDS:
                self._ended[event.token] = str(_ENDS[type(event)])  # type: ignore[attr-defined]

    def status(self, record: VisitRecord) -> str | None:
        """None: the visit did not exist yet."""
        if record.created_seq > self._seq:
            return None
        if record.seqs[-1] <= self._seq:
            return self._live.get(record.visit, str(record.status))
        return self._live.get(record.visit) or self._ended.get(record.visit)
