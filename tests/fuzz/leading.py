"""Hooks of Schemathesis: requests that would find nothing are led to things that exist, and nothing waits for long.

Schemathesis loads this module by its name. TREADLE_FUZZ_KNOWN holds what `world.furnish` gave, as JSON; without it
requests stay as they were drawn, but for their waiting times.
"""

from __future__ import annotations

import json
import os
import zlib
from typing import Any

import schemathesis

KNOWN: dict[str, list[Any]] = json.loads(os.environ.get("TREADLE_FUZZ_KNOWN", "{}"))
WAIT_MS = 20
WAIT_MAX_MS = 60_000
"""What the API allows; more than that is refused, and so is not shortened."""


def led(name: str, drawn: Any) -> Any:
    """A value that leads somewhere, for three of four that were drawn; the same for the same."""
    values = KNOWN.get(name)
    number = zlib.crc32(repr(drawn).encode())
    return values[number // 4 % len(values)] if values and number % 4 else drawn


@schemathesis.hook
def map_path_parameters(context: Any, path_parameters: Any) -> Any:
    noun = context.operation.path.removeprefix("/api/v1").split("/")[1]
    if isinstance(path_parameters, dict):
        return {name: led(f"{noun}.{name}", value) for name, value in path_parameters.items()}
    return path_parameters


@schemathesis.hook
def map_query(_context: Any, query: Any) -> Any:
    return {name: led(name, value) for name, value in query.items()} if isinstance(query, dict) else query


@schemathesis.hook
def map_body(_context: Any, body: Any) -> Any:
    return {name: led(name, value) for name, value in body.items()} if isinstance(body, dict) else body


@schemathesis.hook
def before_call(_context: Any, case: Any, _options: Any) -> None:
    for part in (case.query, case.body):
        wait = part.get("wait_ms") if isinstance(part, dict) else None
        if str(wait).isdecimal() and WAIT_MS < int(str(wait)) <= WAIT_MAX_MS:
            part["wait_ms"] = WAIT_MS
