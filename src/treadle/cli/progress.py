"""Work that may take a while, shown as a bar: only to somebody who watches, and only once it has taken long."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Self, TypeVar

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

    def update(self, done: int, total: int | None = None) -> None:
        """So many are done."""
        now = time.perf_counter()
        if self._watched and now > self._late_at and now - self._shown_at > EVERY_S:
            self._shown_at = now
            share = f" of {total:,} ({100 * done // total} %)" if total else ""
            sys.stderr.write(f"\r\033[K{done:,}{share} {self._noun}")
            sys.stderr.flush()
