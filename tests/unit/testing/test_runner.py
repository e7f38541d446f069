"""Scenario files, played: what holds passes, what does not is told, what makes no sense is invalid."""

from __future__ import annotations

from pathlib import Path

import pytest

from treadle.testing import ScenarioResult, run_file, run_text

CHAIN = """
scenario: chain
definitions:
  - {workflow: w, nodes: {a: {}, b: {}}, transitions: [{from: a, to: b}]}
"""
GATE = """
scenario: gate
definitions:
  - workflow: w
    nodes: {s: {}, ask: {action: {kind: human, form: {type: object, required: [ok]}}}, b: {}}
    transitions: [{id: t, from: s, to: ask, spawn_count: 2}, {from: ask, to: b}]
"""
CALL = """
scenario: call
definitions:
  - workflow: w
    nodes: {call: {action: {kind: workflow_call, workflow: child}}, b: {}}
    transitions: [{from: call, to: b}]
  - {workflow: child, nodes: {work: {}}}
mocks: {work: {hold: true}}
"""


def play(text: str) -> ScenarioResult:
    [result] = run_text(text, "f")
    return result


def holds(text: str) -> None:
    result = play(text)
    assert result.ok, str(result)


def told(text: str, *parts: str, verdict: str = "failed") -> ScenarioResult:
    """The scenario does not hold, and its reason has all these parts."""
    result = play(text)
    assert result.verdict == verdict, str(result)
    for part in parts:
        assert part in (result.reason or ""), result.reason
    return result


def test_a_scenario_that_holds() -> None:
    holds(CHAIN + "expect: {status: completed, order: [a, b]}")


def test_a_failure_says_what_was_expected_and_shows_the_history() -> None:
    result = told(CHAIN + "expect: {visits: {a: 2, b: 1}}", "expect:", "visits.a: expected 2, was 1")
    assert result.history is not None
    assert "w  w v1  completed" in result.history and "run.completed" in result.history
    assert str(result).startswith("f:2 chain: failed")


def test_a_failing_step_is_named_by_number_and_line() -> None:
    told(CHAIN + "steps:\n  - settle: true\n  - expect: {status: failed}", "step 2 (line 7):")


def test_every_document_of_a_file_is_a_scenario_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "x.scenario.yaml"
    file.write_text(f"{CHAIN}expect: {{status: completed}}\n---\n{CHAIN}expect: {{status: failed}}\n---\nscenario: 3\n")
    assert [result.verdict for result in run_file(file)] == ["passed", "failed", "invalid"]


def test_a_file_that_cannot_be_read_is_invalid(tmp_path: Path) -> None:
    (tmp_path / "binary.scenario.yaml").write_bytes(b"\xff\xfe\x00")
    for name in ("nowhere.scenario.yaml", "binary.scenario.yaml"):
        [result] = run_file(tmp_path / name)
        assert result.verdict == "invalid" and "cannot be read" in (result.reason or "")


def test_a_definition_may_be_a_file_beside_the_scenario(tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text("workflow: w\nnodes: {a: {}}\n")
    file = tmp_path / "x.scenario.yaml"
    file.write_text("scenario: x\ndefinitions: [{file: w.yaml}]\nexpect: {status: completed, visits: {a: 1}}\n")
    assert [result.verdict for result in run_file(file)] == ["passed"]
    file.write_text("scenario: x\ndefinitions: [{file: nope.yaml}]\n")
    [result] = run_file(file)
    assert result.verdict == "invalid" and "cannot read" in (result.reason or "")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("mocks: {c: {}}", ["f:5:9: `c` names no node"]),
        ("mocks: {a/step: {}}", ["`a` has no step `step`"]),
        ("mocks: {compensate(a): {}}", ["`a` has no `compensate` to mock"]),
        ("expect: {visits: {aa: 1}}", ["f:5:19: `aa` names no node; did you mean `a`?"]),
        ("expect: {order: [a, d]}", ["`d` names no node"]),
        ("expect: {waiting: [{node: x, for: human}]}", ["`x` names no node"]),
        ("expect: {runs: {v: {}}}", ["no run is called `v`"]),
        ("start: {workflow: v}", ["no definition is called `v`"]),
        ("steps: [{gate: nobody}]", ["`nobody` names no node"]),
        ("steps: [{release: a}]", []),
    ],
)
def test_a_name_that_means_nothing_is_an_error_of_the_file(text: str, parts: list[str]) -> None:
    verdict = "invalid" if parts else "passed"
    assert play(CHAIN + text).verdict == verdict
    if parts:
        told(CHAIN + text, *parts, verdict="invalid")


def test_an_invalid_definition_is_told_with_the_line_in_the_scenario() -> None:
    told("scenario: x\ndefinitions:\n  - workflow: w\n    nods: {a: {}}\n", "f:4", "UNKNOWN_FIELD", verdict="invalid")


