"""Where a store is: a file, a database, or this process's memory.

Owns how a place is written and how it is shown. Promises that what is shown has no secret in it: whoever prints, logs
or raises a place cannot print its password by mistake. Must not open anything.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from treadle.errors import StorePlaceError

SCHEMES = ("postgresql://", "postgres://")
MEMORY = ":memory:"
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+):/")


class Place:
    """See the module's docstring. `str(place)` is for people, `dsn` and `path` are for who opens it."""

    def __init__(self, text: str | os.PathLike[str]) -> None:
        given = os.fspath(text)
        _refuse_other_kinds(given)
        self.dsn = given if given.startswith(SCHEMES) else None
        """Of a database; secret."""
        self.path = None if self.dsn is not None or given == MEMORY else Path(given)
        """Of a file."""
        self._shown = shown(given) if self.dsn is not None else given
        self._given = given

    def __str__(self) -> str:
        return self._shown

    def __repr__(self) -> str:
        return f"Place({self._shown!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Place) and other._given == self._given

    def __hash__(self) -> int:
        return hash(self._given)

    @property
    def is_missing(self) -> bool:
        """There is surely nothing there. What a database holds is seen when it is opened."""
        return self.path is not None and not self.path.exists()


def _refuse_other_kinds(given: str) -> None:
    """An address of something else, or of a database with a slash too few, would be taken for a file's name."""
    scheme = _SCHEME.match(given)
    if scheme is not None and not given.startswith(SCHEMES):
        remedy = "write postgresql://HOST/DATABASE, or the path of a file"
        raise StorePlaceError(f"{scheme[1]}:…", "a store is a SQLite file or a PostgreSQL database", remedy)


def place_of(text: str | os.PathLike[str] | Place) -> Place:
    """A place that may already be one."""
    return text if isinstance(text, Place) else Place(text)


def shown(dsn: str) -> str:
    """The address of a database without what is secret about it: neither user nor password nor options, but the schema,
    where one is named: two stores in one database are two places."""
    try:
        parts = urlsplit(dsn)
        options = parse_qs(parts.query)
        host = parts.hostname or options.get("host", ["localhost"])[0]
        schema = "".join(f"?search_path={name}" for name in options.get("search_path", ())[-1:])
        return f"postgresql://{host}{f':{parts.port}' if parts.port else ''}{parts.path}{schema}"
    except ValueError:  # its text may quote the password, or a part of it
        raise StorePlaceError(
            "postgresql://…",
            "the address cannot be read",
            "write postgresql://USER@HOST:PORT/DATABASE; a password is best in PGPASSWORD or ~/.pgpass, and one in the"
            " address has its / : @ # ? % percent-encoded",
        ) from None
