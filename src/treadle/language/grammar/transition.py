"""Transitions: all routing is written here (1.4)."""

from __future__ import annotations

from typing import Any

from treadle.language.compounds import Adapt, Forms, ListOf
from treadle.language.condition import ConditionValue, reads_last_error
from treadle.language.grammar.synchronization import GROUP, SYNCHRONIZATION
from treadle.language.phrases import CelText, PathText, SourceValue, path_problem
from treadle.language.reading import Place, Reading
from treadle.language.record import Field, OneKey, OneOf, Record, given_fields
from treadle.language.shapes import BAD, Choice, Flag, Json, Milliseconds, Number, Schema, Shape, Text, Whole
from treadle.model import definition as d

REF = Text("a node ref", longest=200)
RESERVED = frozenset({"input", "state", "output", "nodes", "_branch", "_last_error", "_run", "_visit"})
_DELAY = Milliseconds(0, code="BAD_VALUE")


class ItemVariable(Text):
    """The name of a loop variable: a root of its own, so it may not hide another one."""

    def __init__(self) -> None:
        super().__init__("a variable name", "[A-Za-z_][A-Za-z0-9_]*", longest=100)

    def read(self, value: Json, at: Place, reading: Reading) -> Any:
        name = super().read(value, at, reading)
        if name is not BAD and name in RESERVED:
            reading.problem("BAD_VALUE", at, f"`{name}` is already the name of something every condition sees")
            return BAD
        return name


FOREACH = Record(
    "Foreach",
    "One token per item of a collection.",
    (
        Field("collection", PathText(), "Path of the list", required=True),
        Field("item_var", ItemVariable(), "Name under which a branch sees its item; it is always `_branch.item`"),
        Field(
            "on_empty",
            REF,
            "Target node of the join that an empty collection satisfies, where several are possible",
        ),
        Field("on_missing", Choice("fail", "empty", "single"), "What a missing list means", default="fail"),
        Field("max_in_flight", Whole(1), "At most so many live branches at a time"),
        Field("by_item", Flag(), "Transitions of one group share the items (a canvas splitter)", default=False),
    ),
    d.Foreach,
)

_BUFFER = Forms("`none` or a number of milliseconds", text=Choice("none"), whole=_DELAY)


class TriggerShape(Record):
    """`key` and `buffer` belong to a signal."""

    def read(self, value: Json, at: Place, reading: Reading) -> Any:
        trigger = super().read(value, at, reading)
        if trigger is BAD or trigger.signal is not None:
            return trigger
        for name in ("key", "buffer"):
            if value.get(name) is not None:
                reading.problem("BAD_VALUE", at.key(name), f"`{name}` belongs to a `signal` trigger", on_key=True)
        return trigger


TRIGGER = TriggerShape(
    "Trigger",
    "What makes this transition fire while its node waits or works (A2).",
    (
        Field("signal", Text("a signal name"), "A signal of that name"),
        Field("key", SourceValue(), "Correlation key of the signal"),
        Field("buffer", _BUFFER, "How old a signal is accepted: any unless given, `none`, or at most so many ms"),
        Field("after_ms", _DELAY, "A time after the token's arrival"),
        Field("when", ConditionValue(), "A condition becoming true"),
    ),
    d.Trigger,
    one_of=(OneOf(("signal", "after_ms", "when"), required=True),),
)

CANCELS = Record(
    "Cancels",
    "What is withdrawn when this transition fires (A6).",
    (
        Field("nodes", ListOf(REF, one=True), "Tokens at these nodes"),
        Field("groups", ListOf(GROUP, one=True), "Live branches of these groups"),
        Field("join", Choice("fire", "drop"), "What the groups' joins do", default="fire"),
    ),
    d.Cancels,
)

_LOOP = Record(
    "Loop",
    "Bounds a cycle.",
    (Field("max_iterations", Whole(1), "At the limit the transition does not match", required=True),),
)


class RoutingCondition(ConditionValue):
    """A condition; `true` is the same as none."""

    def read(self, value: Json, at: Place, reading: Reading) -> Any:
        return None if value is True else super().read(value, at, reading)


