"""Scenario files → documents that know their lines.

Owns how scenarios differ from definitions as text: larger files, any scalar as a key, `<<`. The reading itself is
the language's (`treadle.language.text`). Must not know what a scenario is.
"""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Any

from treadle.errors import ScenarioError
from treadle.language.limits import Bounds
from treadle.language.load import Known
from treadle.language.source import Refusal, Source, Spot
from treadle.language.text import read_text

Json = Any
Path = tuple[str | int, ...]

BOUNDS = Bounds(text_bytes=64 << 20, values=1_000_000, documents=10_000, second_reading_bytes=64 << 10)
"""A scenario file is its author's own, and long: the largest we have holds 100 scenarios of up to 2,000 values. Its
bounds only stop accidents such as an alias bomb."""


class Document:
    """One document of a file: its value, and where everything in it stands."""

    __slots__ = ("_source", "known")

    def __init__(self, source: Source, known: Known) -> None:
        self._source = source
        self.known = known
        """What its definitions may use beside what stands in it: a project's library, its worker types."""

    @property
    def file(self) -> str:
        return self._source.file

    @property
    def value(self) -> Json:
        return self._source.value

    @property
    def line(self) -> int:
        """Where the document begins."""
        return self.spot(()).line

    @property
    def title(self) -> str:
        """What the document calls itself, whatever else is wrong with it."""
        title = self.value.get("scenario") if isinstance(self.value, dict) else None
        return title if isinstance(title, str) else ""

    def spot(self, path: Path, *, key: bool = False) -> Spot:
        """Line and column of a path, or of what is nearest around it; `key`: of the key itself."""
        spot = self._source.spot(path, key=key)
        assert spot is not None, "what was read from text has a place"
        return spot

    def source(self, *path: str | int) -> Source:
        """What stands at `path`, as the definition loader likes it: a document of its own, with all its positions."""
        part = self._source.part(*path)
        return Source(part.value, part.file, part.mark)


def read_file(path: str | FilePath, known: Known | None = None) -> list[Document]:
    """Every document of a file; one that cannot be read is refused like one that makes no sense."""
    try:
        text = FilePath(path).read_bytes()
    except OSError as problem:
        raise ScenarioError(f"{path}: cannot be read: {problem}") from None
    return read_documents(text, str(path), known)


def read_documents(text: str | bytes, file: str, known: Known | None = None) -> list[Document]:
    """Every document of a file; empty ones do not count. Raises `ScenarioError` on text that is not YAML."""
    try:
        sources = read_text(text, file, BOUNDS, relaxed=True)
    except Refusal as refusal:
        place = f":{refusal.spot.line}:{refusal.spot.column}" if refusal.spot is not None else ""
        hint = f" ({refusal.hint})" if refusal.hint else ""
        raise ScenarioError(f"{file}{place}: {refusal.message}{hint}") from None
    return [Document(source, known or {}) for source in sources if source.value is not None]
