"""A project's library: `tasks` and `actions` that many definitions use by name, in a file of their own.

Owns how such a file is read. Everything a definition takes from it becomes part of the definition when that is loaded,
so a deployed version needs no library.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any

from treadle.errors import DefinitionError
from treadle.language.limits import BOUNDS
from treadle.language.problem import Problem, did_you_mean
from treadle.language.reading import NOTHING_KNOWN, Reading
from treadle.language.shapes import found
from treadle.language.source import Refusal, Source
from treadle.language.text import read_text

Json = Any
Library = Mapping[str, Mapping[str, Json]]
SECTIONS = ("tasks", "actions")


def read_library(given: Library | str | FilePath | None) -> Library | None:
    """The library given as a value, or in the file at a path. Raises OSError, DefinitionError."""
    if isinstance(given, str | FilePath):
        return library_in(FilePath(given).read_bytes(), str(given))
    return given


def library_in(text: str | bytes, name: str) -> Library:
    """The library in a text. Raises DefinitionError with every problem."""
    try:
        sources = read_text(text, name, BOUNDS)
    except Refusal as refusal:
        raise DefinitionError(_refused(Source(None, name), refusal)) from None
    if len(sources) != 1 or not isinstance(sources[0].value, dict):
        wrong = Refusal("a library is one document with `tasks`, `actions` or both")
        raise DefinitionError(_refused(sources[0] if sources else Source(None, name), wrong))
    reading = Reading(sources[0], NOTHING_KNOWN)
    for key, value in sources[0].value.items():
        if key not in SECTIONS:
            hint = did_you_mean(key, SECTIONS) or "known fields: tasks, actions"
            reading.problem("UNKNOWN_FIELD", (key,), f"a library has no field `{key[:60]}`", hint, on_key=True)
        elif value is not None and not isinstance(value, dict):
            reading.problem("BAD_VALUE", (key,), f"expected a map from names, found {found(value)}")
    if reading.problems:
        raise DefinitionError(reading.problems)
    return {key: sources[0].value.get(key) or {} for key in SECTIONS}


def _refused(source: Source, refusal: Refusal) -> list[Problem]:
    reading = Reading(source, NOTHING_KNOWN)
    reading.refused(refusal)
    return reading.problems
