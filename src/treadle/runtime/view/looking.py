"""The questions that may be asked about one run, answered with shapes: `Run` has these methods.

Owns how questions, readings and shapes meet. Must not command anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from msgspec.structs import replace

from treadle.errors import CommandRefused
from treadle.kernel.state import RunState
from treadle.model import events as e
from treadle.model.ids import GroupId, RunId, TokenId
from treadle.model.states import TokenState
from treadle.runtime.view.detail import detail_of
from treadle.runtime.view.difference import difference_of
from treadle.runtime.view.group_log import GroupRecord
from treadle.runtime.view.groups import branches_of, detail_of_group, row_of_group
from treadle.runtime.view.moments import Moment, seq_of
from treadle.runtime.view.moves import ends_in_doubt, moved_between, touched_between
from treadle.runtime.view.picture import picture_of
from treadle.runtime.view.picture_shapes import RunPicture
from treadle.runtime.view.readings import RunReading
from treadle.runtime.view.shapes import GroupDetail, GroupRow, RunDetail, VisitDetail, VisitRow
from treadle.runtime.view.snapshot import snapshot_of
from treadle.runtime.view.snapshot_shapes import StateDifference, StateView
from treadle.runtime.view.visit_log import VisitRecord
from treadle.runtime.view.visits import (
    VisitFilter,
    chosen_visits,
    detail_of_visit,
    reason_of_visit,
    row_of,
    scope_of,
)
from treadle.store.port import RunRow
from treadle.store.service import ServiceStore

if TYPE_CHECKING:
    from treadle.runtime.view.readings import Readings

Json = Any

PAST_MAX = 100_000
"""Events folded to say what a visit saw. Of a later event of a longer run that is left out: it would take seconds."""


class Looking:
    """See the module's docstring. `Run` says where the readings are, and what an unknown run is answered."""

    id: RunId

    @property
    def _readings(self) -> Readings:
        raise NotImplementedError

    async def _unknown(self) -> CommandRefused:
        raise NotImplementedError

    async def _reading(self) -> tuple[RunRow, RunReading]:
        found = await self._readings.reading(self.id)
        if found is None:
            raise await self._unknown()
        return found

    async def detail(self) -> RunDetail:
        """The run as it is now: its row, input, output, error and what caused it, visits by status, and for every
        waiting visit what it waits for and what would end that. Raises CommandRefused(NOT_FOUND)."""
        return detail_of(*await self._reading())

    async def visits(
        self,
        *,
        statuses: Sequence[str] = (),
        node: str | None = None,
        group: int | None = None,
        after: int | None = None,
        limit: int = 100,
        newest_first: bool = False,
    ) -> list[VisitRow]:
        """Its visits, oldest first unless told otherwise: those with one of the statuses, of a node, inside a group.
        The page begins behind visit `after`."""
        unknown = [status for status in statuses if status not in set(TokenState)]
        if unknown:
            known = ", ".join(TokenState)
            raise CommandRefused("BAD_REQUEST", f"{unknown[0]!r} is no status of a visit; they are {known}")
        _row, reading = await self._reading()
        if group is not None:
            self._group(reading, group)
        chosen = VisitFilter(frozenset(statuses), node, group)
        return [row_of(one) for one in chosen_visits(reading.log, chosen, after, limit, newest_first=newest_first)]

    async def visit(self, visit: int) -> VisitDetail:
        """One visit: input, output, the data it sees, attempts with errors and times, streamed text, why it was made,
        what it waits for. Raises CommandRefused(NOT_FOUND)."""
        row, reading = await self._reading()
        record = self._record(reading, visit)
        events = await self._readings.events(self.id, record.seqs)
        before = await self._past(row, record.created_seq - 1)
        reason = reason_of_visit(reading, record, before)
        if record.worked_seq:
            seen = await self._past(row, record.worked_seq)
            scope = scope_of(seen, record) if seen is not None else None
        else:
            scope = scope_of(reading.state, record)
        return detail_of_visit(reading, record, events, scope, reason)

    async def groups(self, *, after: int = 0, limit: int = 100) -> list[GroupRow]:
        """Its fan-outs by number, those that have ended included, behind group `after`."""
        _row, reading = await self._reading()
        chosen = [group for number, group in reading.log.groups.items() if number > after][:limit]
        return [row_of_group(reading, group) for group in chosen]

    async def group(self, group: int, *, after: int = 0, limit: int = 100, seq: int | None = None) -> GroupDetail:
        """One fan-out with a page of its branches, those that had failed at event `seq` first, from position `after`
        on. A walk over several pages keeps the `seq` of its first. Raises CommandRefused(NOT_FOUND)."""
        _row, reading = await self._reading()
        record = self._group(reading, group)
        began = seq if seq is not None else reading.seq
        page, following = branches_of(record, began, after, limit)
        items = await self._items(record, page)
        return detail_of_group(reading, record, page, (began, following) if following is not None else None, items)

    async def snapshot(self, at: Moment | None = None) -> StateView:
        """The fold of its history: as it is now, or as it was at the end of the decision that an event number, an
        instant or a visit lies in. Raises CommandRefused."""
        row, reading = await self._reading()
        if at is None or (at == reading.seq and not reading.shortened):
            return snapshot_of(reading.state, reading.log.changed)
        return snapshot_of(*await self._readings.past(row, await seq_of(self._readings.store, row, at)))

    async def picture(self) -> RunPicture:
        """What a graph of the run shows at its newest event, without its history. Raises CommandRefused(NOT_FOUND)."""
        _row, reading = await self._reading()
        async with reading.turn:
            return await picture_of(reading)

    async def decisions(self, after: int = 0, limit: int | None = None) -> list[int]:
        """The numbers of the events at which its decisions end: the moments at which it can be looked at and forked."""
        return await cast(ServiceStore, self._readings.store).decisions(self.id, after, limit)

    async def at(self, moment: Moment) -> StateView:
        """As `snapshot`, for a moment of its past."""
        return await self.snapshot(moment)

    async def difference(self, begin: Moment, end: Moment) -> StateDifference:
        """What changed between two moments. Raises CommandRefused."""
        before, after = await self.snapshot(begin), await self.snapshot(end)
        _row, reading = await self._reading()
        first, last = sorted((before.seq, after.seq))
        touched = touched_between(reading.log, first, last)
        ends = await self._readings.events(self.id, ends_in_doubt(touched, before, after))
        return replace(difference_of(before, after), moved=moved_between(touched, before, after, ends))

    async def diff(self, begin: Moment, end: Moment) -> StateDifference:
        """As `difference`."""
        return await self.difference(begin, end)

    def _record(self, reading: RunReading, visit: int) -> VisitRecord:
        record = reading.log.visits.get(TokenId(visit))
        if record is None:
            has = "its history is no longer kept" if reading.shortened else f"it has {len(reading.log.visits)}"
            raise CommandRefused("NOT_FOUND", f"run {self.id!r} has no visit {visit}; {has}")
        return record

    def _group(self, reading: RunReading, group: int) -> GroupRecord:
        record = reading.log.groups.get(GroupId(group))
        if record is None:
            raise CommandRefused("NOT_FOUND", f"run {self.id!r} has no group {group}")
        return record

    async def _past(self, row: RunRow, seq: int) -> RunState | None:
        if not 0 < seq <= PAST_MAX:
            return None
        return (await self._readings.past(row, seq))[0]

    async def _items(self, record: GroupRecord, page: list[int]) -> dict[int, Json]:
        """The items of some branches, out of the events that made them."""
        if not page:
            return {}
        found: dict[int, Json] = {}
        begin = 0
        for event in await self._readings.events(self.id, [record.opened_seq, *record.grown]):
            assert isinstance(event, e.GroupOpened | e.GroupGrew)
            items = event.items
            if items is not None:
                found.update({branch: items[branch - begin] for branch in page if begin <= branch < event.total})
            begin = event.total
        return found
