"""The servers an address names, and the order they are tried in.

Owns what this process has learned about an address: which of its servers was the primary last, and how far that had
come (`witness`). Promises that a server that cannot be reached, starts, only reads, or has gone back does not keep the
next one from being tried, and that all tries together take no longer than one may. Must not say anything on a
connection.

libpq gives each host its whole `connect_timeout` and begins with the first one every time. Here the hosts share the
time, and the last one that was the primary comes first: when the first machine is gone without a word, every new
connection would else wait for it.
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
"""For one try of an address, whatever number of hosts it has."""
NEXT = (OSError, asyncpg.CannotConnectNowError, asyncpg.TargetServerAttributeNotMatched)
"""Why the next host is tried, as libpq does: unreachable, starting or stopping, only reading. A refused password is
none of them."""
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
        """The host that took the last connection."""
        self._refused: set[ServerHost | None] = set()
        self.witness = Witness()
        self.is_pooled: bool | None = None
        """A pooler is in between (PgBouncer), which may give every transaction another connection to the server. Then a
        statement prepared by name is not there in the next one, and neither is LISTEN. None: nobody has looked."""
        self.told: Callable[[str], None] = lambda _problem: None
        """Called when a server is refused because it has gone back, once for each: another one may be in use."""

    @property
    def schema(self) -> str | None:
        """The one the address asks for."""
        return self._address.options.get("search_path", [None])[-1]

    def in_order(self) -> list[ServerHost | None]:
        """The last primary first, then as they are written. [None]: the client's own default."""
        if not self.hosts:
            return [None]
        return sorted(self.hosts, key=lambda host: host != self._primary)

    def settings(self, host: ServerHost | None) -> dict[str, Any]:
        """How asyncpg is told to reach this host and no other."""
        found: dict[str, Any] = {"dsn": self._dsn, "timeout": CONNECT_S / max(1, len(self.hosts))}
        if self.is_pooled is not False:
            found["statement_cache_size"] = 0
        if host is not None:
            found["dsn"] = self._address.without_hosts
            found["host"] = host.name or "localhost"
            found["port"] = host.port or int(os.environ.get("PGPORT") or 5432)
        return found

    def found(self, host: ServerHost | None, sight: Sight) -> None:
        """This one is the primary."""
        self._primary = host
        self._refused.discard(host)
        self.witness.note(sight)

    def refused(self, host: ServerHost | None, objection: str) -> StoreGoneBack:
        """This one has gone back."""
        at = f"{host}: " if len(self.hosts) > 1 else ""
        problem = StoreGoneBack(f"{self.place}: {at}{objection}; it is not used: {REMEDY}")
        if host not in self._refused:
            self._refused.add(host)
            self.told(str(problem))
        return problem

    def learn(self, sights: list[tuple[bool, Sight]]) -> None:
        """What all servers that answered say, with whether they take writes, before the first of them is believed. A
        standby that follows a primary proves that the primary is on its timeline."""
        primaries = [sight for is_primary, sight in sights if is_primary]
        if primaries:
            system = max(primaries, key=lambda sight: sight.timeline or 0).system
            newest = max((sight.timeline or 0 for _, sight in sights if sight.system == system), default=0)
            if newest:
                self.witness.expect(system, newest)


@cache
def way_to(dsn: str) -> Way:
    """Raises StorePlaceError for an address that cannot be read."""
    return Way(dsn)


def _of_environment(options: dict[str, list[str]]) -> tuple[ServerHost, ...]:
    """PGHOST and PGPORT with several hosts; a single one is left to asyncpg, as is a service."""
    names, ports = os.environ.get("PGHOST", ""), os.environ.get("PGPORT", "")
    if "," not in names or "service" in options or "PGSERVICE" in os.environ:
        return ()
    return address_of(f"postgresql:///?host={names}&port={ports}").hosts
