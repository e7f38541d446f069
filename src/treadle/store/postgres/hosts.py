"""The servers of an address, and the order in which they are tried.

Owns what this process has learned about an address: which server was the last primary, and how far it had come
(`witness`). Promises that the next server is tried if one cannot be reached, is starting, only reads, or has gone back,
and that all tries together take no longer than one may. Must not use a connection.

libpq gives each host its whole `connect_timeout` and begins with the first one every time. Here the hosts share the
time, and the last primary comes first: otherwise every new connection would wait for the first machine when that is
down.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import Any

import asyncpg

from treadle.errors import StoreGoneBack
from treadle.store.places import ServerHost, address_of, shown
from treadle.store.postgres.witness import Sight, Witness

CONNECT_S = 10.0
"""Timeout of one try of an address, whatever the number of its hosts."""
NEXT = (OSError, asyncpg.CannotConnectNowError, asyncpg.TargetServerAttributeNotMatched)
"""Errors after which the next host is tried, as libpq does: unreachable, starting or stopping, only reading. A refused
password is none of them."""
REMEDY = (
    "stop that server, and make it a standby of the new primary (pg_rewind, pg_basebackup); if it was put there on"
    " purpose, restart this process"
)


class Way:
    """What is known of the servers of one address. One for each address in a process (`way_to`)."""

    def __init__(self, dsn: str) -> None:
        address = address_of(dsn)
        self._dsn = dsn
        self.place = shown(dsn)
        self._address = address
        self.hosts = address.hosts or _of_environment(address.options)
        self._primary: ServerHost | None = None
        """The host of the last connection."""
        self._refused: set[ServerHost | None] = set()
        self.witness = Witness()
        self.is_pooled: bool | None = None
        """Whether there is a pooler in between (PgBouncer), which may give every transaction another connection to the
        server. Then named statements and LISTEN do not work across transactions. None: not yet known."""
        self.told: Callable[[str], None] = lambda _problem: None
        """Called once for each server that is refused because it has gone back; another one may be in use."""

    @property
    def schema(self) -> str | None:
        """The schema that the address names."""
        return self._address.options.get("search_path", [None])[-1]

    def in_order(self) -> list[ServerHost | None]:
        """The hosts: the last primary first, then as they are written. [None]: the client's default."""
        if not self.hosts:
            return [None]
        return sorted(self.hosts, key=lambda host: host != self._primary)

    def settings(self, host: ServerHost | None) -> dict[str, Any]:
        """Arguments with which asyncpg connects to this host and no other."""
        found: dict[str, Any] = {"dsn": self._dsn, "timeout": CONNECT_S / max(1, len(self.hosts))}
        if self.is_pooled is not False:
            found["statement_cache_size"] = 0
        if host is not None:
            found["dsn"] = self._address.without_hosts
            found["host"] = host.name or "localhost"
            found["port"] = host.port or int(os.environ.get("PGPORT") or 5432)
        return found

    def found(self, host: ServerHost | None, sight: Sight) -> None:
        """Notes that this host is the primary."""
        self._primary = host
        self._refused.discard(host)
        self.witness.note(sight)

    def refused(self, host: ServerHost | None, objection: str) -> StoreGoneBack:
        """Notes that this host has gone back."""
        at = f"{host}: " if len(self.hosts) > 1 else ""
        problem = StoreGoneBack(f"{self.place}: {at}{objection}; it is not used: {REMEDY}")
        if host not in self._refused:
            self._refused.add(host)
            self.told(str(problem))
        return problem

    def learn(self, sights: list[tuple[bool, Sight]]) -> None:
        """Notes the answers of all servers, each with whether it takes writes, before the first of them is believed. A
        standby that follows a primary proves that the primary is on its timeline."""
        primaries = [sight for is_primary, sight in sights if is_primary]
        if primaries:
            system = max(primaries, key=lambda sight: sight.timeline or 0).system
            newest = max((sight.timeline or 0 for _, sight in sights if sight.system == system), default=0)
            if newest:
                self.witness.expect(system, newest)


@cache
def way_to(dsn: str) -> Way:
    """The Way of an address, one per process. Raises StorePlaceError for an address that cannot be read."""
    return Way(dsn)


def _of_environment(options: dict[str, list[str]]) -> tuple[ServerHost, ...]:
    """Hosts of PGHOST and PGPORT if they name several; a single one, or a service, is left to asyncpg."""
    names, ports = os.environ.get("PGHOST", ""), os.environ.get("PGPORT", "")
    if "," not in names or "service" in options or "PGSERVICE" in os.environ:
        return ()
    return address_of(f"postgresql:///?host={names}&port={ports}").hosts
