"""Work that may take a while, shown as a bar: only to somebody who watches, and only once it has taken long."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Self, TypeVar

from treadle.cli.screen.output import say

PATIENCE_S = 1.0
"""Only what takes longer than this is worth a progress bar."""

EVERY_S = 0.1

Item = TypeVar("Item")


def patiently(items: Sequence[Item], name: Callable[[Item], str], *, quiet: bool = False) -> Iterator[Item]:
    """Each item in turn. On a terminal, a bar on stderr appears when a second has passed, and goes at the end."""
    watched = not quiet and sys.stderr.isatty()
    late_at = time.perf_counter() + PATIENCE_S
    for number, item in enumerate(items):
        if watched and time.perf_counter() > late_at:
            yield from _with_bar(items, number, name)
            return
        yield item


def _with_bar(items: Sequence[Item], done: int, name: Callable[[Item], str]) -> Iterator[Item]:
    from rich.console import Console
    from rich.progress import Progress  # a tenth of a second that most calls would wait for in vain

    with Progress(console=Console(stderr=True), transient=True) as bar:
        shown = bar.add_task("", total=len(items), completed=done)
        for item in items[done:]:
            bar.update(shown, description=name(item))
            yield item
            bar.update(shown, advance=1)


@contextmanager
def said_later(sentence: str) -> Iterator[None]:
    """Says a sentence once if what is inside takes long. On an event loop, which must be free meanwhile."""
    later = asyncio.get_running_loop().call_later(PATIENCE_S, say, sentence)
    try:
        yield
    finally:
        later.cancel()


def no_answer_yet() -> AbstractContextManager[None]:
    """Around a command to a run: its owner may have died a moment ago."""
    return said_later(
        "no answer yet: whoever owns the run is busy, or gone, and another engine takes over then; waiting"
    )


class Counter:
    """A count that goes up, for work whose items are not a list here. Shown like `patiently` shows its own."""

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
        """Work of several parts: which, and how much of it is done."""
        self._noun = what
        self.update(done, total or None)

    def update(self, done: int, total: int | None = None) -> None:
        """So many are done."""
        now = time.perf_counter()
        if self._watched and now > self._late_at and now - self._shown_at > EVERY_S:
            self._shown_at = now
            share = f" of {total:,} ({100 * done // total} %)" if total else ""
            sys.stderr.write(f"\r\033[K{self._noun}: {done:,}{share}")
            sys.stderr.flush()
