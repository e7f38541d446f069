"""Work of queues behind a service: the methods of `Client.tasks`, over HTTP. Must not know a store or a run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from treadle.model.errors import Error
from treadle.runtime.over_http.commanding import OverHttp
from treadle.runtime.over_http.connection import segment
from treadle.runtime.over_http.reading import fitted
from treadle.runtime.queue.task_id import read_task_id
from treadle.runtime.queue.tasks import Tasks
from treadle.runtime.queue.wanted_work import ClaimedTask, WorkWanted, check_wanted
from treadle.store.port import RunQuery

Json = Any


class ServiceTasks(Tasks):
    """See the module's docstring."""

    def __init__(self, commander: OverHttp) -> None:
        self._http, self._reader = commander.connection, commander.reader

    async def claim(
        self,
        wanted: WorkWanted,
        sees: Callable[[str], bool] | None = None,  # noqa: ARG002
        is_there: Callable[[], Awaitable[bool]] | None = None,  # noqa: ARG002
    ) -> list[ClaimedTask]:
        """Claims work. The service looks by itself which workflows the key is for, and whether the caller has gone."""
        check_wanted(wanted)
        given = {"queues": wanted.queues, "worker": wanted.worker, "kinds": wanted.kinds, "limit": wanted.limit}
        given |= {"lease_ms": wanted.lease_ms, "wait_ms": wanted.wait_ms}
        body = {name: part for name, part in given.items() if part is not None}
        # Not asked again if its answer is lost: the work would be claimed twice. Its lease gives it back.
        told = await self._http.send("POST", "/tasks/claim", body, once=False, wait_ms=wanted.wait_ms)
        return [fitted(row, ClaimedTask) for row in told["tasks"]]

    async def heartbeat(self, task: str, lease_ms: int) -> int | None:
        told = await self._http.send("POST", _path(task, "heartbeat"), {"lease_ms": lease_ms}, once=False)
        until: int | None = told["lease_until"]
        return until

    async def complete(self, task: str, output: Json, spent: Json = None) -> None:
        await self._http.send("POST", _path(task, "complete"), {"output": output, **(spent or {})})

    async def fail(self, task: str, error: Error, spent: Json = None) -> None:
        told = {"kind": error.kind, "message": error.message, "retryable": error.retryable, "details": error.details}
        await self._http.send("POST", _path(task, "fail"), {"error": told, **(spent or {})})

    async def progress(self, task: str, name: str, data: Json) -> None:
        await self._http.send("POST", _path(task, "progress"), {"name": name, "data": data})

    def rules_changed(self) -> None:
        """Nothing to do: the service follows its own rules."""

    async def workflow(self, task: str) -> str | None:
        rows = await self._reader.find_runs(RunQuery(run=read_task_id(task).run, limit=1))
        return rows[0].workflow if rows else None


def _path(task: str, verb: str) -> str:
    return f"/tasks/{segment(task)}/{verb}"
