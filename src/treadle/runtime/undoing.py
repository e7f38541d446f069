"""The compensations of one run, and what an operator does about one that failed. `Run` has these methods."""

from __future__ import annotations

from typing import TYPE_CHECKING

from treadle.model import commands as c
from treadle.model import events as e
from treadle.model.ids import RecordId, RunId
from treadle.runtime.operate.compensations import CompensationStatus, compensations_of, the_failed


class Undoing:
    """See the module's docstring."""

    id: RunId

    if TYPE_CHECKING:

        async def history(self, after: int = 0, limit: int | None = None) -> list[e.Event]: ...

        async def ask(self, command: c.Command) -> bool: ...

    async def compensations(self) -> list[CompensationStatus]:
        """What it can undo, in the order in which it was done, and what became of each."""
        return compensations_of(await self.history())

    async def retry_compensation(self, record: int | None = None, *, by: str = "operator") -> RecordId:
        """Tries to undo a visit again where that failed, then goes on with the visits before it. Which record: may be
        left out where only one failed."""
        chosen = the_failed(self.id, await self.compensations(), record)
        await self.ask(c.RetryCompensation(chosen, by))
        return chosen

    async def skip_compensation(self, record: int | None = None, *, by: str = "operator") -> RecordId:
        """Leaves a visit undone whose compensation failed, and goes on with the visits before it."""
        chosen = the_failed(self.id, await self.compensations(), record)
        await self.ask(c.SkipCompensation(chosen, by))
        return chosen
