"""The frame of the command line: it starts quickly, imports verbs only when used, and exits as documented."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("treadle.language", "treadle.testing", "treadle.kernel", "cel_expr_python", "yaml", "ruamel", "jsonschema_rs")
SECRET = "swordfish"
PANEL = str(Path(__file__).parents[2] / "examples/panel.yaml")


def treadle(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "treadle.cli.main", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)


def imported_by(arguments: list[str], names: tuple[str, ...]) -> tuple[set[str], str]:
    """Which of some modules a call imports, and what it prints."""
    program = (
        "import sys\nfrom treadle.cli.main import main\n"
        f"try: main({arguments!r})\nexcept SystemExit as end: assert end.code == 0, end.code\n"
        f"print(*[name for name in {names!r} if name in sys.modules], file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(result.stderr.split()), result.stdout


def test_help_lists_the_verbs_and_imports_none_of_them() -> None:
    imported, printed = imported_by(["--help"], HEAVY)
    assert imported == set()
    for verb in ("validate", "schema", "test", "run", "runs", "gates", "doctor"):
        assert verb in printed


def test_a_verb_that_only_looks_needs_neither_network_nor_language(tmp_path: Path) -> None:
    place = str(tmp_path / "treadle.db")
    assert treadle("deploy", PANEL, "--store", place).returncode == 0
    imported, printed = imported_by(["runs", "list", "--output", "json", "--store", place], ("aiohttp", "yaml"))
    assert imported == set()
    assert printed == "[]\n"


def test_a_valid_definition_needs_neither_the_slow_parser_nor_a_progress_bar() -> None:
    """Half of what a call would otherwise take."""
    unneeded = ("ruamel", "rich.progress", "rich._emoji_codes", "treadle.testing", "treadle.kernel")
    imported, printed = imported_by(["validate", PANEL], unneeded)
    assert imported == set()
    assert "0 errors" in printed
    assert imported_by(["validate", "--output", "json", PANEL], ("rich",))[0] == set()


@pytest.mark.parametrize(
    "arguments", [("nope",), ("validate",), ("validate", "--nope"), ("validate", "x.yaml", "--output", "xml")]
)
def test_wrong_usage_is_told_on_stderr_with_code_2(arguments: tuple[str, ...]) -> None:
    result = treadle(*arguments)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.startswith("treadle: ")
    assert result.stderr.count("\n") == 1
    assert "--help" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("queues", "sett", "gpu"), "there is no `treadle queues sett`; did you mean set?"),
        (("nodes", "xyz"), "treadle nodes takes no 'xyz'"),
        (("nodes", "--node"), "treadle nodes has no option --node ("),
        (("nodes", "--outptu", "json"), "treadle nodes has no option --outptu; did you mean --output?"),
        (("worker",), "treadle worker needs --queue: NAME, or NAME:PLACES"),
        (("nodes", "--store"), "--store needs a value"),
        (("gates", "show"), "treadle gates show needs GATE: RUN/VISIT"),
    ],
)
def test_an_unknown_or_missing_word_is_named(arguments: tuple[str, ...], told: str) -> None:
    result = treadle(*arguments)
    assert result.returncode == 2
    assert result.stderr.startswith(f"treadle: {told}")


@pytest.mark.parametrize("store", [f"mysql://someone:{SECRET}@h/db", "postgresql:/h/db", "sqlite:///x.db"])
def test_an_address_of_something_else_is_no_file(store: str) -> None:
    result = treadle("runs", "list", "--store", store)
    assert result.returncode == 5
    assert "a store is a SQLite file or a PostgreSQL database" in result.stderr
    assert SECRET not in result.stderr


def test_the_version_is_the_packages() -> None:
    from importlib.metadata import version

    assert treadle("--version").stdout.strip() == version("treadle")


def test_the_schema_is_printed_as_json() -> None:
    from treadle.language.schema import schema_text

    result = treadle("schema")
    assert result.returncode == 0
    assert result.stdout == schema_text()
    assert result.stderr == ""


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    command = f"{sys.executable} -m treadle.cli.main schema | head -1"
    result = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
    assert result.stdout == "{\n"
    assert result.stderr == ""
