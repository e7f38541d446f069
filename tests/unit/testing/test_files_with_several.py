"""A scenario may take one workflow of a file that holds several."""

from __future__ import annotations

from pathlib import Path

import pytest

from treadle.testing import run_file

TWO = "workflow: one\nnodes: {a: {}}\n---\nworkflow: two\nnodes: {b: {}}\n"


@pytest.mark.parametrize(
    ("definition", "visited", "says"),
    [
        ("{file: two.yaml, workflow: two}", "b", None),
        ("{file: two.yaml, workflow: one}", "a", None),
        ("{file: two.yaml}", "a", "holds 2 workflows: one, two; say which: {file: two.yaml, workflow: NAME}"),
        ("{file: two.yaml, workflow: tow}", "a", "there is no workflow 'tow'"),
    ],
)
def test_it_says_which(tmp_path: Path, definition: str, visited: str, says: str | None) -> None:
    (tmp_path / "two.yaml").write_text(TWO)
    scenario = f"scenario: s\ndefinitions: [{definition}]\nstart: {{}}\nexpect: {{visits: {{{visited}: 1}}}}\n"
    (tmp_path / "s.scenario.yaml").write_text(scenario)
    (result,) = run_file(tmp_path / "s.scenario.yaml")
    assert result.ok == (says is None), result
    assert says is None or says in (result.reason or "")
