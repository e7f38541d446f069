"""The public face: few names, all documented, and importing it is cheap."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

import treadle
from tests.arch import source
from tests.arch.test_docs import PYTHON

PAGE = source.ROOT / "docs" / "reference" / "python-api.md"
NAMES_MAX = 15
BESIDE = ("parts", "settings", "kinds", "operating", "testing", "display", "server")
"""Public modules; the page has a table for each."""

# Slow or rarely needed; `import treadle` must not pay for them.
NOT_AT_IMPORT = ("pytest", "hypothesis", "rich", "cyclopts", "treadle.cli", "treadle.server")


def exported() -> list[str]:
    assert hasattr(treadle, "__all__"), "src/treadle/__init__.py must list the public names in __all__"
    return list(treadle.__all__)


def documented() -> list[str]:
    """The first cell of every row of the table under «The face»."""
    section = source.text(PAGE).partition("## The face")[2].partition("\n## ")[0]
    return re.findall(r"^\| `(\w+)[^`|]*` \|", section, re.MULTILINE)


def test_the_face_is_what_is_documented() -> None:
    public, written = set(exported()), set(documented())
    problems = [f"{name}: exported, not in the table" for name in sorted(public - written)]
    problems += [f"{name}: in the table, not exported" for name in sorted(written - public)]
    assert not problems, source.report(
        "treadle.__all__ and docs/reference/python-api.md disagree:",
        problems,
        "a name is public in both or in neither",
    )


def test_the_face_is_small() -> None:
    assert len(exported()) <= NAMES_MAX, "which of these names does a user not need on the first day?"


def test_every_public_name_exists_and_explains_itself() -> None:
    silent = [name for name in exported() if not getattr(getattr(treadle, name), "__doc__", None)]
    assert not silent, source.report("public names without a docstring:", silent, "say what it is for")


def test_importing_treadle_is_cheap() -> None:
    program = f"import sys, treadle; print(*[name for name in {NOT_AT_IMPORT!r} if name in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert not loaded, source.report("loaded by `import treadle`:", loaded, "import it where it is used")


def listed(module: str) -> list[str]:
    """The first cell of every row of a module's table."""
    section = source.text(PAGE).partition(f"### `treadle.{module}`")[2].partition("\n#")[0]
    return re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)


@pytest.mark.parametrize("module", BESIDE)
def test_a_module_beside_the_face_lists_every_name(module: str) -> None:
    found = importlib.import_module(f"treadle.{module}")
    assert sorted(found.__all__) == sorted(listed(module)), f"`treadle.{module}.__all__` and its table in {PAGE.name}"
    silent = [name for name in found.__all__ if not getattr(getattr(found, name), "__doc__", None)]
    assert not silent, source.report("public names without a docstring:", silent, "say what it is for")


def shown() -> Iterator[tuple[str, str]]:
    """All Python that readers copy: pages and examples, without decisions, which tell how it was."""
    for file in source.files(suffix=".md"):
        if "decisions" not in file.parts:
            for match in PYTHON.finditer(source.text(file)):
                yield f"{source.shown(file)}:{source.text(file)[: match.start()].count(chr(10)) + 1}", match[1]
    for file in source.files("examples", suffix=".py"):
        yield source.shown(file), source.text(file)


def imported(code: str) -> Iterator[tuple[str, str]]:
    """Module and name of everything of ours that a piece of code imports."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "treadle":
            yield from ((node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (("treadle", alias.name) for alias in node.names if alias.name.startswith("treadle."))


def test_the_documentation_and_the_examples_import_only_what_is_public() -> None:
    public = {("treadle", name) for name in exported()}
    public |= {(f"treadle.{module}", name) for module in BESIDE for name in listed(module)}
    public |= {("treadle", f"treadle.{module}") for module in BESIDE}
    found = [(place, name) for place, code in shown() for name in imported(code)]
    assert found
    problems = [f"{place}: {module} {name}" for place, (module, name) in found if (module, name) not in public]
    assert not problems, source.report(
        "imports of what may change without notice:", problems, f"a name is public if {PAGE.name} lists it"
    )


def test_pages_name_only_public_modules() -> None:
    """`python -m treadle.testing.…` are commands; what ARCHITECTURE and decisions say is for those who change it."""
    pages = [
        file for file in source.files(suffix=".md") if "decisions" not in file.parts and file.parent != source.ROOT
    ]
    problems = [
        f"{source.shown(file)}: {name}"
        for file in pages
        for name in re.findall(r"(?<!-m )\btreadle(?:\.[a-z_]+)+", source.text(file))
        if name.split(".")[1] not in {*BESIDE, "toml", "db", "schema", "open", "connect"}
        and (source.ROOT / "src" / "treadle" / name.split(".")[1]).exists()
    ]
    assert not problems, source.report("private modules in the documentation:", problems, "name a public one")