class EdgeMapping(Shape):
    """Key of the target's input ← path in the upstream node's output. Paths are kept as written: whether a
    leading `output` is a key or means "the output" is known only at run time (1.10).
    """

    wants = "a map from names to paths"

    def read(self, value: Json, at: Place, reading: Reading) -> Any:
        if not isinstance(value, dict):
            return self.wrong(value, at, reading)
        return {key: path for key, path in value.items() if self._sound(path, at.key(key), reading)}

    def _sound(self, path: Json, at: Place, reading: Reading) -> bool:
        if not isinstance(path, str) or not path.strip():
            reading.problem("BAD_VALUE", at, "expected a path in the upstream node's output")
            return False
        if (message := path_problem(path)) is not None:
            reading.problem("BAD_VALUE", at, message)
            return False
        return True

    def describe(self) -> Schema:
        return {"type": "object", "additionalProperties": {"type": "string", "minLength": 1}}


_COUNT_FROM = OneKey(
    {
        "from_context": (PathText(), "Path of a whole number"),
        "cel": (CelText(), "An expression that gives one"),
    }
)
SPAWN_COUNT = Forms(
    "a whole number, {from_context: path} or {cel: expression}",
    whole=Whole(1, code="SPAWN_COUNT"),
    map=Adapt(_COUNT_FROM, lambda pair: dict([pair]), lambda value: next(iter(value.items()))),
)

TRANSITION = Record(
    "Transition",
    "An edge: from one node to the next, with everything that decides whether and how often it is taken.",
    (
        Field("id", Text("an id", longest=500), "Unique; `<from>-><to>` unless given"),
        Field("from", REF, "The node it leaves", also=("from_node_id",), required=True),
        Field("to", REF, "The node it leads to", also=("to_node_id",), required=True),
        Field("priority", Number(), "1 = first; equal numbers are one tier", default=1),
        Field("on", Choice("success", "failure", "always"), "Which outcome it follows", default="success"),
        Field("condition", RoutingCondition(), "When it is taken", default=True),
        Field("spawn_count", SPAWN_COUNT, "How many tokens it starts", default=1),
        Field("foreach", FOREACH, "One token per item of a collection"),
        Field("sibling_group", GROUP, "Names the group of the tokens it starts"),
        Field("open", Flag(), "The group may grow until it is closed", default=False),
        Field(
            "on_first_completion",
            Choice("continue_all", "cancel_remaining"),
            "What the first finished branch does to the others",
            default="continue_all",
        ),
        Field(
            "on_first_start",
            Choice("continue_all", "cancel_remaining"),
            "What the first started branch does to the others (A14)",
            default="continue_all",
        ),
        Field("loop", _LOOP, "Bounds a cycle", also=("loop_config",)),
        Field("trigger", TRIGGER, "Fires by a signal, a time or a condition instead of by routing (A2)"),
        Field("interrupting", Flag(), "A trigger ends the visit it leaves", default=True),
        Field("cancels", CANCELS, "What is withdrawn when it fires (A6)"),
        Field("mapping", EdgeMapping(), "Key of the target's input ← path in the upstream node's output"),
        Field("synchronization", SYNCHRONIZATION, "A join (1.7)", also=("join",)),
    ),
    make=dict,
    unmake=lambda transition: _unmake(transition),
    one_of=(OneOf(("spawn_count", "foreach")),),
    hints={"wait_for": "write `synchronization: {sibling_group: …, strategy: …}`"},
)


def make_transition(values: dict[str, Any], transition_id: str) -> d.Transition:
    """The canonical transition, its defaults filled in."""
    fields = {key: value for key, value in values.items() if key not in ("from", "loop", "spawn_count", "id")}
    if "on" not in fields and reads_last_error(fields.get("condition")):
        fields["on"] = "failure"
    count = values.get("spawn_count", 1)
    if isinstance(count, dict):
        fields["spawn_from"] = count
    elif count != 1:
        fields["spawn_count"] = count
    if "loop" in values:
        fields["loop_max_iterations"] = values["loop"]["max_iterations"]
    return d.Transition(id=transition_id, from_=values["from"], **fields)


def _unmake(transition: d.Transition) -> dict[str, Any]:
    values = given_fields(transition)
    if "spawn_from" in values:
        values["spawn_count"] = values.pop("spawn_from")
    if "loop_max_iterations" in values:
        values["loop"] = {"max_iterations": values.pop("loop_max_iterations")}
    if transition.on == "success" and reads_last_error(transition.condition):
        values["on"] = "success"
    return values
