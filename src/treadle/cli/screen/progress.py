"""Progress of work that takes long, as a bar or a sentence: only on a terminal, and only after a second."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Self, TypeVar

from treadle.cli.screen.output import say

PATIENCE_S = 1.0
"""Work that takes longer than this gets a progress bar."""

EVERY_S = 0.1

Item = TypeVar("Item")


def patiently(items: Sequence[Item], name: Callable[[Item], str], *, quiet: bool = False) -> Iterator[Item]:
    """Yields each item. On a terminal, a bar appears on stderr after a second, and disappears at the end."""
    watched = not quiet and sys.stderr.isatty()
    late_at = time.perf_counter() + PATIENCE_S
    for number, item in enumerate(items):
        if watched and time.perf_counter() > late_at:
            yield from _with_bar(items, number, name)
            return
        yield item


def _with_bar(items: Sequence[Item], done: int, name: Callable[[Item], str]) -> Iterator[Item]:
    from rich.console import Console
    from rich.progress import Progress  # takes a tenth of a second to import, and most calls need no bar

    with Progress(console=Console(stderr=True), transient=True) as bar:
        shown = bar.add_task("", total=len(items), completed=done)
        for item in items[done:]:
            bar.update(shown, description=name(item))
            yield item
            bar.update(shown, advance=1)


@contextmanager
def said_later(sentence: str) -> Iterator[None]:
    """Prints a sentence once if the body takes long. The event loop must be free meanwhile."""
    later = asyncio.get_running_loop().call_later(PATIENCE_S, say, sentence)
    try:
        yield
    finally:
        later.cancel()


def no_answer_yet() -> AbstractContextManager[None]:
    """For a command to a run, whose engine may have died a moment ago."""
    return said_later(
        "no answer yet: the engine of the run is busy; or it is gone, and another one takes over; waiting"
    )


class Counter:
    """A count that goes up, for work whose items are not in a list. It appears and disappears as the bar does."""

    def __init__(self, noun: str) -> None:
        self._noun = noun
        self._late_at = time.perf_counter() + PATIENCE_S
        self._watched = sys.stderr.isatty()
        self._shown_at = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        if self._shown_at:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()

    def stage(self, what: str, done: int, total: int) -> None:
        """Names the part of the work that is under way, and counts in it."""
        self._noun = what
        self.update(done, total or None)

    def update(self, done: int, total: int | None = None) -> None:
        """Shows how many items are done."""
        now = time.perf_counter()
        if self._watched and now > self._late_at and now - self._shown_at > EVERY_S:
            self._shown_at = now
            share = f" of {total:,} ({100 * done // total} %)" if total else ""
            sys.stderr.write(f"\r\033[K{self._noun}: {done:,}{share}")
            sys.stderr.flush()
