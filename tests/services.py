"""Services for tests that ask over HTTP what others ask of a store: one process, many stores, a store for each test.

`treadle serve --project NAME=STORE…` serves many stores from one process, so a test gets an empty store of its own
without waiting for a process to begin. Tests that kill a service, or need settings of their own, start one themselves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from tests.server.client import Served
from treadle import connect

STORES = 24
"""Stores of one process. When all are taken, another process begins."""
ROLES = ("operator", "author", "approver")
"""What a person may do who is no admin."""


class Project:
    """A store behind a service: `url` is its address, `folder` has the file `treadle.db`."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder
        self._key: str | None = None
        self._keys: dict[tuple[str, bool], str] = {}

    @property
    def store(self) -> Path:
        return self.folder / "treadle.db"

    @property
    def key(self) -> str:
        """A key that may do everything, made on the store. Its user is `operator`, as who names nobody on a store."""
        if self._key is None:
            self._key = asyncio.run(_made(str(self.store), None, "operator", ("admin",)))
        return self._key

    def key_of(self, user: str, *, groups: Sequence[str] = (), admin: bool = False) -> str:
        """The key of a person, made by the service, which knows it at once."""
        if (user, admin) not in self._keys:
            roles = ("admin",) if admin else ROLES
            self._keys[user, admin] = asyncio.run(_made(self.url, self.key, user, roles, groups))
        return self._keys[user, admin]


async def _made(place: str, key: str | None, user: str, roles: Sequence[str], groups: Sequence[str] = ()) -> str:
    async with connect(place, key=key) as client:
        return (await client.keys.create(f"{user} as {roles[0]}", roles, user=user, groups=groups))[1]


class Services:
    """Hands out projects, and ends its processes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._served: list[Served] = []
        self._free: list[Project] = []

    def project(self) -> Project:
        """A store that nobody else uses."""
        if not self._free:
            self._free = self._begin()
        return self._free.pop()

    def _begin(self) -> list[Project]:
        home = self._folder / f"served{len(self._served)}"
        names = [f"p{number}" for number in range(STORES)]
        for name in names:
            (home / name).mkdir(parents=True)
        projects = [word for name in names for word in ("--project", f"{name}={home / name / 'treadle.db'}")]
        service = Served(str(home / "treadle.db"), home, *projects).start()
        self._served.append(service)
        return [Project(f"{service.url}/p/{name}", home / name) for name in names]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        for service in self._served:
            service.kill()
