"""Secrets behind a service: the methods of `Client.secrets`, over HTTP. Values are sent and never come back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from treadle.actions.secrets import FoundSecret
from treadle.errors import CommandRefused
from treadle.runtime.access.secrets import Audited, Secrets, StoredSecret
from treadle.runtime.over_http.commanding import OverHttp
from treadle.runtime.over_http.commands import require_name
from treadle.runtime.over_http.connection import segment
from treadle.runtime.over_http.reading import fitted


class ServiceSecrets(Secrets):
    """See the module's docstring."""

    def __init__(self, commander: OverHttp) -> None:
        self._http, self._caller = commander.connection, commander

    async def list(self) -> list[StoredSecret]:
        return [_secret(row) for row in await self._http.all_of("/secrets")]

    async def put(
        self,
        name: str,
        value: str,
        hosts: Sequence[str] | None = None,
        *,
        by: str | None = None,
        audited: Audited | None = None,  # noqa: ARG002
    ) -> tuple[StoredSecret, bool]:
        if by is not None:
            require_name(by, self._caller.user)
        is_new = all(known.name != name for known in await self.list())
        given = {"value": value, **({"hosts": [*hosts]} if hosts is not None else {})}
        return _secret(await self._http.send("PUT", f"/secrets/{segment(name)}", given)), is_new

    async def remove(self, name: str, audited: Audited | None = None) -> None:  # noqa: ARG002
        await self._http.send("DELETE", f"/secrets/{segment(name)}")

    async def find(self, name: str) -> FoundSecret | None:  # noqa: ARG002
        raise CommandRefused("BAD_REQUEST", "a service never gives the value of a secret away")

    async def last_used(self) -> dict[str, int]:
        rows = await self._http.all_of("/secrets")
        return {row["name"]: row["last_used"] for row in rows if row["last_used"] is not None}

    async def note_used(self, name: str) -> None:  # noqa: ARG002
        raise CommandRefused("BAD_REQUEST", "a service notes by itself when a secret is used")


def _secret(row: Mapping[str, Any]) -> StoredSecret:
    return fitted({**row, "sealed": ""}, StoredSecret)
