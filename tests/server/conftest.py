"""One service for each store, shared by all tests of a process: a test uses workflows and keys of its own names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.postgres import new_database
from tests.server.client import Connected, Served


@pytest.fixture(scope="session")
def served_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served")
    with Served(str(folder / "treadle.db"), folder) as service:
        yield service


@pytest.fixture(scope="session")
def served_postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with new_database() as dsn, Served(dsn, tmp_path_factory.mktemp("served_postgres")) as service:
        yield service


@pytest.fixture(params=["sqlite", "postgres"])
def served(request: pytest.FixtureRequest) -> Served:
    """A service on each store."""
    service: Served = request.getfixturevalue(f"served_{request.param}")
    return service


@pytest.fixture(scope="session")
def connected_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connected]:
    folder = tmp_path_factory.mktemp("connected")
    with Connected(str(folder / "treadle.db"), folder) as service:
        yield service


@pytest.fixture(scope="session")
def connected_postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connected]:
    with new_database() as dsn, Connected(dsn, tmp_path_factory.mktemp("connected_postgres")) as service:
        yield service


@pytest.fixture(params=["sqlite", "postgres"])
def connected(request: pytest.FixtureRequest) -> Connected:
    """A service on each store that workers and other systems on loopback talk to."""
    service: Connected = request.getfixturevalue(f"connected_{request.param}")
    return service


@pytest.fixture
def own_service(tmp_path: Path) -> Served:
    """A service of the test's own on a file, not started yet: for tests that kill it."""
    return Served(str(tmp_path / "treadle.db"), tmp_path)
