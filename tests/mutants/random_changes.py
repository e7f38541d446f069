"""Random bugs: one small change at a time, anywhere in the kernel, the runtime or the stores.

Owns which changes there are and which of them a seed draws. A change is one a tired person could type: a comparison
turned round or shifted, a condition negated or fixed, `and` for `or`, plus for minus, a small number off by one, a call
forgotten, a result not returned or its opposite returned. Never changed: documentation, log lines, texts of errors,
annotations, assertions, and numbers whose exact value means nothing (tuning constants). The same seed draws the same
changes from the same sources.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.mutants.bug import ROOMS, Room

EQUIVALENT = Path(__file__).with_name("equivalent.toml")
COMPARISONS: dict[type[ast.cmpop], tuple[str, tuple[str, ...]]] = {
    ast.Lt: ("<", ("<=", ">=")),
    ast.LtE: ("<=", ("<", ">")),
    ast.Gt: (">", (">=", "<=")),
    ast.GtE: (">=", (">", "<")),
    ast.Eq: ("==", ("!=",)),
    ast.NotEq: ("!=", ("==",)),
    ast.Is: ("is", ("is not",)),
    ast.IsNot: ("is not", ("is",)),
    ast.In: ("in", ("not in",)),
    ast.NotIn: ("not in", ("in",)),
}
SMALL_MAX = 10
"""Larger numbers are sizes and times: one more or less of them is no bug."""
TEXTUAL = frozenset({"__repr__", "__str__"})
LOGGERS = frozenset({"log", "logger", "logging", "warnings"})


class Change(NamedTuple):
    """One change of one place."""

    room: Room
    file: str
    """Below src/treadle/<room>."""
    line: int
    start: int
    """In bytes, as `end` is: that is how Python tells columns."""
    end: int
    before: str
    after: str
    source: str
    """The whole line, for people and for the list of equivalent changes."""

    @property
    def name(self) -> str:
        return f"{self.room}/{self.file}:{self.line}  {_short(self.before)} → {_short(self.after)}"

    def planted(self, text: str) -> str:
        """The file's text with the change in it."""
        encoded = text.encode()
        return (encoded[: self.start] + self.after.encode() + encoded[self.end :]).decode()


def drawn(sources: Path, number: int, seed: int, rooms: tuple[Room, ...] = ROOMS) -> list[Change]:
    """So many changes, in the order in which they were drawn."""
    known = equivalent()
    changes = [change for room in rooms for change in _of_room(sources, room) if _key(change) not in known]
    return Random(seed).sample(changes, min(number, len(changes)))


def equivalent() -> dict[tuple[str, str, str], str]:
    """Changes that change nothing anybody could notice, and why."""
    listed = tomllib.loads(EQUIVALENT.read_text("utf-8")).get("equivalent", [])
    return {(one["file"], one["line"], one["change"]): one["reason"] for one in listed}


def changes_of(text: str, room: Room = "kernel", file: str = "") -> list[Change]:
    """Every change there is of one file, from top to bottom."""
    encoded = text.encode()
    lines = text.splitlines()
    begins = [0]
    for line in encoded.splitlines(keepends=True):
        begins.append(begins[-1] + len(line))
    found = set()
    for spot in _Places(encoded, begins).of(ast.parse(text)):
        number = encoded.count(b"\n", 0, spot.start) + 1
        before = encoded[spot.start : spot.end].decode()
        found.add(Change(room, file, number, spot.start, spot.end, before, spot.after, lines[number - 1].strip()))
    return sorted(found, key=lambda change: (change.start, change.end, change.after))


def _of_room(sources: Path, room: Room) -> Iterator[Change]:
    folder = sources / "treadle" / room
    for path in sorted(folder.rglob("*.py")):
        yield from changes_of(path.read_text("utf-8"), room, path.relative_to(folder).as_posix())


def _key(change: Change) -> tuple[str, str, str]:
    return f"{change.room}/{change.file}", change.source, f"{change.before} → {change.after}"


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= 60 else f"{flat[:57]}…"


class _Spot(NamedTuple):
    start: int
    end: int
    after: str


