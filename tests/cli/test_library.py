"""What a project gives to all its definitions: shared tasks and actions, and what worker types stand for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.shell import Shell

LIBRARY = """\
actions: {greet: {kind: template, template: "hello {{ name }}"}}
tasks: {welcome: {steps: [{ref: say, action: greet}]}}
"""
USING = """\
workflow: using
output: {said: $.nodes.a.output.text}
nodes: {a: {task: welcome, input: {name: $.input.name}}}
"""
SCENARIO = """\
scenario: the shared task is played
definitions: [{file: using.yaml}]
start: {input: {name: you}}
expect: {status: completed, output: {said: hello you}}
"""


def written(shell: Shell) -> Shell:
    shell.write("shared.yaml", LIBRARY)
    shell.write("using.yaml", USING)
    shell.write("using.scenario.yaml", SCENARIO)
    return shell


@pytest.fixture
def alone(desk: Shell) -> Shell:
    return written(desk)


def test_every_verb_that_reads_definitions_takes_a_library(alone: Shell) -> None:
    assert "UNKNOWN_TASK" in alone("run", "using.yaml", code=3).stderr
    given = ("--library", "shared.yaml")
    alone("validate", "using.yaml", *given)
    alone("test", "using.scenario.yaml", *given)
    alone("deploy", "using.yaml", *given)
    ran = alone("run", "using.yaml", *given, "-i", '{"name": "you"}', "-o", "json")
    assert json.loads(ran.stdout)["output"] == {"said": "hello you"}


def test_the_library_of_the_settings_is_everybodys_and_a_version_needs_it_no_longer(alone: Shell) -> None:
    alone.write("treadle.toml", 'library = "shared.yaml"\n')
    alone("validate", "using.yaml")
    alone("test", "using.scenario.yaml")
    alone("deploy", ".")  # the library itself is no definition
    (alone.folder / "shared.yaml").unlink()
    (alone.folder / "treadle.toml").unlink()
    ran = alone("run", "using", "-i", '{"name": "you"}', "-o", "json")
    assert json.loads(ran.stdout)["output"] == {"said": "hello you"}


def test_an_engine_and_dev_deploy_with_it(tmp_path: Path) -> None:
    alone = written(Shell(tmp_path))
    (alone.folder / "flows").mkdir()
    (alone.folder / "using.yaml").rename(alone.folder / "flows" / "using.yaml")
    given = ("--library", "shared.yaml")
    with alone.going("engine", "--deploy", "flows", *given, until="deployed using v1"):
        pass
    with alone.going("dev", "flows", *given, "--store", "desk.db", until="deployed using v1"):
        pass


@pytest.mark.parametrize(
    ("library", "says"),
    [
        (
            "task: {}\n",
            "shared.yaml:1:1: error UNKNOWN_FIELD at task: a library has no field `task` (did you mean `tasks`?)",
        ),
        ("tasks: 7\n", "expected a map from names"),
        ("- 1\n", "one document with `tasks`, `actions` or both"),
        ("tasks: {a: 1\n", "error BAD_VALUE"),
    ],
)
def test_what_is_wrong_with_a_library_is_said_with_its_place(alone: Shell, library: str, says: str) -> None:
    alone.write("shared.yaml", library)
    assert says in alone("deploy", "using.yaml", "--library", "shared.yaml", code=3).stderr
    assert "there is no file nowhere.yaml" in alone("deploy", "using.yaml", "--library", "nowhere.yaml", code=4).stderr


def test_worker_types_of_a_canvas_are_what_the_settings_say(alone: Shell) -> None:
    canvas = {"nodes": [{"id": "a", "type": "Worker", "data": {"workerType": "greeter"}}], "edges": []}
    alone.write("drawn.json", json.dumps(canvas))
    refused = alone("deploy", "drawn.json", code=3).stderr
    assert "there is no worker type `greeter`" in refused
    assert "setting `workers`" in refused
    alone.write("treadle.toml", '[workers.greeter]\nkind = "template"\ntemplate = "hello {{ name }}"\n')
    alone("validate", "drawn.json")
    alone("run", "drawn.json", "-i", '{"name": "you"}')
