"""Locations of stores: a file, a database, or this process's memory.

Owns how a location is written and how it is shown. Promises that the shown form has no secret in it: a message or log
line cannot contain the password by mistake. Must not open anything.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, unquote

from treadle.errors import StorePlaceError

SCHEMES = ("postgresql://", "postgres://")
MEMORY = ":memory:"
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+):/")
_ADDRESS = re.compile(
    r"(?P<scheme>\w+://)(?P<user>[^/?#]*@)?(?P<hosts>[^/?#@]*)(?P<path>[^?#]*)\??(?P<query>[^#]*)(#.*)?"
)
_HOST = re.compile(r"(?P<name>\[[0-9a-fA-F:.%]+\]|[^:\[\]]*)(:(?P<port>\d*))?")


class StoreLocation:
    """The location of a store. `str(place)` is for people; `dsn` and `path` are for opening it."""

    def __init__(self, text: str | os.PathLike[str]) -> None:
        given = os.fspath(text)
        _refuse_other_kinds(given)
        self.dsn = given if given.startswith(SCHEMES) else None
        """The address of a database; secret. None for any other store."""
        self.path = None if self.dsn is not None or given == MEMORY else Path(given)
        """The path of a file; None for any other store."""
        self._shown = shown(given) if self.dsn is not None else given
        self._given = given

    def __str__(self) -> str:
        return self._shown

    def __repr__(self) -> str:
        return f"StoreLocation({self._shown!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StoreLocation) and other._given == self._given

    def __hash__(self) -> int:
        return hash(self._given)

    @property
    def is_missing(self) -> bool:
        """Whether a file does not exist. Always False for a database: that is seen when it is opened."""
        return self.path is not None and not self.path.exists()


def _refuse_other_kinds(given: str) -> None:
    """Refuses addresses of other kinds, and `postgresql:/` with one slash: they would be taken for file names."""
    scheme = _SCHEME.match(given)
    if scheme is not None and not given.startswith(SCHEMES):
        remedy = "write postgresql://HOST/DATABASE, or the path of a file"
        raise StorePlaceError(f"{scheme[1]}:…", "a store is a SQLite file or a PostgreSQL database", remedy)


def place_of(text: str | os.PathLike[str] | StoreLocation) -> StoreLocation:
    """The location that a text stands for; a location is returned as it is."""
    return text if isinstance(text, StoreLocation) else StoreLocation(text)


def shown(dsn: str) -> str:
    """The address of a database without user, password and options. A schema is shown, because two stores in one
    database are two locations."""
    address = address_of(dsn)
    hosts = ",".join(str(host) for host in address.hosts) or "localhost"
    schema = "".join(f"?search_path={name}" for name in address.options.get("search_path", ())[-1:])
    return f"postgresql://{hosts}{address.path}{schema}"


class ServerHost(NamedTuple):
    """One server of an address."""

    name: str
    """A name, an IP address, or the directory of a Unix socket; "" is the client's default."""
    port: int | None = None

    def __str__(self) -> str:
        name = f"[{self.name}]" if ":" in self.name else self.name or "localhost"
        return f"{name}:{self.port}" if self.port else name


class DatabaseAddress(NamedTuple):
    """The parts of `postgresql://…` that Treadle reads itself, as libpq reads them. Secret."""

    hosts: tuple[ServerHost, ...]
    """The hosts in the order they are written; empty: the client's default."""
    path: str
    options: dict[str, list[str]]
    without_hosts: str
    """The address with its hosts left out: user, password, database and options."""


def address_of(dsn: str) -> DatabaseAddress:
    """The parts of an address. Raises StorePlaceError, which quotes nothing: any part may be a password."""
    parts = _ADDRESS.fullmatch(dsn)
    if parts is None or (parts["user"] or "").count("@") > 1:
        raise _unreadable()
    options = parse_qs(parts["query"])
    try:
        hosts = _hosts(parts["hosts"]) if parts["hosts"] else _hosts_of(options)
    except ValueError:
        raise _unreadable() from None
    query = f"?{parts['query']}" if parts["query"] else ""
    return DatabaseAddress(
        hosts, parts["path"], options, f"{parts['scheme']}{parts['user'] or ''}{parts['path']}{query}"
    )


def _hosts(text: str) -> tuple[ServerHost, ...]:
    """`h1,h2:5433,[::1]:5434`. Raises ValueError."""
    found = []
    for one in text.split(","):
        host = _HOST.fullmatch(one)
        port = int(host["port"]) if host is not None and host["port"] else None
        if host is None or (port is not None and not 0 < port < 65_536):
            raise ValueError("neither a host nor a host with its port")
        found.append(ServerHost(unquote(host["name"].strip("[]")), port))
    return tuple(found)


def _hosts_of(options: dict[str, list[str]]) -> tuple[ServerHost, ...]:
    """`?host=h1,h2&port=5432,5433`. A single port is for all hosts. Raises ValueError."""
    names = [name for name in options.get("host", [""])[-1].split(",") if name]
    ports = [int(port) if port else None for port in options.get("port", [""])[-1].split(",")]
    if len(ports) not in (1, len(names)) and names:
        raise ValueError("as many ports as hosts, or one")
    return tuple(ServerHost(name, ports[place if len(ports) > 1 else 0]) for place, name in enumerate(names))


def _unreadable() -> StorePlaceError:
    return StorePlaceError(
        "postgresql://…",
        "the address cannot be read",
        "write postgresql://USER@HOST:PORT/DATABASE, or HOST:PORT,HOST:PORT for several servers; a password is best in"
        " PGPASSWORD or ~/.pgpass, and one in the address has its / : @ # ? % percent-encoded",
    )
