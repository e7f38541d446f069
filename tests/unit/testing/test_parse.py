"""Scenario files: every key is known, and every mistake names its place and what was probably meant."""

from __future__ import annotations

import pytest

from treadle.errors import ScenarioError
from treadle.testing.scenario import form as s
from treadle.testing.scenario.documents import read_documents
from treadle.testing.scenario.parse import parse_scenario

HEAD = "scenario: x\ndefinitions: [{workflow: w, nodes: {a: {}}}]\n"


def parse(text: str) -> s.Scenario:
    [document] = read_documents(HEAD + text, "f")
    return parse_scenario(document)


def step(text: str) -> s.ScenarioStep:
    steps = parse(f"steps:\n  - {text}").steps
    assert steps is not None
    return steps[0]


@pytest.mark.parametrize(
    ("text", "kind", "fields"),
    [
        ("advance_ms: 5", s.AdvanceStep, {"ms": 5}),
        ("settle: true", s.SettleStep, {}),
        ("{release: 'a[1]', output: 3}", s.ReleaseStep, {"address": "a[1]", "outcome": s.Outcome(output=3)}),  # type: ignore[attr-defined]
        ("release: a", s.ReleaseStep, {"outcome": s.Outcome(output={})}),  # type: ignore[attr-defined]
        ("signal: {name: go, key: 1, data: {x: 2}}", s.SignalStep, {"name": "go", "key": 1, "data": {"x": 2}}),
        ("{gate: a, data: {ok: true}}", s.AnswerGateStep, {"address": "a", "data": {"ok": True}, "every": False}),
        ("{gates: a, data: {ok: true}, run: other}", s.AnswerGateStep, {"every": True, "run": "other"}),
        ("{callback: a, output: 1, times: 2, attempt: 3}", s.CallbackStep, {"times": 2, "attempt": 3}),
        ("cancel: run", s.CancelRunStep, {}),
        ("cancel: {group: g, join: drop}", s.CancelGroupStep, {"group": "g", "join": "drop"}),
        ("cancel: {node: 'a[0]'}", s.CancelNodeStep, {"address": "a[0]"}),
        ("{retry: a, visit: 2, refused: INVALID_STATE}", s.RetryStep, {"visit": 2, "refused": "INVALID_STATE"}),
        ("pause: true", s.PauseStep, {}),
        ("resume: true", s.ResumeStep, {}),
        ("extend_timeout_ms: 9", s.ExtendTimeoutStep, {"ms": 9}),
        ("abort: true", s.AbortStep, {}),
        ("skip_compensation: a", s.SkipCompensationStep, {"address": "a"}),
        ("retry_compensation: a", s.RetryCompensationStep, {"address": "a"}),
        ("add_siblings: {group: g, items: [1]}", s.AddSiblingsStep, {"group": "g", "items": [1]}),
        ("add_siblings: {group: g, count: 2}", s.AddSiblingsStep, {"count": 2}),
        ("close_group: g", s.CloseGroupStep, {"group": "g"}),
        ("crash: true", s.CrashStep, {"at": None, "count": 1}),
        ("crash: {at: after_commit, count: 2}", s.CrashStep, {"at": "after_commit", "count": 2}),
        ("crash: {down_ms: 7}", s.CrashStep, {"down_ms": 7}),
        ("expect: {status: running}", s.ExpectStep, {}),
        ("deploy: {workflow: w2, nodes: {a: {}}}", s.DeployStep, {}),
    ],
)
def test_every_verb_is_understood(text: str, kind: type[s.ScenarioStep], fields: dict[str, object]) -> None:
    found = step(text)
    assert type(found) is kind
    assert {key: getattr(found, key) for key in fields} == fields


def test_a_further_run_has_a_name() -> None:
    found = step("start: {workflow: w, input: {x: 1}, as: second, idempotency_key: k}")
    assert isinstance(found, s.StartRunStep)
    start = found.start
    assert (start.workflow, start.input, start.idempotency_key, start.name) == ("w", {"x": 1}, "k", "second")


