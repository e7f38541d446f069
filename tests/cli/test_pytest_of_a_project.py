"""Plain `pytest` in a project made by `treadle init`: its modules are found, by tests and by scenarios."""

from __future__ import annotations

import subprocess
import sysconfig
from pathlib import Path

from tests.cli.shell import Shell

SCENARIO = """\
scenario: the project's function is called
definitions:
  - workflow: w
    output: {n: $.nodes.a.output.n}
    nodes: {a: {action: {kind: python, function: 'shop:one'}}}
start: {}
expect: {status: completed, output: {n: 1}}
"""


def test_plain_pytest_imports_what_the_project_has(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell("init")
    shell("validate", "workflows", "--strict")
    shell.write("shop.py", "def one():\n    return {'n': 1}\n")
    (tmp_path / "tests").mkdir()
    shell.write("tests/test_shop.py", "from shop import one\n\ndef test_one():\n    assert one() == {'n': 1}\n")
    shell.write("workflows/shop.scenario.yaml", SCENARIO)
    program = Path(sysconfig.get_path("scripts")) / "pytest"
    done = subprocess.run(
        [program, "-q", "-p", "no:cacheprovider"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=shell.environment,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "3 passed" in done.stdout
