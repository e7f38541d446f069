"""Treadle: a durable, token-based workflow engine.

    from treadle import Engine, Flow

    async with Engine("treadle.db") as engine:
        run = await engine.start(flow, {"topic": "tea"})
        print(await run.result())

The names below are the public face, together with `treadle.testing`: what one calls or catches; what comes back needs
no import. docs/reference/python-api.md describes each. They are imported when first used: the command line starts with
this package, and `--help` must not pay for an engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from treadle.errors import CommandRefused, DefinitionError, TreadleError
    from treadle.language import load_file, load_text, load_value
    from treadle.language.builder import Flow
    from treadle.runtime.blocking_types import open
    from treadle.runtime.connecting import connect
    from treadle.runtime.engine import Engine, EngineSettings
    from treadle.runtime.operate.retention_setting import Keep
    from treadle.runtime.run import RunFailed
    from treadle.runtime.schedule.definition import Schedule
    from treadle.tasks.decorator import task

__all__ = [
    "CommandRefused",
    "DefinitionError",
    "Engine",
    "EngineSettings",
    "Flow",
    "Keep",
    "RunFailed",
    "Schedule",
    "TreadleError",
    "connect",
    "load_file",
    "load_text",
    "load_value",
    "open",
    "task",
]

_HOMES = {
    "CommandRefused": "treadle.errors",
    "DefinitionError": "treadle.errors",
    "Engine": "treadle.runtime.engine",
    "EngineSettings": "treadle.runtime.engine",
    "Flow": "treadle.language.builder",
    "Keep": "treadle.runtime.operate.retention_setting",
    "RunFailed": "treadle.runtime.run",
    "Schedule": "treadle.runtime.schedule.definition",
    "TreadleError": "treadle.errors",
    "connect": "treadle.runtime.connecting",
    "load_file": "treadle.language",
    "load_text": "treadle.language",
    "load_value": "treadle.language",
    "open": "treadle.runtime.blocking",
    "task": "treadle.tasks.decorator",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'treadle' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