def test_mocks_are_one_outcome_or_a_list() -> None:
    found = parse("mocks: {a: {output: 1, after_ms: 5}, 'a[0]': [{error: {}}, {hold: true}]}").mocks
    assert [mock.address for mock in found] == ["a", "a[0]"]
    assert found[0].outcomes == (s.Outcome(output=1, after_ms=5),)  # type: ignore[attr-defined]
    error, hold = found[1].outcomes
    assert error.error is not None and (error.error.kind, error.error.message, error.error.retryable) == (
        "TASK_FAILED",
        "mock failure",
        False,
    )
    assert hold.hold


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("expekt: {}", "f:3:1: unknown key `expekt` of a scenario; did you mean `expect`?"),
        ("start: {imput: {}}", "f:3:9: unknown key `imput` of `start`; did you mean `input`?"),
        ("mocks: {a: {outptu: 1}}", "did you mean `output`? at mocks.a.outptu"),
        ("mocks: {a: {output: 1, error: {}}}", "an output or an error, not both"),
        ("mocks: {a: {after_ms: -1}}", "expected a whole number of at least 0, found -1"),
        ("mocks: {a: []}", "a list of outcomes needs at least one"),
        ("mocks: {a: {hold: true, output: 1}}", "is said by its `release` step"),
        ("steps: [{advance: 5}]", "unknown step `advance`; did you mean `advance_ms`?"),
        ("steps: [{advance_ms: 5, settle: true}]", "a step does one thing, this one does 2"),
        ("steps: [{settle: yes}]", "expected true, found 'yes'"),
        ("steps: [{release: a, data: 1}]", "unknown key `data` of a `release` step"),
        ("steps: [{cancel: all}]", "`all` is no thing to cancel"),
        ("steps: [{crash: {at: before}}]", "`before` is no crash point; did you mean `before_commit`?"),
        ("steps: [{crash: {count: 2}}]", "a count needs the point it counts"),
        ("steps: [{add_siblings: {group: g}}]", "needs a `group` and either `items` or a `count`"),
        ("steps: [{signal: {key: 1}}]", "a signal needs its `name`"),
        ("steps: [{}]", "a step needs one of: advance_ms"),
        ("expect: {status: complete}", "`complete` is no status of a run; did you mean `completed`?"),
        ("expect: {waiting: [{node: a, for: sibling}]}", "did you mean `siblings`?"),
        ("expect: {waiting: [{node: a}]}", "a wait needs its `node` and what it waits `for`"),
        ("expect: {events: [token.complete]}", "did you mean `token.completed`?"),
        ("expect: {tokens: {done: 1}}", "`done` is no state of a visit"),
        ("expect: {warnings: [run.failed]}", "is no type of warning event"),
        ("expect: {visits: [a]}", "expected a map, found a list"),
        ("deploy_error: CYCLE\nexpect: {}", "`expect` makes no sense beside `deploy_error`"),
        ("shuffle: many", "expected a whole number of at least 0, found 'many'"),
        ("start: {entity: {id: e}}", "an entity needs `type`"),
    ],
)
def test_a_mistake_names_its_place_and_what_was_meant(text: str, complaint: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        parse(text)
    assert complaint in str(refused.value)
    assert str(refused.value).startswith("f:")


def test_a_scenario_needs_a_name_and_definitions() -> None:
    for text in ("definitions: [{}]", "scenario: x", "scenario: x\ndefinitions: []"):
        with pytest.raises(ScenarioError, match="a scenario needs"):
            parse_scenario(read_documents(text, "f")[0])


def test_a_deploy_error_runs_nothing_and_a_warning_may_run_something() -> None:
    assert not parse("deploy_error: CYCLE").runs
    assert parse("deploy_error: {code: CYCLE, at: nodes.a}").deploy_error == s.DeployExpected("CYCLE", "nodes.a")
    assert not parse("deploy_warning: UNREAD_WRITE").runs
    assert parse("deploy_warning: UNREAD_WRITE\nexpect: {status: completed}").runs
