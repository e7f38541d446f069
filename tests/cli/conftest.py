"""Where a verb is asked: of a store, or of a service. A test that takes one of these fixtures is run for both."""

from __future__ import annotations

import pytest

from tests.cli.served import ServedShell
from tests.cli.shell import Shell


@pytest.fixture(params=["store", "server"])
def desk(request: pytest.FixtureRequest) -> Shell:
    """A folder nobody else works in: with a store of its own, or with a service that has its store."""
    if request.param == "server":
        return ServedShell(request.getfixturevalue("services").project())
    return Shell(request.getfixturevalue("tmp_path"))


@pytest.fixture(scope="module", params=["store", "server"])
def shared_desk(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """The same, shared by the tests of a module."""
    if request.param == "server":
        return ServedShell(request.getfixturevalue("services").project())
    return Shell(tmp_path_factory.mktemp("desk"))
