"""Every store there is, behind one face: `store` speaks the port's verbs and answers when they are done."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contract.making import Opener, Spoken
from treadle.store.memory import MemoryStore
from treadle.store.sqlite import SqliteStore


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as made:
        yield made


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path, runner: asyncio.Runner) -> Iterator[Any]:
    if request.param == "memory":
        yield Spoken(MemoryStore(), runner)
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
