"""Calls for the tests of action kinds: one line to make one, one line to run it."""

from __future__ import annotations

from typing import Any

from treadle.actions.protocol import AttemptFacts, Call, Done, Failed
from treadle.actions.registry import Registry
from treadle.model.ids import RunId, TokenId
from treadle.runtime.execute.drive import begin, settle
from treadle.runtime.execute.task import Invoke

FACTS = AttemptFacts(run=RunId("r1"), token=TokenId(7), attempt=2, node="review", path="root.review.0")


def call(config: dict[str, Any], input: Any = None, **fields: Any) -> Call:
    """A call of a step named `only`."""
    given = {"facts": FACTS, "step": "only", **fields}
    return Call(config=config, input={} if input is None else input, **given)


def reply(kind: str, config: dict[str, Any], input: Any = None, registry: Registry | None = None, **fields: Any) -> Any:
    """What an action comes to, as the drivers do it."""
    invoke = Invoke((registry or Registry()).resolve(kind), call(config, input, **fields))
    return settle(begin(invoke), None)[0]


def output(kind: str, config: dict[str, Any], input: Any = None, **fields: Any) -> Any:
    """The output of an action that must succeed."""
    answer = reply(kind, config, input, **fields)
    assert isinstance(answer, Done), answer
    return answer.output


def error(kind: str, config: dict[str, Any], input: Any = None, **fields: Any) -> Any:
    """The error of an action that must fail."""
    answer = reply(kind, config, input, **fields)
    assert isinstance(answer, Failed), answer
    return answer.error
