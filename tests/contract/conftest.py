"""Every store there is, behind one face: `store` speaks the port's verbs and answers when they are done."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contract.life import Life
from tests.contract.making import Opener, Spoken, on_postgres
from tests.contract.shop import MemoryShop, PostgresShop, Shop, SqliteShop
from tests.postgres import new_database
from treadle.store.memory import MemoryStore
from treadle.store.sqlite import SqliteStore


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as made:
        yield made


DATABASES = {"postgres": "database", "system-postgres": "system_database"}


@pytest.fixture(params=["memory", "sqlite", *DATABASES])
def store(request: pytest.FixtureRequest, tmp_path: Path, runner: asyncio.Runner) -> Iterator[Any]:
    if request.param == "memory":
        yield Spoken(MemoryStore(), runner)
        return
    if request.param in DATABASES:
        yield from on_postgres(request.getfixturevalue(DATABASES[request.param]), runner)
        return
    made = Spoken(runner.run(SqliteStore.open(tmp_path / "t.db", payload_max=200)), runner)
    yield made
    assert made.integrity() == []
    made.close()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "t.db"


@pytest.fixture
def opened(place: Path, runner: asyncio.Runner) -> Iterator[Opener]:
    opener = Opener(place, runner)
    yield opener
    for store in opener.opened:
        store.close()


@pytest.fixture(params=["memory", "sqlite", *DATABASES])
def shop(request: pytest.FixtureRequest, tmp_path: Path, runner: asyncio.Runner) -> Iterator[Shop]:
    if request.param == "memory":
        made: Shop = MemoryShop(runner)
        made.begin()
        yield made
        return
    if request.param == "sqlite":
        made = SqliteShop(tmp_path / "t.db", runner)
        made.begin()
        yield made
        assert made.integrity() == []
        made.close()
        return
    database = request.getfixturevalue(DATABASES[request.param])
    made = PostgresShop(runner.run(database.open(payload_max=200)), runner)
    made.dsn = database.dsn
    made.begin()
    yield made
    assert made.integrity() == []
    made.close()


@pytest.fixture
def life(runner: asyncio.Runner) -> Iterator[Life]:
    with new_database() as dsn:
        made = Life(dsn, runner)
        yield made
        assert made.store.integrity() == []
        made.store.close()
