"""`treadle validate`: every problem with its line and a caret, or as JSON; exit codes; files, folders and stdin."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from treadle.cli.definitions.validate import validate
from treadle.cli.frame.exits import INVALID, REFUSED, USAGE, VerbFailed

SOUND = "workflow: fine\nnodes: {a: {}}\n"
WARNED = "workflow: warned\nnodes: {a: {}, b: {}}\ntransitions: [{from: a, to: b, spawn_count: 2}]\n"
WRONG = """\
workflow: shop
nodes:
  ask: {retries: 3}
  pay: {timeout_ms: 5m}
transitions:
  - {from: ask, to: pya}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "fine.yaml").write_text(SOUND)
    (tmp_path / "wrong.yaml").write_text(WRONG)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *paths: Path | str, **options: Any) -> tuple[int, str, str]:
    try:
        code = validate([str(path) for path in paths], **options)
    except VerbFailed as failure:
        return failure.code, "", str(failure)
    out, err = capsys.readouterr()
    return code, out, err


def test_a_sound_definition_is_valid(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, folder / "fine.yaml")
    assert code == 0
    assert out == "1 definition: 0 errors, 0 warnings\n"
    assert err == ""


def test_every_problem_is_shown_with_its_line_a_caret_and_a_hint(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = folder / "wrong.yaml"
    code, out, _ = run(capsys, file)
    assert code == INVALID
    assert out.splitlines() == [
        f"error UNKNOWN_FIELD {file}:3:9  nodes.ask.retries",
        "  a node has no field `retries`",
        "  3 │   ask: {retries: 3}",
        "    │         ^^^^^^^",
        "  hint: did you mean `retry`?",
        "",
        f"error BAD_VALUE {file}:4:21  nodes.pay.timeout_ms",
        "  expected a number of milliseconds, found the text `5m`",
        "  4 │   pay: {timeout_ms: 5m}",
        "    │                     ^^",
        "  hint: write 300000",
        "",
        f"error UNKNOWN_NODE {file}:6:21  transitions[0].to",
        "  there is no node `pya`",
        "  6 │   - {from: ask, to: pya}",
        "    │                     ^^^",
        "  hint: did you mean `pay`?",
        "",
        "1 definition: 3 errors, 0 warnings",
    ]


def test_as_json_the_answer_is_one_object(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, folder / "wrong.yaml", folder / "fine.yaml", output="json")
    answer = json.loads(out)
    assert code == INVALID
    assert err == ""
    assert answer["ok"] is False
    assert [(one["file"], one["workflow"]) for one in answer["files"]] == [
        (str(folder / "wrong.yaml"), "shop"),
        (str(folder / "fine.yaml"), "fine"),
    ]
    assert answer["files"][0]["problems"][0] == {
        "code": "UNKNOWN_FIELD",
        "message": "a node has no field `retries`",
        "severity": "error",
        "at": "nodes.ask.retries",
        "file": str(folder / "wrong.yaml"),
        "line": 3,
        "column": 9,
        "hint": "did you mean `retry`?",
    }


def test_warnings_are_allowed_unless_strict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "w.yaml").write_text(WARNED)
    code, out, _ = run(capsys, tmp_path / "w.yaml")
    assert code == 0
    assert "warning GROUP_WITHOUT_JOIN" in out
    code, out, _ = run(capsys, tmp_path / "w.yaml", strict=True)
    assert code == INVALID
    assert "error GROUP_WITHOUT_JOIN" in out


def test_a_folder_is_searched_for_definitions(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    deep = folder / "more" / "deep"
    deep.mkdir(parents=True)
    (deep / "third.json").write_text('{"workflow": "third", "nodes": {"a": {}}}')
    (folder / "compose.yaml").write_text("services: {}\n")
    (folder / "x.scenario.yaml").write_text("scenario: s\ndefinitions: [{workflow: w, nodes: 7}]\n")
    (folder / ".hidden").mkdir()
    (folder / ".hidden" / "h.yaml").write_text(WRONG)
    _, out, _ = run(capsys, folder, output="json")
    assert [one["workflow"] for one in json.loads(out)["files"]] == ["fine", "shop", "third"]


def test_a_definition_that_a_scenario_expects_to_be_refused_is_left_to_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x.scenario.yaml"
    file.write_text(
        "scenario: s\ndefinitions: [{workflow: w, nodes: 7}]\ndeploy_error: BAD_VALUE\n"
        "---\nscenario: t\ndefinitions: [{workflow: v, nodes: {a: {}}}, {file: other.yaml}]\n"
    )
    code, out, _ = run(capsys, file, output="json")
    assert code == 0
    assert [one["workflow"] for one in json.loads(out)["files"]] == ["v"]


def test_a_dash_stands_for_standard_input(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(WRONG.encode())))
    code, out, _ = run(capsys, "-")
    assert code == INVALID
    assert "error UNKNOWN_NODE <stdin>:6:21" in out


@pytest.mark.parametrize(("path", "expected"), [("nowhere.yaml", REFUSED), ("--verbose", USAGE)])
def test_what_is_not_there_is_said(path: str, expected: int, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, path)
    assert code == expected
    assert out == ""
    assert "there is no" in err


def test_a_folder_without_definitions_is_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, tmp_path)
    assert code == USAGE
    assert "there is no .yaml" in err


@pytest.mark.parametrize("text", ["", "# nothing\n", "a: [1", "services: {}\n", "[]"])
def test_a_named_file_that_holds_no_definition_is_invalid(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.yaml").write_text(text)
    code, out, _ = run(capsys, tmp_path / "x.yaml")
    assert code == INVALID
    assert "error" in out


def test_shared_tasks_come_from_a_library(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "w.yaml").write_text("workflow: w\nnodes: {a: {task: ping}}\n")
    (tmp_path / "library.yaml").write_text("tasks: {ping: {steps: [{action: {kind: emit, type: x}}]}}\n")
    assert run(capsys, tmp_path / "w.yaml")[0] == INVALID
    assert run(capsys, tmp_path / "w.yaml", library=tmp_path / "library.yaml")[0] == 0
    assert run(capsys, tmp_path / "w.yaml", library=tmp_path / "nowhere.yaml")[0] == REFUSED


def test_a_long_line_is_cut_around_the_caret(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    padding = "x" * 400
    (tmp_path / "w.yaml").write_text(f"workflow: w\nnodes: {{a: {{description: {padding}, oops: 1}}}}\n")
    _, out, _ = run(capsys, tmp_path / "w.yaml")
    line, caret = out.splitlines()[2:4]
    assert len(line) < 140
    assert line[caret.index("^") :].startswith("oops")


def test_tabs_do_not_move_the_caret(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "w.json").write_text('{\n\t"workflow": "w",\n\t"nodes": {"a": {\t"oops": 1}}\n}')
    _, out, _ = run(capsys, tmp_path / "w.json")
    line, caret = out.splitlines()[2:4]
    assert caret.index("^") == line.index('"oops"')
