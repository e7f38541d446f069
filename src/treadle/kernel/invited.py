"""The people a gate asks: who may answer it, and how many have to agree (5.5).

Rules about people hold for a person whose identity somebody has checked; a command without one comes from somebody who
holds the store. `model.people` says whom an `assign` names.
"""

from __future__ import annotations

from typing import Any, Literal

from treadle.expression.values import json_equal
from treadle.kernel.gate_state import GateQuestion
from treadle.model.people import is_asked, people_of
from treadle.model.references import Person

Json = Any


def problem_with(assign: Json) -> str | None:
    """What is wrong with an `assign` that a run has computed; None if nothing is."""
    if assign is None or isinstance(assign, str) or _is_names(assign):
        return None
    if not isinstance(assign, dict) or not assign.keys() <= {"users", "groups", "quorum"}:
        return f"assign is {assign!r}; it must be a name, a list of names, or {{users, groups, quorum}}"
    for part in ("users", "groups"):
        if not (assign.get(part) is None or isinstance(assign[part], str) or _is_names(assign[part])):
            return f"assign.{part} is {assign[part]!r}; it must be a list of names"
    return _problem_with_quorum(assign.get("quorum"))


def _is_names(value: Json) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _problem_with_quorum(quorum: Json) -> str | None:
    if quorum is None:
        return None
    whole = isinstance(quorum, dict) and all(type(quorum.get(key)) is int for key in ("of", "accept"))
    if not whole or not 1 <= quorum["accept"] <= quorum["of"]:
        return f"assign.quorum is {quorum!r}; it must be {{of: n, accept: m}} with 1 ≤ m ≤ n"
    return None


def quorum_of(assign: Json) -> tuple[int, int] | None:
    """(people who answer, equal answers that are enough); None: the first answer is."""
    quorum = assign.get("quorum") if isinstance(assign, dict) else None
    return (quorum["of"], quorum["accept"]) if quorum is not None else None


def may_answer(asked: GateQuestion, holder: str | None, person: Person) -> bool:
    """Whether this person may answer the gate, as far as it depends on whom it asks."""
    if person.admin or holder == person.name:
        return True
    assign = asked.opened.assign
    if next(people_of(assign), None) is None:
        return True
    return is_asked(assign, person) or is_asked(asked.escalated, person)


def verdict(asked: GateQuestion) -> Literal["open", "agreed", "failed"]:
    """What the answers so far mean: enough are equal, enough still can be, or they cannot any more."""
    quorum = quorum_of(asked.opened.assign)
    if quorum is None:
        return "open"
    people, enough = quorum
    most = max((_equal(asked, answer.data) for answer in asked.answers), default=0)
    if most >= enough:
        return "agreed"
    return "open" if most + people - len(asked.answers) >= enough else "failed"


def _equal(asked: GateQuestion, data: Json) -> int:
    return sum(1 for answer in asked.answers if json_equal(answer.data, data))
