"""The public face: few names, all documented, and importing it is cheap."""

from __future__ import annotations

import re
import subprocess
import sys

import treadle
from tests.arch import source

PAGE = source.ROOT / "docs" / "reference" / "python-api.md"
NAMES_MAX = 15

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
