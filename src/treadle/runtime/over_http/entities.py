"""Entities behind a service: the methods of `Client.entities`, over HTTP. Must not know a store."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from treadle.runtime.over_http.commanding import OverHttp
from treadle.runtime.over_http.commands import require_name
from treadle.runtime.over_http.connection import segment
from treadle.runtime.over_http.reading import fitted
from treadle.runtime.service.entities import Entities, EntityRow, Found, Legs, Order
from treadle.runtime.service.entity_shapes import Conversion, Crowd, Entity, Positions
from treadle.runtime.service.journeys import Leg
from treadle.store.entities import Passage
from treadle.store.service import Changes

Json = Any


class ServiceEntities(Entities):
    """See the module's docstring."""

    def __init__(self, commander: OverHttp) -> None:
        self._http = commander.connection
        self._reader = commander.reader
        self._commander = self._caller = commander

    async def list(
        self,
        *,
        type: str | None = None,
        workflow: str | None = None,
        section: str | None = None,
        text: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> Found:
        asked = {"type": type, "workflow": workflow, "section": section, "text": text, "before": before}
        return [fitted(row, Entity) async for row in self._reader.pages("/entities", asked, limit)]

    async def get(self, type: str, id: str) -> Entity:
        return fitted(await self._http.get(_path(type, id)), Entity)

    async def add(self, row: EntityRow, also: Changes | None = None) -> Entity:  # noqa: ARG002
        given = {"type": row.type, "id": row.id, "name": row.name, "email": row.email, "attributes": row.attributes}
        await self._http.send("POST", "/entities", {key: part for key, part in given.items() if part is not None})
        return await self.get(row.type, row.id)

    async def update(
        self,
        type: str,
        id: str,
        *,
        name: str | UnsetType | None = UNSET,
        email: str | UnsetType | None = UNSET,
        attributes: dict[str, Json] | UnsetType = UNSET,
    ) -> Entity:
        given = {"name": name, "email": email, "attributes": attributes}
        change = {key: part for key, part in given.items() if part is not UNSET}
        return fitted(await self._http.send("PATCH", _path(type, id), change), Entity)

    async def delete(self, type: str, id: str) -> None:
        await self._http.send("DELETE", _path(type, id))

    async def journey(self, type: str, id: str, *, before: Order | None = None, limit: int | None = None) -> Legs:
        found: Legs = []
        async for row in self._reader.pages(f"{_path(type, id)}/journey", {}):
            leg = msgspec.convert(row, Leg)
            if before is None or leg.first < before:
                found.append(leg)
            if limit is not None and len(found) >= limit:
                break
        return found

    async def move(
        self,
        type: str,
        id: str,
        workflow: str,
        *,
        node: str | None = None,
        section: str | None = None,
        reason: str | None = None,
        by: str = "operator",
        request: str = "",  # noqa: ARG002
    ) -> Entity:
        require_name(by, self._caller.user)
        given = {"workflow": workflow, "node": node, "section": section, "reason": reason}
        body = {key: part for key, part in given.items() if part is not None}
        return fitted(await self._http.send("POST", f"{_path(type, id)}/move", body), Entity)

    async def positions(
        self,
        workflow: str,
        *,
        node: str | None = None,
        edge: str | None = None,
        section: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> Positions:
        path = f"/workflows/{segment(workflow)}/positions"
        asked = {"node": node, "edge": edge, "section": section, "before": before}
        found = [fitted(row, Entity) async for row in self._reader.pages(path, asked, limit)]
        places = (await self._http.get(path, {"limit": 1}))["places"]
        return Positions(workflow, [msgspec.convert(place, Crowd) for place in places], found)

    async def conversion(self, workflow: str, since: int = 0) -> Conversion:
        found = await self._http.get(f"/workflows/{segment(workflow)}/conversion", {"since": since})
        parts = (_passages(found[f"{kind}s"], kind) for kind in ("edge", "section", "node"))
        return Conversion(workflow, since, *parts)


def _path(type: str, id: str) -> str:
    return f"/entities/{segment(type)}/{segment(id)}"


def _passages(rows: Json, kind: str) -> Json:
    return [fitted({**row, "kind": kind, "place": row[kind]}, Passage) for row in rows]
