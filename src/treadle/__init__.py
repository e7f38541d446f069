"""Treadle: a durable, token-based workflow engine.

    from treadle import Flow, load_file

The names below are the public face, together with `treadle.testing`; docs/reference/python-api.md describes each. They
are imported when first used: the command line starts with this package, and `--help` must not pay for a YAML parser.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from treadle.errors import DefinitionError, TreadleError
    from treadle.language import Loaded, Problem, load_file, load_text, load_value
    from treadle.language.builder import Flow
    from treadle.tasks.decorator import task

__all__ = [
    "DefinitionError",
    "Flow",
    "Loaded",
    "Problem",
    "TreadleError",
    "load_file",
    "load_text",
    "load_value",
    "task",
]

_HOMES = {
    "DefinitionError": "treadle.errors",
    "Flow": "treadle.language.builder",
    "Loaded": "treadle.language",
    "Problem": "treadle.language",
    "TreadleError": "treadle.errors",
    "load_file": "treadle.language",
    "load_text": "treadle.language",
    "load_value": "treadle.language",
    "task": "treadle.tasks.decorator",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'treadle' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
