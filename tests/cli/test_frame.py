"""The frame of the command line: it starts quickly, imports verbs only when used, and exits as documented."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("treadle.language", "treadle.testing", "treadle.kernel", "cel_expr_python", "ruamel", "jsonschema_rs")


def treadle(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "treadle.cli.main", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)


def test_help_lists_the_verbs_and_imports_none_of_them() -> None:
    program = (
        "import sys\nfrom treadle.cli.main import main\n"
        "try: main(['--help'])\nexcept SystemExit as end: assert end.code == 0, end.code\n"
        f"print(*[name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stderr.strip() == ""
    for verb in ("validate", "schema", "test"):
        assert verb in result.stdout


@pytest.mark.parametrize(
    "arguments", [("nope",), ("validate",), ("validate", "--nope"), ("validate", "x.yaml", "--output", "xml")]
)
def test_wrong_usage_is_told_on_stderr_with_code_2(arguments: tuple[str, ...]) -> None:
    result = treadle(*arguments)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr


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
