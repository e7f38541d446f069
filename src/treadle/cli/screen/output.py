"""Writing of answers: tables for people, JSON for programs. Data goes to stdout, sentences about it to stderr.

Owns the three formats of `--output`, and of instants and durations. Promises that text from outside cannot control the
terminal, and that output to a pipe is not wrapped.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import msgspec

if TYPE_CHECKING:
    from rich.console import Console

    from treadle.cli.screen.tables import Gives

Row = Mapping[str, Any]

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
WIDE = 100_000
"""Width of a pipe in columns: no line is that long, so nothing is wrapped."""


_answers: int | None = None
"""File descriptor that answers are written to after `keep_stdout`."""


def keep_stdout() -> None:
    """Reserves stdout for answers: from now on functions that print, in this process or in children, print to stderr.
    For verbs that execute functions: a program that reads the answer must not find their prints in it."""
    global _answers
    if _answers is None and sys.__stdout__ is not None and sys.stdout is sys.__stdout__:
        sys.__stdout__.flush()
        _answers = os.dup(1)
        os.dup2(2, 1)


class Out:
    """Writes the answer of one verb."""

    def __init__(self, mode: str) -> None:
        self.mode = mode

    @property
    def text(self) -> bool:
        return self.mode == "text"

    def rows(self, columns: Sequence[str], rows: Sequence[Row], nothing: str, gives: Sequence[Gives] = ()) -> None:
        """Writes a list. `columns` are those of the table; JSON has every key of a row. `gives`: which columns give way
        on a narrow terminal, in this order (`tables`)."""
        if self.mode == "json":
            self.json(list(rows))
        elif self.mode == "jsonl":
            for row in rows:
                self.json(row)
        elif rows:
            self._table(columns, rows, gives)
        else:
            say(nothing)

    def one(self, value: Row) -> None:
        """Writes one thing with named parts."""
        if not self.text:
            self.json(value)
            return
        width = max((len(name) for name in value), default=0)
        for name, part in value.items():
            if part not in (None, "", [], (), {}):
                print(f"{name.ljust(width)}  {plain(cell(part))}")

    def json(self, value: Any) -> None:
        """Writes a value as one line of JSON."""
        line = msgspec.json.encode(value) + b"\n"
        if _answers is not None:
            while line:
                line = line[os.write(_answers, line) :]
        else:
            sys.stdout.write(line.decode())
            sys.stdout.flush()

    def done(self, value: Row, sentence: str) -> None:
        """Reports what was done: as a sentence on stderr, or as an object on stdout."""
        if self.text:
            say(sentence)
        else:
            self.json(value)

    def _table(self, columns: Sequence[str], rows: Sequence[Row], gives: Sequence[Gives]) -> None:
        from treadle.cli.screen import tables

        screen = console()
        shown = [{name: plain(cell(row.get(name))) for name in columns} for row in rows]
        for line in tables.lines(tables.lay_out(columns, shown, screen.width, gives), shown, _STYLES):
            screen.print(line, no_wrap=True, overflow="ignore", crop=False)


_STYLES = {
    "completed": "green",
    "running": "cyan",
    "failed": "bold red",
    "timed_out": "bold red",
    "compensation_failed": "bold red",
    "paused": "yellow",
    "compensating": "yellow",
    "cancelled": "dim",
    "ok": "green",
    "warn": "yellow",
    "bad": "bold red",
}


_live: Console | None = None
"""The console of a table that is being redrawn. Other prints must go through it, or they end up inside the table."""


@contextmanager
def live_console() -> Iterator[Console]:
    """The console for a table that is redrawn on stderr. Meanwhile `console(stderr=True)` returns it, too."""
    global _live
    _live = console(stderr=True)
    try:
        yield _live
    finally:
        _live = None


def console(*, stderr: bool = False) -> Console:
    """A console that prints text as it is: colours on a terminal, no highlighting, no emoji, no wrapping on a pipe."""
    from rich.console import Console

    if stderr and _live is not None:
        return _live
    stream = sys.stderr if stderr else sys.stdout
    return Console(stderr=stderr, highlight=False, emoji=False, markup=False, width=None if stream.isatty() else WIDE)


def say(sentence: str) -> None:
    """Prints a sentence about the work on stderr."""
    print(plain(sentence), file=sys.stderr, flush=True)


def plain(text: str) -> str:
    """Text without characters that control a terminal."""
    return _CONTROL.sub("�", text)


def cell(value: Any, limit: int | None = None) -> str:
    """A value as one line of text, cut to `limit` characters."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else _words(value)
    text = text.replace("\n", " ")
    return text if limit is None or len(text) <= limit else text[: limit - 1] + "…"


def shortened(value: Any, most: int) -> str:
    """A value as one line, cut to `most` characters on a terminal. A pipe gets all of it."""
    return cell(value, most if sys.stdout.isatty() and sys.stderr.isatty() else None)


def _words(value: Any) -> str:
    if isinstance(value, bool | int | float):
        return str(value).lower() if isinstance(value, bool) else str(value)
    if isinstance(value, list | tuple) and all(isinstance(part, str) for part in value):
        return ", ".join(value)
    return msgspec.json.encode(value).decode()


def now_ms() -> int:
    """The time now, in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def clock_time(instant: int | None, zone: str | None = None) -> str | None:
    """An instant in the user's time zone, or in `zone`, which is then shown with it."""
    if instant is not None and zone is not None:
        return datetime.fromtimestamp(instant / 1_000, ZoneInfo(zone)).strftime("%Y-%m-%d %H:%M:%S %Z")
    return None if instant is None else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(instant / 1_000))


def duration(ms: int) -> str:
    """`850 ms`, `12.3 s`, `4 min 10 s`, `3 h 20 min`, `12 d 4 h`."""
    if ms < 1_000:
        return f"{max(ms, 0)} ms"
    if ms < 60_000:
        return f"{ms / 1_000:.1f} s"
    for size, name, smaller, lesser in (
        (86_400_000, "d", 3_600_000, "h"),
        (3_600_000, "h", 60_000, "min"),
        (60_000, "min", 1_000, "s"),
    ):
        if ms >= size:
            rest = ms % size // smaller
            return f"{ms // size} {name}" + (f" {rest} {lesser}" if rest else "")
    raise AssertionError("a minute or more")


def builtins(value: Any) -> Any:
    """A struct as plain JSON values."""
    return msgspec.to_builtins(value)
