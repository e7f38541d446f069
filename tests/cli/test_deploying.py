"""Deploying from the command line, and what a list says of the run that follows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.served import ServedShell
from tests.cli.shell import Shell
from tests.cli.test_engine_verbs import QUICK


@pytest.fixture
def alone(tmp_path: Path) -> Shell:
    """A folder nobody else works in."""
    return Shell(tmp_path)


def test_functions_are_looked_for_when_deploying_and_named_with_their_line(alone: Shell) -> None:
    alone.write("studio.py", "def made(name: str) -> None: ...\n")
    bad = "workflow: bad\nnodes:\n  a: {action: {kind: python, function: 'studio:maed'}}\n"
    alone.write("bad.yaml", bad)
    for verb in (("deploy", "bad.yaml"), ("engine", "--deploy", "bad.yaml"), ("run", "bad.yaml")):
        said = alone(*verb, code=3).stderr
        assert said.startswith("error UNKNOWN_FUNCTION bad.yaml:3:")
        assert "did you mean 'made'" in said
    alone("deploy", "bad.yaml", "--no-check")
    alone.write("queued.yaml", bad.replace("a: {", "a: {queue: gpu, ").replace("bad", "queued"))
    alone("deploy", "queued.yaml")  # a worker elsewhere may have it
    alone.write("misfit.yaml", bad.replace("maed", "made"))
    assert "needs the input `name`" in alone("deploy", "misfit.yaml", code=3).stderr


def test_an_engine_deploys_several_files_and_folders(desk: Shell) -> None:
    alone = desk
    (alone.folder / "many").mkdir()
    alone.write("many/one.yaml", QUICK.replace("quick", "one"))
    alone.write("many/two.yaml", QUICK.replace("quick", "two"))
    alone.write("three.yaml", QUICK.replace("quick", "three"))
    with alone.going("engine", "--name", "desk", "--deploy", "many", "three.yaml", until="engine desk coordinates"):
        assert {alone("run", name).returncode for name in ("one", "two", "three")} == {0}
        [row] = alone.json("nodes")
        assert row["coordinates"] and (row["node"] == "desk" or isinstance(desk, ServedShell))


def test_a_runs_row_says_when_it_ended_and_its_key_once(desk: Shell) -> None:
    alone = desk
    alone.write("quick.yaml", QUICK)
    alone("run", "quick.yaml", "--key", "k1")
    (row,) = alone.json("runs", "list")
    assert row["key"] == "k1"
    assert row["ended"] == row["changed"]
    assert not {"idempotency_key", "busy"} & row.keys()


def test_a_canvas_whose_nodes_were_moved_keeps_its_version_and_says_that_it_was_drawn_anew(desk: Shell) -> None:
    alone = desk
    canvas = (
        '{"nodes": [{"id": "a", "type": "UX", "position": {"x": %d, "y": 0}, "data": {"color": "red"}}], "edges": []}'
    )
    alone.write("drawn.json", canvas % 0)
    assert alone.json("deploy", "drawn.json")[0]["drawn"]
    assert alone("deploy", "drawn.json").stderr == ""
    alone.write("drawn.json", canvas % 5)
    assert "drawn v1: the drawing was updated; it is the same version" in alone("deploy", "drawn.json").stderr


def test_an_author_cannot_have_any_function_of_python_called(alone: Shell) -> None:
    alone.write("shop.py", "import os\nfrom os import getenv\ndef paid(input): return {'ok': True}\n")
    bad = "workflow: bad\nnodes:\n  a: {action: {kind: python, function: 'NAME'}, input: {key: HOME}}\n"
    for name in ("os:getenv", "subprocess:getoutput", "shop:os.getenv", "shop:getenv"):
        alone.write("bad.yaml", bad.replace("NAME", name))
        for verb in (("deploy", "bad.yaml"), ("engine", "--deploy", "bad.yaml"), ("run", "bad.yaml")):
            said = " ".join(alone(*verb, code=3).stderr.split())
            assert said.startswith("error UNKNOWN_FUNCTION bad.yaml:3:")
            assert f"workflows may not call '{name}'" in said
    alone.write("bad.yaml", bad.replace("NAME", "os:getenv"))
    alone("deploy", "bad.yaml", "--no-check")  # as a version that was stored before
    assert "functions.allow does not cover the module 'os'" in " ".join(alone("run", "bad", code=1).stderr.split())
    alone("run", "bad.yaml", "--functions", "os")
    alone.write("good.yaml", bad.replace("NAME", "shop:paid"))
    alone("run", "good.yaml")
    alone.write("treadle.toml", "functions.allow = ['math']\n")
    (alone.folder / "flows").mkdir()
    alone.write("flows/good.yaml", bad.replace("NAME", "shop:paid"))
    said = " ".join(alone("deploy", "flows/good.yaml", code=3).stderr.split())
    assert "does not cover the module 'shop', only the module 'math'" in said


def test_json_on_the_command_line_is_refused_with_its_line_and_column(desk: Shell) -> None:
    alone = desk
    alone.write("quick.yaml", QUICK)
    alone.write("input.json", '{\n  "n": NaN\n}')
    said = alone("run", "quick.yaml", "-i", "@input.json", code=3).stderr
    assert "input.json: not JSON: NaN is not a JSON number (line 2, column 8)" in said
    assert "(line 1, column " in alone("run", "quick.yaml", "-i", '{"n": 1,}', code=3).stderr
    assert "the key `k\\u202e` holds U+202E" in alone("run", "quick.yaml", "--key", "k\u202e", code=3).stderr
