"""Mappings: right-hand sides (sources) and left-hand sides (targets), compiled (1.6).

A source is a string that begins with `$` (a path), `{cel: …}`, `{literal: …}`, or any other JSON, which is
itself; nothing inside that JSON is looked at. A missing path gives null. Values are handed out, not copied:
do not change them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct

from treadle.errors import ExpressionError, PathSyntax
from treadle.expression.cel import compile_cel
from treadle.expression.paths import MISSING, Path, parse_path
from treadle.expression.values import kind_of
from treadle.expression.view import View

_WRITABLE = ("state", "output")


class CompiledSource(Struct, frozen=True):
    """A right-hand side. Only `{cel: …}` can raise EvaluationError."""

    evaluate: Callable[[View], Any]
    reads: frozenset[Path] = frozenset()
    marking: frozenset[str] = frozenset()
    path: Path | None = None
    """The path of a source that is one: a caller that has the value at hand may look there without a view."""

    @property
    def needs_marking(self) -> bool:
        return bool(self.marking)


def compile_source(source: Any, names: Iterable[str] = ()) -> CompiledSource:
    """Any JSON that stands on the right-hand side of a mapping."""
    if isinstance(source, str) and source.startswith("$"):
        return _path_source(source)
    if isinstance(source, dict) and source.keys() == {"cel"}:
        return _cel_source(source["cel"], names)
    value = source["literal"] if isinstance(source, dict) and source.keys() == {"literal"} else source
    return CompiledSource(lambda _view: value)


def _path_source(text: str) -> CompiledSource:
    try:
        path = parse_path(text)
    except PathSyntax as error:
        hint = "a text that begins with $ is a path; write {literal: …} for the text itself"
        raise ExpressionError(f"{error}; {hint}", code="BAD_VALUE") from None

    def evaluate(view: View) -> Any:
        value = view.get(path)
        return None if value is MISSING else value

    return CompiledSource(evaluate, frozenset((path,)), path=path)


def _cel_source(expr: Any, names: Iterable[str]) -> CompiledSource:
    compiled = compile_cel(expr, names)
    return CompiledSource(compiled.evaluate, compiled.reads, compiled.marking)


class CompiledMapping(Struct, frozen=True):
    """An input mapping; evaluating builds one object."""

    items: tuple[tuple[str, CompiledSource], ...]
    places: tuple[tuple[str, ...], ...]
    """The key of each item, split where it is dotted."""
    reads: frozenset[Path]
    marking: frozenset[str] = frozenset()

    def evaluate(self, view: View) -> dict[str, Any]:
        """The object. Raises EvaluationError if a `{cel: …}` has no value."""
        built: dict[str, Any] = {}
        for place, (_, source) in zip(self.places, self.items, strict=True):
            into = built
            for key in place[:-1]:
                into = into.setdefault(key, {})
            into[place[-1]] = source.evaluate(view)
        return built

    @property
    def needs_marking(self) -> bool:
        return bool(self.marking)


def compile_mapping(mapping: dict[str, Any], names: Iterable[str] = ()) -> CompiledMapping:
    """Target key → source; a dotted key builds nested objects. The `where` of an error is the key."""
    items = _sources(mapping, names)
    places = tuple(tuple(key.split(".")) for key in mapping)
    _refuse_overlaps(places)
    return CompiledMapping(
        items,
        places,
        frozenset[Path]().union(*(source.reads for _, source in items)),
        frozenset[str]().union(*(source.marking for _, source in items)),
    )


def compile_targets(mapping: dict[str, Any], names: Iterable[str] = ()) -> tuple[tuple[Path, CompiledSource], ...]:
    """An output mapping: target path → source. Targets are below `state` or `output`."""
    items = _sources(mapping, names)
    return tuple((target_path(text), source) for text, source in items)


def _sources(mapping: Any, names: Iterable[str]) -> tuple[tuple[str, CompiledSource], ...]:
    if not isinstance(mapping, dict):
        raise ExpressionError(f"a mapping is an object, not {kind_of(mapping)}", code="BAD_VALUE")
    known = frozenset(names)
    return tuple((target, _source_at(target, source, known)) for target, source in mapping.items())


def _source_at(target: str, source: Any, names: frozenset[str]) -> CompiledSource:
    try:
        return compile_source(source, names)
    except ExpressionError as error:
        where = ", ".join(filter(None, (target, error.where)))
        raise ExpressionError(error.message, where, error.code) from None


def _refuse_overlaps(places: tuple[tuple[str, ...], ...]) -> None:
    """`a` and `a.b` in one mapping: one would have to overwrite the other."""
    whole = set(places)
    for place in places:
        if not all(place):
            raise ExpressionError("a dotted key has a name between any two dots", ".".join(place), "BAD_VALUE")
        for length in range(1, len(place)):
            if place[:length] in whole:
                above = ".".join(place[:length])
                raise ExpressionError(f"it lies inside {above!r}, which is mapped too", ".".join(place), "BAD_VALUE")


def target_path(text: str) -> Path:
    """A place that may be written, below `state` or `output`. Raises ExpressionError."""
    try:
        path = parse_path(text)
    except PathSyntax as error:
        raise ExpressionError(str(error), text, "BAD_VALUE") from None
    if path[:1] == ("input",):
        raise ExpressionError("input is never writable; write state.… or output.…", text, "INPUT_NOT_WRITABLE")
    if len(path) < 2 or path[0] not in _WRITABLE:
        raise ExpressionError("a target is state.… or output.…", text, "BAD_VALUE")
    return path
