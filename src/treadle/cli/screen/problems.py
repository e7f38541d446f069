"""Problems of definitions for people: code, place, the line with a caret below, and the remedy."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from treadle.language import Problem

_WIDTH_MAX = 120
"""Columns of a source line that are shown; a longer one is cut around the caret."""
_STYLES = {"error": "bold red", "warning": "yellow"}


def plain_console() -> Console:
    """A console that prints text as it is: colours, but no wrapping, no highlighting and no `:emoji:`."""
    return Console(highlight=False, soft_wrap=True, emoji=False)


def show_problems(console: Console, problems: Sequence[Problem], text: str | None) -> None:
    """Prints every problem; with an excerpt of its line, if the text is known."""
    lines = text.splitlines() if text is not None else []
    for problem in problems:
        console.print(_headline(problem))
        console.print(f"  {problem.message}", markup=False)
        if problem.line is not None and problem.column is not None and problem.line <= len(lines):
            console.print(_excerpt(lines[problem.line - 1], problem.line, problem.column, problem.severity))
        if problem.hint:
            console.print(Text(f"  hint: {problem.hint}", style="cyan"))
        console.print()


def _headline(problem: Problem) -> Text:
    place = problem.file if problem.line is None else f"{problem.file}:{problem.line}:{problem.column}"
    headline = Text.assemble((problem.severity, _STYLES[problem.severity]), " ", (problem.code, "bold"), " ", place)
    return headline.append(f"  {problem.at}", style="dim") if problem.at else headline


def _excerpt(line: str, number: int, column: int, severity: str) -> Text:
    """The line and a caret below. Tabs are kept, so that the caret is in the right column."""
    start = max(0, column - 1 - _WIDTH_MAX // 2) if len(line) > _WIDTH_MAX else 0
    shown = line[start : start + _WIDTH_MAX]
    before = "".join(mark if mark == "\t" else " " for mark in line[start : column - 1])
    marked = "^" * len(_word(line[column - 1 :]))
    gutter = str(number)
    return Text.assemble(
        (f"  {gutter} │ ", "dim"),
        shown,
        "\n",
        (f"  {' ' * len(gutter)} │ ", "dim"),
        before,
        (marked, _STYLES[severity]),
    )


def _word(rest: str) -> str:
    """The part that the caret underlines: the value or key that begins here."""
    match = re.match(r'"[^"]*"|[^\s,\]}]+', rest)
    return match.group().rstrip(":") or "^" if match is not None else "^"
