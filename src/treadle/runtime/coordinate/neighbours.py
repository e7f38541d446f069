"""The port through which a coordinator calls the engine around it; `deliver.core.Core` implements it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from treadle.model.ids import RunId
from treadle.runtime.coordinate.gathering import Decided, Item
from treadle.store.port import OutboxRow


class Neighbours(Protocol):
    """Given to the coordinator's constructor. Every method is called on the event loop, between two turns."""

    def durable(self, decided: list[Decided], rows: list[OutboxRow]) -> None:
        """A batch is durable: carries out local effects first, then delivers rows, in order."""

    def answered(self, runs: list[RunId]) -> None:
        """Requests of these runs in the inbox have been answered."""

    async def recover(self) -> None:
        """A commit failed and the store answers again: carries out effects that may have been left undone."""

    def not_here(self, item: Item) -> None:
        """Takes an item whose run this coordinator does not own, or owns no longer."""

    def lost(self, shards: Collection[int]) -> None:
        """The store says that these shards belong to another node."""

    def fenced(self) -> None:
        """The coordinator has stopped because its runs belong to another process: stops their work here, since that
        process executes it."""

    def defect(self, problem: Exception) -> None:
        """Deciding has raised. Production goes on with other runs; a test fails."""
