"""Plain `pytest` in a project: it finds the project's modules, its library and its worker types."""

from __future__ import annotations

import subprocess
import sysconfig
from pathlib import Path

import pytest

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
    done = run_pytest(shell, tmp_path)
    assert done.returncode == 0, done.stdout
    assert "3 passed" in done.stdout


LIBRARY = 'actions: {greet: {kind: template, template: "hello {{ name }}"}}\n'
USING = """\
workflow: using
output: {said: $.nodes.a.output.text}
nodes: {a: {action: greet, input_mapping: {name: $.input.name}}}
"""
DRAWN = '{"nodes": [{"id": "a", "type": "Worker", "data": {"workerType": "painter"}}], "edges": []}'
USED = """\
scenario: an action of the library is played
definitions: [{file: using.yaml}]
start: {input: {name: you}}
expect: {status: completed, output: {said: hello you}}
---
scenario: a worker type of the settings is played
definitions: [{file: drawn.json}]
start: {}
expect: {status: completed, node_output: {a: {n: 7}}}
"""
SETTINGS = 'library = "shared.yaml"\n[workers.painter]\nkind = "set"\nvalues = {n = 7}\n'


@pytest.mark.parametrize("stands", [".", "flows"])
def test_plain_pytest_uses_the_library_and_the_worker_types_of_the_settings(tmp_path: Path, stands: str) -> None:
    shell = Shell(tmp_path)
    (tmp_path / "flows").mkdir()
    for name, content in {
        "treadle.toml": SETTINGS,
        "shared.yaml": LIBRARY,
        "flows/using.yaml": USING,
        "flows/drawn.json": DRAWN,
        "flows/using.scenario.yaml": USED,
    }.items():
        shell.write(name, content)
    shell("test", "flows")
    done = run_pytest(shell, tmp_path / stands)
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout


def test_a_library_that_is_missing_fails_the_collection_in_one_line(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.write("treadle.toml", 'library = "nowhere.yaml"\n')
    shell.write("a.scenario.yaml", SCENARIO)
    done = run_pytest(shell, tmp_path)
    assert done.returncode == 2, done.stdout
    assert "nowhere.yaml, which `library` names" in done.stdout
    assert "Traceback" not in done.stdout


def run_pytest(shell: Shell, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(sysconfig.get_path("scripts")) / "pytest", "-q", "-p", "no:cacheprovider"],
        capture_output=True,
        text=True,
        cwd=folder,
        env=shell.environment,
        check=False,
    )
