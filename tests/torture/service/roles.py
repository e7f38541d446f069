"""Processes of the service's torture: a server as operators start it, and the client. Imports all that they need."""

from __future__ import annotations

import treadle.server.projects
import treadle.server.serving  # noqa: F401  # a server imports them when it begins: not in each child
from tests.torture.service import client
from treadle.cli.main import run_verb


def serve(words: list[str]) -> int:
    """`treadle serve …`; its exit code."""
    return run_verb(words, debug=False)


SERVICE_ROLES = {"serve": serve, "service-client": client.main}
