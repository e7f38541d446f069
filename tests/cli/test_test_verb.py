"""`treadle test`: exit codes, output, filters."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import postgres
from treadle.cli import main as cli
from treadle.testing.world.store_names import NoPostgres

GOOD = "scenario: good\ndefinitions: [{workflow: w, nodes: {a: {}}}]\nexpect: {status: completed}\n"
BAD = "scenario: bad\ndefinitions: [{workflow: w, nodes: {a: {}}}]\nexpect: {status: failed}\n"
WRONG = "scenario: wrong\ndefinitions: [{workflow: w, nods: {}}]\n"


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as left:
        cli.main(["test", *map(str, arguments)])
    assert isinstance(left.value.code, int)
    return left.value.code


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "deep").mkdir()
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "a.scenario.yaml").write_text(f"{GOOD}---\n{BAD}")
    (tmp_path / "deep" / "b.scenario.yaml").write_text(GOOD.replace("good", "deep"))
    (tmp_path / ".hidden" / "c.scenario.yaml").write_text(BAD)
    (tmp_path / "d.yaml").write_text("not a scenario")
    return tmp_path


def test_all_that_hold_exit_with_0(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder / "deep") == 0
    assert "1 passed, 0 failed" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
@pytest.mark.parametrize("jobs", [1, 2])
def test_on_a_real_store_the_same_hold_and_the_same_do_not(
    store: str, jobs: int, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if store == "postgres":
        postgres.server()
    assert run(folder, "--store", store, "--jobs", jobs) == 1
    out = capsys.readouterr().out
    assert "a.scenario.yaml:5 bad" in out
    assert "status: expected failed, was completed" in out
    assert "2 passed, 1 failed" in out


def test_one_that_does_not_exits_with_1_and_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder) == 1
    out = capsys.readouterr().out
    assert "a.scenario.yaml:5 bad" in out
    assert "status: expected failed, was completed" in out
    assert "run.completed" in out
    assert "2 passed, 1 failed" in out
    assert "\x1b[" not in out, "colour is for terminals"


def test_an_invalid_one_exits_with_3(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "e.scenario.yaml").write_text(WRONG)
    assert run(folder) == 3
    assert "UNKNOWN_FIELD" in capsys.readouterr().out
    (folder / "e.scenario.yaml").write_text("a: [")
    assert run(folder / "e.scenario.yaml") == 3


def test_a_file_that_is_not_there_exits_with_4(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("nowhere") == 4
    assert "there is no nowhere" in capsys.readouterr().err


def test_without_a_postgresql_it_says_where_to_get_one(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def nowhere() -> str:
        raise NoPostgres("there is no PostgreSQL for tests: name one in TREADLE_TEST_POSTGRES")

    monkeypatch.setattr("treadle.testing.world.postgres.server", nowhere)
    assert run(folder, "--store", "postgres") == 5
    assert "TREADLE_TEST_POSTGRES" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([".", "--store", "nonsense"], "nonsense"),
        ([".", "-k", "nobody"], "no scenario's name contains 'nobody'"),
        ([], "PATHS"),
    ],
)
def test_wrong_usage_exits_with_2(
    arguments: list[str],
    complaint: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    assert run(*arguments) == 2
    assert complaint in capsys.readouterr().err


def test_a_folder_without_scenarios_is_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path) == 2
    assert "there is no *.scenario.yaml" in capsys.readouterr().err


def test_names_filter(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder, "-k", "good") == 0
    assert "1 passed, 0 failed" in capsys.readouterr().out


def test_several_paths_are_played_together(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder / "deep", folder / "deep" / "b.scenario.yaml") == 0
    assert "2 passed" in capsys.readouterr().out


def test_json_is_one_object(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder, "--output", "json") == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["passed"], found["failed"]) == (2, 1)
    good, bad, deep = found["results"]
    assert good == {"file": str(folder / "a.scenario.yaml"), "scenario": "good", "ok": True}
    assert (bad["ok"], deep["scenario"]) == (False, "deep")
    assert "status: expected failed" in bad["reason"]
