"""Reads this repository as data: its files, their syntax trees, what they import, how long they are.

The tests beside it hold the rules; nothing here knows one.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "treadle"

# What git ignores or keeps for itself. A walk instead of `git ls-files`: a tarball has no git.
UNTRACKED_FOLDERS = {
    ".git", ".venv", ".dev", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis",
    "__pycache__", "node_modules", "dist", "build", "test-results", "artefacts", ".schemathesis",
}  # fmt: skip
UNTRACKED_SUFFIXES = {".pyc", ".db", ".so"}
UNTRACKED_FILES = {"uv.lock", ".git"}  # of a linked work tree `.git` is a file


class Import(NamedTuple):
    line: int
    module: str
    """Absolute and as deep as can be: `from treadle.store import port` is `treadle.store.port`."""


class Function(NamedTuple):
    name: str
    """Qualified by its classes and enclosing functions."""
    line: int
    lines: int


def files(*folders: str, suffix: str = "") -> list[Path]:
    """Every tracked file below the folders (default: the repository), sorted."""
    found: list[Path] = []
    for folder in folders or (".",):
        found += _walk(ROOT / folder)
    return sorted(file for file in set(found) if file.name.endswith(suffix))


def _walk(folder: Path) -> Iterator[Path]:
    if not folder.is_dir():
        return
    for entry in folder.iterdir():
        if entry.is_symlink():
            continue
        if entry.is_dir():
            if entry.name not in UNTRACKED_FOLDERS and not entry.name.endswith(".egg-info"):
                yield from _walk(entry)
        elif entry.suffix not in UNTRACKED_SUFFIXES and entry.name not in UNTRACKED_FILES:
            yield entry


def shown(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()


@functools.cache
def text(file: Path) -> str:
    """The file's text; empty for one that is not text."""
    try:
        return file.read_text("utf-8")
    except UnicodeDecodeError:
        return ""


@functools.cache
def tree(file: Path) -> ast.Module:
    return ast.parse(text(file), filename=shown(file))


def module_name(file: Path) -> str:
    """`src/treadle/kernel/join.py` → `treadle.kernel.join`; a package's `__init__.py` → the package."""
    parts = file.relative_to(ROOT / "src").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(file: Path) -> list[Import]:
    """Everything the file imports, anywhere in it: inside functions and under TYPE_CHECKING too."""
    found: list[Import] = []
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.Import):
            found += [Import(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            source = node.module or ""
            if node.level:
                package = module_name(file).split(".")
                keep = len(package) - node.level + (file.name == "__init__.py")
                source = ".".join([*package[:keep], *([source] if source else [])])
            found += [Import(node.lineno, f"{source}.{alias.name}") for alias in node.names]
    return sorted(found)


def functions(file: Path) -> Iterator[Function]:
    yield from _functions(tree(file), "")


def _functions(scope: ast.AST, prefix: str) -> Iterator[Function]:
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = prefix + node.name
            if not isinstance(node, ast.ClassDef):
                yield Function(name, node.lineno, (node.end_lineno or node.lineno) - node.lineno + 1)
            yield from _functions(node, name + ".")
        else:
            yield from _functions(node, prefix)


def report(rule: str, problems: list[str], remedy: str) -> str:
    """A failure that explains itself: what is wrong, where, and what to do about it."""
    return "\n".join([rule, *(f"  {problem}" for problem in problems), f"→ {remedy}"])
