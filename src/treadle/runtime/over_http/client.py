"""The face of a service: the methods of a client of a store, over HTTP.

    async with connect("https://treadle.example", key="tdl_…") as client:
        run = await client.start("order", {"id": 7})
        print(await run.result())

Owns what a client does otherwise when a service is in between: deploying sends the definition, keys and queues are
asked of the service."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from treadle.errors import CommandRefused
from treadle.language.document import document_of
from treadle.runtime.access.keys import Key, prefix_of
from treadle.runtime.client import Client, Definition, Deployed, workflow_of
from treadle.runtime.operate.fsck import Report
from treadle.runtime.over_http.commanding import OverHttp
from treadle.runtime.over_http.commands import require_name
from treadle.runtime.over_http.connection import segment
from treadle.runtime.over_http.entities import ServiceEntities
from treadle.runtime.over_http.other_systems import ServiceHooks, ServiceSubscriptions
from treadle.runtime.over_http.reading import fitted
from treadle.runtime.over_http.secrets import ServiceSecrets
from treadle.runtime.over_http.tasks import ServiceTasks
from treadle.runtime.over_http.withheld import Withheld
from treadle.runtime.over_http.workflows import ServiceWorkflows
from treadle.runtime.queue.queue_settings import QueueView
from treadle.runtime.run import Run
from treadle.store.work import QueueRules

Json = Any


class ServiceClient(Withheld, ServiceWorkflows, Client):
    """See the module's docstring."""

    _commander: OverHttp

    def __init__(self, commander: OverHttp) -> None:
        super().__init__(commander)
        self._http = commander.connection

    @property
    def store_kind(self) -> str:
        return "service"

    async def deploy(self, definition: Definition, *, expected: int | None = None) -> Deployed:
        """Sends a definition to the service, which checks it against the functions its engines know. Another newest
        version than `expected` is refused with CommandRefused(STALE_VERSION)."""
        condition = {} if expected is None else {"If-Match": f'"{expected}"'} if expected else {"If-None-Match": "*"}
        document = document_of(workflow_of(definition))
        answer = await self._http.send("POST", "/workflows", document, headers=condition)
        return fitted(answer, Deployed)

    async def draw(self, workflow: str, drawing: Json, version: int | None = None) -> bool:
        before = await self.drawing(workflow, version)
        if before == drawing:
            return False
        await self._http.send("PUT", f"/workflows/{segment(workflow)}/canvas", drawing, query={"version": version})
        return True

    async def drawing(self, workflow: str, version: int | None = None) -> Json:
        path = f"/workflows/{segment(workflow)}" + (f"/versions/{version}" if version is not None else "")
        return (await self._http.get(path))["canvas"]

    async def queues(self) -> list[QueueView]:
        return [fitted(row, QueueView) for row in await self._http.all_of("/queues")]

    async def set_queue(self, queue: str, rules: QueueRules) -> None:
        given = {name: value for name, value in msgspec.to_builtins(rules).items() if value is not None}
        await self._http.send("PUT", f"/queues/{segment(queue)}", given)

    async def fsck(self, progress: Any = None) -> Report:  # noqa: ARG002
        raise CommandRefused("BAD_REQUEST", "a store is checked where it is: treadle fsck --store …")

    async def fire_schedule(self, name: str, *, by: str = "operator", key: str | None = None) -> Run:
        """Starts a run of a schedule now, as the caller of the service. With the same `key` once."""
        require_name(by, self._commander.user)
        told = await self._http.send("POST", f"/schedules/{segment(name)}/fire", once=key or False)
        return self.run(told["run"])

    @property
    def keys(self) -> ServiceKeys:  # type: ignore[override]
        return ServiceKeys(self._commander)

    @property
    def entities(self) -> ServiceEntities:
        return ServiceEntities(self._commander)

    @property
    def hooks(self) -> ServiceHooks:
        return ServiceHooks(self._commander)

    @property
    def subscriptions(self) -> ServiceSubscriptions:
        return ServiceSubscriptions(self._commander)

    @property
    def secrets(self) -> ServiceSecrets:
        return ServiceSecrets(self._commander)

    @property
    def tasks(self) -> ServiceTasks:
        return ServiceTasks(self._commander)


class ServiceKeys:
    """The keys of the store behind a service."""

    def __init__(self, commander: OverHttp) -> None:
        self._http = commander.connection

    async def list(self) -> list[Key]:
        rows = reversed(await self._http.all_of("/keys"))  # oldest first, as a store lists them
        return [msgspec.convert({**_fields(row), "hash": ""}, Key) for row in rows]

    async def create(
        self,
        name: str,
        roles: Sequence[str],
        *,
        user: str | None = None,
        groups: Sequence[str] = (),
        workflows: Sequence[str] | None = None,
        expires: int | None = None,
        by: str | None = None,  # noqa: ARG002
    ) -> tuple[Key, str]:
        given = {"name": name, "roles": list(roles), "user": user, "groups": list(groups), "expires": expires}
        given["workflows"] = list(workflows) if workflows is not None else None
        row = await self._http.send("POST", "/keys", {key: value for key, value in given.items() if value is not None})
        return msgspec.convert({**_fields(row), "hash": ""}, Key), row["key"]

    async def revoke(self, id: str) -> Key:
        """Ends a key, by its id or the text of the key itself, which is not sent."""
        prefix = prefix_of(id) or id
        known = {key.id: key for key in await self.list()}
        await self._http.send("DELETE", f"/keys/{segment(prefix)}")
        return known[prefix]


def _fields(row: dict[str, Json]) -> dict[str, Json]:
    known = {field.name for field in msgspec.structs.fields(Key)}
    return {name: value for name, value in row.items() if name in known}
