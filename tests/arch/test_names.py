"""Names say what a thing is. The words below never do."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.arch import house, source


def words(name: str) -> set[str]:
    """`BranchManager_impl` → {branch, manager, impl}."""
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", name)}


def names(file: source.Path) -> Iterator[tuple[int, str]]:  # type: ignore[name-defined]
    """Everything the file gives a name to: its folders, itself, classes, functions, parameters, variables."""
    for folder in file.relative_to(source.ROOT).parent.parts:
        yield 1, folder
    yield 1, file.stem
    for node in ast.walk(source.tree(file)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id


def test_no_name_uses_a_word_that_says_nothing() -> None:
    first: dict[tuple[str, str], int] = {}  # a name is reported where it appears first in a file
    for file in source.files("src", "tools", "bench", "tests", suffix=".py"):
        for line, name in sorted(names(file)):
            if words(name) & house.BANNED_WORDS and name not in house.NAME_EXCEPTIONS:
                first.setdefault((source.shown(file), name), line)
    problems = [f"{file}:{line} {name}" for (file, name), line in first.items()]
    assert not problems, source.report(
        f"names with one of {', '.join(sorted(house.BANNED_WORDS))}:",
        problems,
        "name it after what it does or holds; the glossary is in ARCHITECTURE.md",
    )


def test_words_are_found_in_every_spelling() -> None:
    assert words("BranchManager_impl") == {"branch", "manager", "impl"}
    assert words("HTTPUtils") == {"http", "utils"}
    assert not words("database64") & house.BANNED_WORDS


def test_a_public_class_name_stands_for_one_thing() -> None:
    """A reader who searches for a class finds one."""
    places: dict[str, list[str]] = {}
    for file in source.files(f"src/{source.PACKAGE}", suffix=".py"):
        for node in ast.walk(source.tree(file)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(f"{source.shown(file)}:{node.lineno}")
    several = {name: found for name, found in places.items() if len(found) > 1}
    problems = [f"{name}: {', '.join(found)}" for name, found in sorted(several.items())]
    assert several.keys() <= house.SEVERAL_MEANINGS, source.report(
        "classes of one name:",
        [problem for problem in problems if problem.partition(":")[0] not in house.SEVERAL_MEANINGS],
        "let each say what it is: StoredDocument, not Document",
    )
    assert several.keys() >= house.SEVERAL_MEANINGS, source.report(
        "names that one class has now:",
        sorted(house.SEVERAL_MEANINGS - several.keys()),
        "strike them from SEVERAL_MEANINGS in tests/arch/house.py",
    )
