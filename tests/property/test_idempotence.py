"""Messages come twice: the second time nothing happens, whether it comes at once or much later.

What may be recorded all the same (2.16, "Answers"): that a result came too late (`result.ignored`) and that a callback
was refused. What may be sent again: the report of an ended child, because the first one may be what was lost.
"""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.driving import RUN, TASK, Driven, graph_of, problems
from tests.property.playing import disturb, examples, holds, seeds, started, told
from treadle.kernel.lifecycle import LIVE
from treadle.model import commands as c
from treadle.model import effects as x
from treadle.model.codec import unpack_events
from treadle.model.decision import Decision
from treadle.model.errors import Error
from treadle.model.ids import TokenId

randoms = st.randoms(use_true_random=False)

RECORDED = {"result.ignored", "callback.refused"}
MESSAGES = (
    c.StartRun,
    c.FinishAttempt,
    c.FailAttempt,
    c.FireTimer,
    c.SendSignal,
    c.ReceiveCallback,
    c.EndChild,
    c.AddSiblings,
)
"""What machines deliver, at least once and at any time. An operator's command is about the run as it is now."""


def changes(decision: Decision) -> list[str]:
    """What a repeated delivery did and must not do."""
    events = [event.type for event in decision.events if event.type not in RECORDED]
    effects = [type(effect).__name__ for effect in decision.effects if not isinstance(effect, x.NotifyParent)]
    return events + effects


def _has_failed(driven: Driven, token: int) -> bool:
    kept = driven.state.tokens.get(token)  # type: ignore[call-overload]
    return kept is not None and kept.state not in LIVE


def _is_open(driven: Driven, name: str) -> bool:
    key = driven.graph.group_key(name)
    return any(group.open and key in group.names for group in driven.state.groups.values())


def again_at_once(driven: Driven, command: c.Command) -> None:
    if isinstance(command, c.RetryToken | c.SkipToken) and _has_failed(driven, command.token):
        return  # it has failed again at once: to retry or skip it now is a new wish, not the old one
    if isinstance(command, c.CloseGroup) and _is_open(driven, command.group):
        return  # the newest of that name is closed; to close one more is a new wish
    found = changes(driven.do(command))
    assert not found, told(driven, [f"the second {command} did something: {found}"])


@examples(500)
@given(randoms)
def test_a_command_delivered_twice_changes_nothing_the_second_time(random: Random) -> None:
    driven = started(random)
    again_at_once(driven, driven.commands[0][1])
    disturb(driven, random, again_at_once)


def test_a_command_delivered_twice_changes_nothing_in_large_runs_either() -> None:
    for seed in seeds(500):
        random = Random(seed)
        driven = started(random)
        disturb(driven, random, again_at_once)
        found = problems(driven)
        assert not found, told(driven, [f"seed {seed}", *found])


def _has_meant(block: bytes) -> bool:
    """More than a refusal: what came too early, and was refused, may come again and be right."""
    return any(event.type not in RECORDED for event in unpack_events(block))


def much_later(driven: Driven, random: Random) -> None:
    """Any message that has meant something so far comes once more, now."""
    heard = [command for (_, command), block in zip(driven.commands, driven.blocks, strict=True) if _has_meant(block)]
    command = random.choice([command for command in heard if isinstance(command, MESSAGES)])
    found = changes(driven.do(command))
    assert not found, told(driven, [f"the belated second {command} did something: {found}"])
    holds(driven, command)


def test_a_message_that_comes_again_much_later_changes_nothing() -> None:
    for seed in seeds(700):
        random = Random(seed)
        driven = started(random)
        disturb(driven, random, lambda driven, _command, random=random: much_later(driven, random))  # type: ignore[misc]


ONCE = {"nodes": {"a": TASK, "b": {}}, "transitions": [{"from": "a", "to": "b"}]}


def test_a_late_result_is_recorded_as_ignored_only_once() -> None:
    driven = Driven(graph_of({"nodes": {"a": TASK, "b": TASK}, "start": ["a", "b"]})).start()
    driven.do(c.CancelToken(driven.token("a").id))
    counts = []
    for _ in range(3):
        driven.do(c.FinishAttempt(TokenId(1), 1, {}))
        counts.append(driven.count("result.ignored"))
    assert counts == [1, 1, 1], driven.log()


@pytest.mark.parametrize(
    "answer", [c.FinishAttempt(TokenId(1), 1, {"v": 1}), c.FailAttempt(TokenId(1), 1, Error("TASK_FAILED", "no"))]
)
def test_an_answer_after_an_answer_is_no_event(answer: c.Command) -> None:
    driven = Driven(graph_of(ONCE)).start()
    driven.do(c.FinishAttempt(TokenId(1), 1, {"v": 0}))
    assert not driven.do(answer).events


def test_a_run_is_started_once() -> None:
    driven = Driven(graph_of(ONCE)).start({"x": 1})
    decision = driven.do(c.StartRun(RUN, {"x": 2}))
    assert (decision.events, decision.effects, decision.rejection) == ([], [], None)