def test_a_deploy_error_must_be_that_one() -> None:
    text = "scenario: x\ndefinitions: [{workflow: w, nods: {a: {}}}]\ndeploy_error: "
    holds(text + "UNKNOWN_FIELD")
    holds(text + "{code: UNKNOWN_FIELD, at: nods}")
    told(text + "{code: UNKNOWN_FIELD, at: elsewhere}", "expected UNKNOWN_FIELD at elsewhere")
    told(text + "CYCLE", "deploy_error: expected CYCLE, was", "UNKNOWN_FIELD")
    told(CHAIN + "deploy_error: CYCLE", "no error at all")


def test_a_refusal_must_come_and_must_be_that_one() -> None:
    holds(GATE + "steps: [{gate: 'ask[0]', data: {}, refused: SCHEMA}, {gate: 'ask[0]', data: {ok: 1}}]")
    told(GATE + "steps: [{gate: 'ask[0]', data: {}}]", "expected to be accepted, was refused with SCHEMA")
    told(GATE + "steps: [{gate: 'ask[0]', data: {ok: 1}, refused: SCHEMA}]", "refused with SCHEMA, was accepted")
    told(GATE + "steps: [{gate: 'ask[0]', data: {}, refused: NOT_FOUND}]", "be refused with NOT_FOUND, was refused")
    holds(GATE + "steps: [{gate: nowhere, refused: NOT_FOUND}]")
    holds(GATE + "steps: [{gate: b, refused: INVALID_STATE}]")


def test_several_live_visits_need_a_number() -> None:
    told(GATE + "steps: [{gate: ask, data: {ok: 1}}]", "ask means 2 live visits", "`visit: n`", verdict="invalid")
    one = "steps: [{gate: ask, data: {ok: 1}, visit: 2}]\nexpect: {waiting: [{node: 'ask[0]', for: human}]}"
    holds(GATE + one)
    told(GATE + "steps: [{gate: ask, data: {ok: 1}, visit: 3}]", "there is no number 3", verdict="invalid")
    holds(GATE + "steps: [{gates: ask, data: {ok: 1}}]\nexpect: {status: completed, visits: {s: 1, ask: 2, b: 2}}")


def test_an_address_may_mean_a_childs_node() -> None:
    holds(CALL + "steps: [{release: work}]\nexpect: {status: completed, visits: {call: 1, b: 1, work: 1}}")
    holds(CALL + "steps: [{release: work, run: child}]\nexpect: {runs: {child: {status: completed}}}")
    told(CALL + "steps: [{release: work, run: nobody}]", "no runs are called 'nobody'", verdict="invalid")


def test_releasing_what_is_not_held_is_an_error_of_the_file() -> None:
    told(GATE + "steps: [{release: 'ask[0]'}]", "nothing is held at ask[0]", verdict="invalid")


def test_a_late_release_is_recorded_as_ignored() -> None:
    text = "mocks: {a: {hold: true}}\nsteps: [{cancel: run}, {release: a}]\n"
    holds(CHAIN + text + "expect: {status: cancelled, events: [run.cancelled, result.ignored]}")


def test_a_start_that_is_refused_can_be_expected() -> None:
    text = "scenario: x\ndefinitions: [{workflow: w, input_schema: {required: [n]}, nodes: {a: {}}}]\n"
    holds(text + "expect: {error: {kind: SCHEMA}, visits: {}}")
    told(text + "steps: [{settle: true}]", "the run was refused with SCHEMA")


def test_a_crash_that_never_comes_is_a_warning() -> None:
    result = play(CHAIN + "steps: [{crash: {at: after_commit, count: 9}}]")
    assert result.ok and result.warnings == ("a crash point was never reached",)


def test_a_failure_under_a_seed_names_the_seed() -> None:
    text = """
scenario: race
definitions:
  - workflow: w
    nodes: {s: {}, a: {output_mapping: {state.last: $.v}}, b: {output_mapping: {state.last: $.v}}}
    transitions: [{from: s, to: a}, {from: s, to: b}]
mocks: {a: {output: {v: a}}, b: {output: {v: b}}}
shuffle: 20
expect: {state: {last: b}}
"""
    told(text, "(shuffle seed ", "state.last: expected")


def test_an_engine_that_breaks_is_a_failure_with_its_history(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_arguments: object) -> None:
        raise KeyError("oops")

    monkeypatch.setattr("treadle.runtime.coordinate.coordinator.decide", broken)
    told(CHAIN + "expect: {status: completed}", "start:", "the engine broke", "KeyError: 'oops'")


def test_an_invariant_that_does_not_hold_fails_the_scenario(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("treadle.testing.world.world.violations", lambda _graph, _state: ["two tokens in one place"])
    told(CHAIN + "expect: {status: completed}", "an invariant does not hold", "two tokens in one place")


def test_a_run_can_be_sent_to_by_its_name() -> None:
    holds("""
scenario: send
definitions:
  - {workflow: w, nodes: {wait: {action: {kind: signal, name: go}}}}
  - {workflow: other, nodes: {tell: {action: {kind: send, signal: go, run: second}}}}
steps:
  - start: {workflow: w, as: second}
  - start: {workflow: other, as: teller}
expect: {status: running, runs: {second: {status: completed}, teller: {status: completed}, w: {status: running}}}
""")
