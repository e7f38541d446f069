"""pytest collects scenario files by itself."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

GOOD = "scenario: it holds\ndefinitions: [{workflow: w, nodes: {a: {}}}]\nexpect: {status: completed}\n"
BAD = "scenario: it fails\ndefinitions: [{workflow: w, nodes: {a: {}}}]\nexpect: {status: failed}\n"


@pytest.mark.slow
def test_scenarios_are_items_with_their_names_and_the_history_as_failure_text(pytester: pytest.Pytester) -> None:
    pytester.makefile(".scenario.yaml", two=f"{GOOD}---\n{BAD}---\n{GOOD}")
    result = pytester.runpytest_inprocess("-q", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(
        ["*status: expected failed, was completed", "*run.completed*", "FAILED two.scenario.yaml::it fails*"]
    )
    again = pytester.runpytest_inprocess("-q", "-p", "no:cacheprovider", "two.scenario.yaml::it holds #2")
    again.assert_outcomes(passed=1)


@pytest.mark.slow
def test_scenarios_are_played_on_the_store_that_is_asked_for(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = []
    monkeypatch.setattr("treadle.testing.scenario.performance.make_world", lambda store, *_rest: played.append(store))
    pytester.makefile(".scenario.yaml", one=GOOD)
    pytester.runpytest_inprocess("-q", "-p", "no:cacheprovider", "--treadle-store", "sqlite")
    pytester.runpytest_inprocess("-q", "-p", "no:cacheprovider")
    assert played == ["sqlite", "memory"]


def test_a_file_that_is_not_yaml_is_an_error_of_collection(pytester: pytest.Pytester) -> None:
    pytester.makefile(".scenario.yaml", broken="a: [")
    result = pytester.runpytest_inprocess("-q", "-p", "no:cacheprovider")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*broken.scenario.yaml:1:*not valid YAML*"])
