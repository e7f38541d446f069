"""Which kinds there are, and how to add one."""

from __future__ import annotations

import pytest

from tests.unit.actions.calls import error, output
from treadle.actions.protocol import Call, Done, Reply
from treadle.actions.registry import Registry, UnknownKind

SPEC_1_3 = ["python", "http", "shell", "llm", "mcp", "template", "set", "assert", "mock"]
SPEC_1_3 += ["artifact_write", "artifact_read", "emit", "send", "cancel_group", "add_siblings", "close_group"]
SPEC_1_3 += ["human", "wait", "signal", "workflow_call", "webhook", "work"]


def test_the_registry_knows_exactly_the_kinds_of_the_specification() -> None:
    assert sorted(Registry().kinds()) == sorted(SPEC_1_3)


@pytest.mark.parametrize("name", SPEC_1_3)
def test_a_kind_goes_by_its_own_name(name: str) -> None:
    assert Registry().kind(name).name == name


class Shout:
    name = "shout"

    def run(self, call: Call) -> Reply:
        return Done({"text": call.input["text"].upper()})


def test_a_third_party_adds_a_kind_with_one_small_class() -> None:
    registry = Registry()
    registry.register(Shout())
    assert output("shout", {}, {"text": "hi"}, registry=registry) == {"text": "HI"}


def test_an_exception_out_of_a_kind_is_a_failure_of_the_step() -> None:
    registry = Registry()
    registry.register(Shout())
    assert error("shout", {}, {}, registry=registry).message == "KeyError: 'text'"


def test_an_unknown_kind_names_the_nearest() -> None:
    with pytest.raises(UnknownKind, match=r"no action kind 'tempalte'; did you mean 'template'\?"):
        Registry().kind("tempalte")
    with pytest.raises(UnknownKind, match=r"no action kind 'zzz'\."):
        Registry().kind("zzz")


def test_an_unknown_kind_fails_only_when_it_is_run_so_that_it_can_be_mocked() -> None:
    problem = error("tempalte", {})
    assert problem.kind == "NOT_FOUND"
    assert "did you mean 'template'?" in problem.message


@pytest.mark.parametrize("kind", ["http", "shell", "llm", "mcp"])
def test_a_kind_that_reaches_outside_names_itself_and_the_remedy(kind: str) -> None:
    message = error(kind, {}).message
    assert f"kind {kind!r}" in message
    assert "mock 'review' or 'review/only' in a scenario" in message


@pytest.mark.parametrize("kind", ["human", "wait", "signal", "workflow_call", "webhook"])
def test_a_suspending_kind_does_not_run_inside_a_task(kind: str) -> None:
    assert "must be the only step of its task" in error(kind, {}).message
