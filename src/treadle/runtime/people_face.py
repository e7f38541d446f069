"""The part of a client that is about people: gates as lists, one gate with everything, many answers at once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from treadle.errors import CommandRefused
from treadle.model.ids import RunId, TokenId
from treadle.model.references import Person as Person
from treadle.runtime.gate_view import GateOutcome, GateView, view_again, view_of_gate
from treadle.store.gates import CountsGates, GatePlace, GateQuery
from treadle.store.gates import GateCount as GateCount
from treadle.store.gates import GateRow as GateRow

if TYPE_CHECKING:
    from treadle.runtime.command.commander import Commander
    from treadle.runtime.run import Run

Json = Any
AT_ONCE = 64
"""Answers under way at the same time: they share transactions, and one caller does not fill the coordinator's queue."""
_PAGE = 1_000


class PeopleFace:
    """See the module's docstring. `Client` is one."""

    _commander: Commander

    if TYPE_CHECKING:

        def run(self, run_id: str) -> Run: ...

    async def gates(
        self,
        run: str | None = None,
        limit: int = 100,
        *,
        workflow: str | None = None,
        workflows: Sequence[str] = (),
        node: str | None = None,
        assignee: str | None = None,
        mine: Person | None = None,
        overdue: bool = False,
        text: str | None = None,
        after: tuple[int, str, int] | None = None,
    ) -> list[GateRow]:
        """Gates somebody has still to answer, longest open first; among them runs that are out of time and wait for
        somebody to extend or abort them (`can` says what may be done). `workflows` are patterns; `assignee` is asked by
        name or has claimed it; `mine` is asked by name or group, or has claimed it; `text` is part of the title, node
        or run. `after` the `place` of a gate gives the next page."""
        query = GateQuery(
            run=RunId(run) if run is not None else None,
            workflow=workflow,
            workflows=tuple(workflows),
            node=node,
            assignee=assignee,
            mine=mine,
            overdue_at=self._commander.clock.now() if overdue else None,
            text=text,
            after=GatePlace(*after) if after is not None else None,
            limit=limit,
        )
        return await self._commander.store.find_gates(query)

    async def count_gates(self, run: str | None = None, **conditions: Any) -> list[GateCount]:
        """Open gates by workflow and node; the same conditions as `gates`."""
        now, store = self._commander.clock.now(), self._commander.store
        given = {name for name, value in conditions.items() if value}
        if run is None and not given and isinstance(store, CountsGates):
            return await store.count_gates(now)  # 20,000 gates row by row take a second
        counts, overdue, oldest = Counter[tuple[str, str]](), Counter[tuple[str, str]](), dict[tuple[str, str], int]()
        after = None
        while True:
            page = await self.gates(run, _PAGE, after=after, **conditions)
            for row in page:
                key = row.workflow, row.node
                counts[key] += 1
                overdue[key] += row.due is not None and row.due < now
                oldest.setdefault(key, row.opened)
            if len(page) < _PAGE:
                break
            after = page[-1].place
        return [GateCount(*key, count, overdue[key], oldest[key]) for key, count in sorted(counts.items())]

    async def gate(self, run: str, visit: int) -> GateView:
        """One gate with everything about it: its form and input, comments, attachments, the answers so far. Raises
        CommandRefused(NOT_FOUND)."""
        return await view_of_gate(self.run(run), visit)

    async def gate_again(self, before: GateView) -> GateView:
        """A gate as it is now, by what `gate` has given before."""
        return await view_again(self.run(before.run), before)

    async def complete_gate(
        self,
        run: str,
        visit: int,
        data: Json = None,
        *,
        by: str | None = None,
        force: bool = False,
        person: Person | None = None,
        comment: str | None = None,
    ) -> None:
        """Answers a gate; see `Run.complete_gate`."""
        await self.run(run).complete_gate(TokenId(visit), data, by=by, force=force, person=person, comment=comment)

    async def complete_gates(
        self,
        gates: Iterable[tuple[str, int]],
        data: Json = None,
        *,
        by: str | None = None,
        force: bool = False,
        person: Person | None = None,
    ) -> list[GateOutcome]:
        """Answers many gates, named as (run, visit), with the same data. One that is refused does not affect the
        others."""
        places = asyncio.Semaphore(AT_ONCE)

        async def answer(run: str, visit: int) -> GateOutcome:
            async with places:
                try:
                    await self.run(run).complete_gate(visit, data, by=by, force=force, person=person)
                except CommandRefused as refused:
                    return GateOutcome(run, visit, False, refused)
            return GateOutcome(run, visit, True)

        return list(await asyncio.gather(*(answer(run, visit) for run, visit in gates)))
