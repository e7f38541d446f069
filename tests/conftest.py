"""Settings every suite shares. Warnings are errors: pyproject.toml says so, once, for everybody."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from hypothesis import HealthCheck, settings

from tests.seed import SEED
from treadle.kernel import decide
from treadle.runtime.surroundings import outage

# No deadline: a loaded machine is not a bug. Fresh examples every time, because a property that holds only for one seed
# does not hold; `tests.seed` says when they are not fresh. A failure prints the blob that reproduces it.
settings.register_profile(
    "treadle",
    deadline=None,
    derandomize=False,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("treadle")

IS_NATIVE = not str(decide.__file__).endswith(".py")
"""Whether the kernel under test is compiled (`./dev native test`)."""

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A suite started in the background inherits deafness for Ctrl-C, and so would every process it tries that on.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    if SEED is not None and config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = SEED


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if IS_NATIVE and item.get_closest_marker("interpreted"):
            item.add_marker(pytest.mark.skip(reason="it reaches into the kernel, and this one is compiled"))


@pytest.fixture(autouse=True)
def own_log() -> Iterator[None]:
    """A test finds logging as Python starts with it, whatever the one before it has configured: verbs of the command
    line configure it for their process, which here is everybody's. An outage of another test's store is over, too."""
    structlog.reset_defaults()
    outage.OUTAGE.forget()
    yield
    structlog.reset_defaults()


@pytest.fixture(scope="session")
def database() -> Iterator[Any]:
    """A `tests.postgres.Database`; imported here, because most runs need no PostgreSQL."""
    from tests import postgres

    with postgres.new_database() as dsn:
        yield postgres.Database(dsn)


@pytest.fixture(scope="session")
def system_database() -> Iterator[Any]:
    """The same on the PostgreSQL this machine has installed."""
    from tests import postgres

    with postgres.system_server() as server, postgres.new_database(server) as dsn:
        yield postgres.Database(dsn)


@pytest.fixture
def dsn() -> Iterator[str]:
    """The address of a database with nothing in it."""
    from tests import postgres

    with postgres.new_database() as made:
        yield made


@pytest.fixture(scope="session")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """`tests.services.Services`: a store behind a service for each test that asks for one."""
    from tests.services import Services

    with Services(tmp_path_factory.mktemp("services")) as made:
        yield made
