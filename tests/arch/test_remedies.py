"""Commands that messages and pages name exist: verbs, their own verbs, and the flags behind them.

A remedy that is misspelt, or that was renamed, is worse than none: somebody in trouble types it. Read are all strings
of the source, the pages, and the canvas. `docs/reference/cli.md` is generated from the verbs themselves.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from cyclopts import App

from treadle.cli.main import VERBS, app

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
EVERYWHERE = frozenset({"--server", "--debug", "--help", "--version"})
COMMAND = re.compile(
    r"(?<![\w./-])(`?treadle |`(?!treadle ))([a-z]+)(?: ([a-z][a-z-]+))?((?: (?!treadle )[^`;|#\n,)(]*)?)"
)
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]+")


@cache
def flags() -> dict[tuple[str, str], frozenset[str]]:
    """Flags by verb and inner verb; of a verb without inner ones, or by itself, the second is empty."""
    known: dict[tuple[str, str], frozenset[str]] = {}
    for name, *_ in VERBS:
        verb = app[name]
        known[name, ""] = _flags_of(verb)
        known.update({(name, inner): _flags_of(verb[inner]) for inner in verb if not inner.startswith("-")})
    return known


def _flags_of(verb: App) -> frozenset[str]:
    if verb.default_command is None:
        return EVERYWHERE
    return EVERYWHERE | {name for argument in verb.assemble_argument_collection() for name in argument.names}


def strings(file: Path) -> Iterator[str]:
    """The strings of a Python file; what an f-string computes is `X`."""
    tree = ast.parse(file.read_text("utf-8"))
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield node.value


def texts() -> Iterator[tuple[Path, str]]:
    for file in sorted((ROOT / "src").rglob("*.py")):
        yield from ((file, text) for text in strings(file))
    pages = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md"), *(ROOT / name for name in PAGES)]
    for page in sorted(pages):
        if page.name != "cli.md":
            yield page, page.read_text("utf-8")
    for file in sorted((ROOT / "web" / "src").rglob("*.ts*")):
        yield file, file.read_text("utf-8")


def problems(text: str) -> Iterator[str]:
    """Commands in a text that do not exist."""
    groups = {verb for verb, inner in flags() if inner}
    verbs = {verb for verb, _inner in flags()}
    for found in COMMAND.finditer(text):
        began, verb, inner, rest = found.groups()
        said = found.group().strip("` ")
        if began == "`treadle " and verb not in verbs:
            yield f"`{said}`: there is no `treadle {verb}`"
        if verb not in verbs or (began == "`" and (not inner or (verb, inner) not in flags())):
            continue  # prose, or some other thing in backticks
        if verb in groups and inner is not None and (verb, inner) not in flags():
            yield f"`{said}`: there is no `treadle {verb} {inner}`"
            continue
        taken = flags()[verb, inner if verb in groups and inner is not None else ""]
        behind = found.group()[len(began) + len(verb) :] if inner is None else f" {inner}{rest}"
        yield from (f"`{said}` has no {flag}" for flag in FLAG.findall(behind) if flag not in taken)


def test_every_command_that_a_message_or_a_page_names_exists() -> None:
    wrong = sorted({f"{file.relative_to(ROOT)}: {problem}" for file, text in texts() for problem in problems(text)})
    assert not wrong, "\n".join(wrong)


def test_a_remedy_that_does_not_exist_is_found() -> None:
    assert list(problems("`treadle runs revive X`")) == ["`treadle runs revive X`: there is no `treadle runs revive`"]
    assert list(problems("`treadle repair`")) == ["`treadle repair`: there is no `treadle repair`"]
    assert list(problems("see `gates claim --force`")) == ["`gates claim --force` has no --force"]
    assert list(problems("treadle requests --refused says which; `treadle fsck --store old.db`, treadle is")) == []
    assert list(problems("`treadle fsck --repair`")) == ["`treadle fsck --repair` has no --repair"]