class _Places:
    """Walks a tree and yields what may be written instead, leaving out what nobody executes or only people read."""

    def __init__(self, encoded: bytes, begins: list[int]) -> None:
        self._encoded = encoded
        self._begins = begins

    def of(self, node: ast.AST) -> Iterator[_Spot]:
        if _is_left_alone(node):
            return
        yield from self._here(node)
        for name, child in _children(node):
            if name not in ("annotation", "returns", "decorator_list", "type_params"):
                yield from self.of(child)

    def _here(self, node: ast.AST) -> Iterator[_Spot]:
        if isinstance(node, ast.Compare):
            yield from self._comparisons(node)
        elif isinstance(node, ast.BoolOp):
            yield self._swapped(node)
        elif isinstance(node, ast.If | ast.IfExp | ast.While):
            yield from self._conditions(node)
        elif isinstance(node, ast.BinOp | ast.AugAssign):
            yield from self._sums(node)
        elif isinstance(node, ast.Constant):
            yield from self._numbers(node)
        elif isinstance(node, ast.Expr):
            yield from self._calls(node)
        elif isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
            yield self._instead(node, f"return {_other_result(node.value)}")

    def _comparisons(self, node: ast.Compare) -> Iterator[_Spot]:
        left: ast.expr = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            written, others = COMPARISONS[type(operator)]
            spot = self._between(left, right, written)
            for other in others:
                yield _Spot(*spot, other)
            left = right

    def _swapped(self, node: ast.BoolOp) -> _Spot:
        """All of them: `a and b and c` becomes `a or b or c`."""
        was, becomes = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        start, end = self._span(node)
        text = self._encoded[start:end]
        for left, right in reversed(list(zip(node.values, node.values[1:], strict=False))):
            first, last = self._between(left, right, was)
            text = text[: first - start] + becomes.encode() + text[last - start :]
        return _Spot(start, end, text.decode())

    def _conditions(self, node: ast.If | ast.IfExp | ast.While) -> Iterator[_Spot]:
        if isinstance(node.test, ast.Constant) or "TYPE_CHECKING" in ast.dump(node.test):
            return
        text = self._text(node.test)
        yield self._instead(node.test, f"not ({text})")
        yield self._instead(node.test, "False")
        if not isinstance(node, ast.While):  # a loop without an end is caught by the clock, and teaches nothing
            yield self._instead(node.test, "True")

    def _sums(self, node: ast.BinOp | ast.AugAssign) -> Iterator[_Spot]:
        if not isinstance(node.op, ast.Add | ast.Sub):
            return
        was, becomes = ("+", "-") if isinstance(node.op, ast.Add) else ("-", "+")
        if isinstance(node, ast.AugAssign):
            yield _Spot(*self._between(node.target, node.value, f"{was}="), f"{becomes}=")
        elif not (_is_text_or_list(node.left) or _is_text_or_list(node.right)):
            yield _Spot(*self._between(node.left, node.right, was), becomes)

    def _numbers(self, node: ast.Constant) -> Iterator[_Spot]:
        if type(node.value) is int and node.value <= SMALL_MAX:
            yield self._instead(node, str(node.value + 1))
            if node.value > 0:
                yield self._instead(node, str(node.value - 1))

    def _calls(self, node: ast.Expr) -> Iterator[_Spot]:
        called = node.value.value if isinstance(node.value, ast.Await) else node.value
        if isinstance(called, ast.Call):
            yield self._instead(node, "pass")

    def _between(self, left: ast.expr, right: ast.expr, written: str) -> tuple[int, int]:
        """Where an operator is written."""
        start, end = self._span(left)[1], self._span(right)[0]
        pattern = re.escape(written.encode()).replace(rb"\ ", rb"\s+")
        if written[0].isalpha():
            pattern = rb"\b" + pattern + rb"\b"
        found = re.search(pattern, re.sub(rb"#[^\n]*", lambda note: b" " * len(note[0]), self._encoded[start:end]))
        assert found is not None, f"no {written} between {self._text(left)} and {self._text(right)}"
        return start + found.start(), start + found.end()

    def _instead(self, node: ast.expr | ast.stmt, after: str) -> _Spot:
        return _Spot(*self._span(node), after)

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self._begins[node.lineno - 1] + node.col_offset, self._begins[node.end_lineno - 1] + node.end_col_offset

    def _text(self, node: ast.expr) -> str:
        start, end = self._span(node)
        return self._encoded[start:end].decode()


def _children(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield name, child


def _is_left_alone(node: ast.AST) -> bool:
    """What only people read, only the type checker looks at, or whose exact value means nothing."""
    if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr | ast.Import | ast.ImportFrom):
        return True
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return node.name in TEXTUAL
    if isinstance(node, ast.ClassDef):
        return any(isinstance(one, ast.Name) and one.id == "Protocol" for one in node.bases)
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return all(isinstance(one, ast.Name) and one.id.isupper() for one in targets)
    if isinstance(node, ast.Call):
        owner = node.func.value if isinstance(node.func, ast.Attribute) else node.func
        return isinstance(owner, ast.Name) and owner.id in LOGGERS
    if isinstance(node, ast.Expr):
        called = node.value.value if isinstance(node.value, ast.Await) else node.value
        return isinstance(called, ast.Constant) or _is_left_alone(called)
    return False


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _other_result(node: ast.expr) -> str:
    """What is returned instead: of a yes or no the other one, because callers take None for no."""
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return str(not node.value)
    return "None"


def _is_text_or_list(node: ast.expr) -> bool:
    """Minus would only raise."""
    return isinstance(node, ast.JoinedStr | ast.List | ast.Tuple | ast.ListComp) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
