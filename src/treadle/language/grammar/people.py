"""The people of a `human` action: who may answer, how many agree, who is asked later (5.5)."""

from __future__ import annotations

from treadle.language.compounds import Forms, ListOf
from treadle.language.grammar.retry import TIMEOUT
from treadle.language.record import Field, Record
from treadle.language.shapes import Text, Whole

_TEXT = Text("a name")
_QUORUM = Record(
    "Quorum",
    "Several people answer; the gate completes when enough answers are equal.",
    (
        Field("of", Whole(1), "How many people answer", required=True),
        Field("accept", Whole(1), "How many equal answers are enough", required=True),
    ),
)
_NAMES = ListOf(_TEXT, one=True)
_PEOPLE = (Field("users", _NAMES, "People, by name"), Field("groups", _NAMES, "Groups of people"))
ASSIGN = Forms(
    "a name, a list of names, or {users, groups, quorum}",
    text=_TEXT,
    list=ListOf(_TEXT, least=1),
    map=Record("Assignees", "The people who may answer.", (*_PEOPLE, Field("quorum", _QUORUM, "How many agree"))),
)
_ESCALATED_TO = Forms(
    "a name, a list of names, or {users, groups}",
    text=_TEXT,
    list=ListOf(_TEXT, least=1),
    map=Record("EscalatedTo", "The people who may answer, too.", _PEOPLE),
)
ESCALATE = Record(
    "Escalation",
    "More people are asked when nobody has answered for long.",
    (
        Field("after_ms", TIMEOUT, "How long after the gate was opened", required=True),
        Field("to", _ESCALATED_TO, "Who may answer from then on, beside those assigned", required=True),
    ),
)
REMINDERS = Forms("milliseconds or a list of them", whole=TIMEOUT, list=ListOf(TIMEOUT, least=1))
