"""Queued runs as people look at them. `Client` has this method."""

from __future__ import annotations

from treadle.errors import CommandRefused
from treadle.runtime.command.commander import Commander
from treadle.runtime.view.run_queue import QueuedRun as QueuedRun
from treadle.runtime.view.run_queue import queue_of


class RunQueueFace:
    """See the module's docstring."""

    _commander: Commander

    async def queue(self, workflow: str, limit: int = 100) -> list[QueuedRun]:
        """The runs of a workflow that wait for their start (`concurrency`, `rate`, `debounce`, `batch`), in the order
        in which they will start. Raises CommandRefused(NOT_FOUND)."""
        library = self._commander.library
        if await library.graph(workflow) is None:
            raise CommandRefused("NOT_FOUND", f"there is no workflow {workflow!r}: deploy it first")
        return await queue_of(self._commander.store, library, workflow, limit)
