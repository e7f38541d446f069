"""The `steps` of a scenario: one parser per verb.

Part of the parser (see `parse`); owns the verbs and the modifiers every step may carry: `refused`, `expect_refused`,
`visit`, `run`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from treadle.language.problem import nearest
from treadle.model.references import Person
from treadle.testing.scenario import change_steps as change
from treadle.testing.scenario import form as s
from treadle.testing.scenario.parse_expect import parse_expectation
from treadle.testing.scenario.parse_parts import parse_amounts, parse_definition, parse_error, parse_spent, parse_start
from treadle.testing.scenario.place import ValuePlace
from treadle.testing.scenario.step_fields import Fields, Modifiers
from treadle.testing.world.outcomes import Outcome

_MODIFIERS = frozenset({"refused", "expect_refused", "visit", "run"})
Parser = Callable[[ValuePlace, Fields, Modifiers], s.ScenarioStep]
_POINTS = ("before_commit", "after_commit", "after_dispatch")


def parse_step(place: ValuePlace) -> s.ScenarioStep:
    """One step: a map with exactly one verb."""
    entries = place.map()
    verbs = [key for key in entries if key in _VERBS]
    if len(verbs) > 1:
        place.refuse(f"a step does one thing, this one does {len(verbs)}: {', '.join(verbs)}")
    if not verbs:
        _refuse_verb(place, entries)
    verb = _VERBS[verbs[0]]
    fields = place.fields({verbs[0], *verb.more, *_MODIFIERS}, f"a `{verbs[0]}` step")
    return verb.parse(fields[verbs[0]], fields, _modifiers(place, fields))


def _refuse_verb(place: ValuePlace, entries: Fields) -> None:
    for key, entry in entries.items():
        if near := nearest(key, _VERBS):
            entry.refuse(f"unknown step `{key}`; did you mean `{near}`?", key=True)
    place.refuse(f"a step needs one of: {', '.join(_VERBS)}")


def _modifiers(place: ValuePlace, fields: Fields) -> Modifiers:
    return Modifiers(
        place=place,
        refused=fields["refused"].text() if "refused" in fields else None,
        expect_refused=_texts(fields["expect_refused"]) if "expect_refused" in fields else (),
        visit=fields["visit"].count(1) if "visit" in fields else None,
        run=fields["run"].text() if "run" in fields else None,
    )


def _texts(value: ValuePlace) -> tuple[str, ...]:
    texts = tuple(place.text() for place in value.items())
    if not texts:
        value.refuse("name at least one text that the refusal must contain")
    return texts


def _advance(value: ValuePlace, _fields: Fields, modifiers: Modifiers) -> s.ScenarioStep:
    return s.AdvanceStep(ms=value.count(), **modifiers)


def _extend(value: ValuePlace, _fields: Fields, modifiers: Modifiers) -> s.ScenarioStep:
    return s.ExtendTimeoutStep(ms=value.count(), **modifiers)


def _extend_either(value: ValuePlace, fields: Fields, modifiers: Modifiers) -> s.ScenarioStep:
    """The deadline by milliseconds, or a budget by its parts."""
    if not isinstance(value.value, dict):
        return _extend(value, fields, modifiers)
    return s.RaiseBudgetStep(amounts=parse_amounts(value), **modifiers)


def _bare(step: Callable[..., s.ScenarioStep]) -> Parser:
    def parse(value: ValuePlace, _fields: Fields, modifiers: Modifiers) -> s.ScenarioStep:
        value.true()
        return step(**modifiers)

    return parse


def _addressed(step: Callable[..., s.ScenarioStep]) -> Parser:
    def parse(value: ValuePlace, _fields: Fields, modifiers: Modifiers) -> s.ScenarioStep:
        return step(address=value.text(), **modifiers)

    return parse


def _retry(value: ValuePlace, _fields: Fields, modifiers: Modifiers) -> s.ScenarioStep:
    return s.RetryRunStep(**modifiers) if value.text() == "run" else s.RetryStep(address=value.text(), **modifiers)


def _release(value: ValuePlace, fields: Fields, modifiers: Modifiers) -> s.ScenarioStep:
    _not_both(fields)
    outcome = Outcome(
        output=fields["output"].value if "output" in fields else {},
        error=parse_error(fields["error"]) if "error" in fields else None,
        spent=parse_spent(fields),
    )
    return s.ReleaseStep(address=value.text(), outcome=outcome, **modifiers)


def _signal(value: ValuePlace, _fields: Fields, modifiers: Modifiers) -> s.ScenarioStep:
    parts = value.fields({"name", "key", "data"}, "`signal`")
    if "name" not in parts:
        value.refuse("a signal needs its `name`")
    return s.SignalStep(name=parts["name"].text(), key=_json(parts, "key"), data=_json(parts, "data"), **modifiers)


def _gate(value: ValuePlace, fields: Fields, modifiers: Modifiers) -> s.ScenarioStep:
    by, person = _acting(fields)
    comment = fields["comment"].text() if "comment" in fields else None
    return s.AnswerGateStep(
        address=value.text(),
        data=_json(fields, "data"),
        by=by,
        force=_forced(fields),
        person=person,
        comment=comment,
        **modifiers,
    )


def _acting(fields: Fields) -> tuple[str | None, Person | None]:
    """The person of a step: `by: NAME` is their word; with `groups` or `admin` their identity counts as checked."""
    by = fields["by"].text() if "by" in fields else None
    if by is None or not fields.keys() & {"groups", "admin"}:
        return by, None
    groups = tuple(part.text() for part in fields["groups"].items()) if "groups" in fields else ()
    return by, Person(by, groups, admin="admin" in fields and fields["admin"].flag())


def _gates(value: ValuePlace, fields: Fields, modifiers: Modifiers) -> s.ScenarioStep:
    return s.AnswerGateStep(address=value.text(), data=_json(fields, "data"), every=True, **modifiers)


def _hand_gate(move: str) -> Parser:
    def parse(value: ValuePlace, fields: Fields, modifiers: Modifiers) -> s.ScenarioStep:
        needed = {"delegate_gate": ("by", "to"), "comment_gate": ("by", "text")}.get(move, ("by",))
        for name in needed:
            if name not in fields:
                value.refuse(f"`{move}` needs `{name}`" + ("" if name == "text" else ": somebody's name"))
        to = fields["to"].text() if "to" in fields else ""
        text = fields["text"].text() if "text" in fields else ""
        (by, person), force = _acting(fields), _forced(fields)
        return s.HandGateStep(
            address=value.text(), move=move, by=by or "", to=to, force=force, person=person, text=text, **modifiers
        )

    return parse


def _forced(fields: Fields) -> bool:
    return "force" in fields and fields["force"].flag()


def _callback(value: ValuePlace, fields: Fields, modifiers: Modifiers) -> s.ScenarioStep:
    _not_both(fields)
    return s.CallbackStep(
        address=value.text(),
        output=fields["output"].value if "output" in fields else {},
        error=parse_error(fields["error"]) if "error" in fields else None,
        spent=parse_spent(fields),
        times=fields["times"].count(1) if "times" in fields else 1,
        attempt=fields["attempt"].count(1) if "attempt" in fields else None,
        **modifiers,
    )


def _cancel(value: ValuePlace, _fields: Fields, modifiers: Modifiers) -> s.ScenarioStep:
    if isinstance(value.value, str):
        value.choice({"run"}, "thing to cancel")
        return s.CancelRunStep(**modifiers)
    parts = value.fields({"group", "node", "join"}, "`cancel`")
    if "group" in parts and "node" not in parts:
        join: Any = parts["join"].choice({"fire", "drop"}, "`join`") if "join" in parts else "fire"
        return s.CancelGroupStep(group=parts["group"].text(), join=join, **modifiers)
    if set(parts) != {"node"}:
        value.refuse("cancel `run`, `{group: g, join?}` or `{node: n}`")
    return s.CancelNodeStep(address=parts["node"].text(), **modifiers)


def _add_siblings(value: ValuePlace, _fields: Fields, modifiers: Modifiers) -> s.ScenarioStep:
    parts = value.fields({"group", "items", "count"}, "`add_siblings`")
    if "group" not in parts or ("items" in parts) == ("count" in parts):
        value.refuse("adding siblings needs a `group` and either `items` or a `count`")
    items = parts["items"].value if "items" in parts else None
    count = parts["count"].count() if "count" in parts else None
    if items is not None:
        parts["items"].items()
    return s.AddSiblingsStep(group=parts["group"].text(), items=items, count=count, **modifiers)


def _close_group(value: ValuePlace, _fields: Fields, modifiers: Modifiers) -> s.ScenarioStep:
    return s.CloseGroupStep(group=value.text(), **modifiers)


def _crash(value: ValuePlace, _fields: Fields, modifiers: Modifiers) -> s.ScenarioStep:
    if value.value is True:
        return s.CrashStep(**modifiers)
    parts = value.fields({"at", "count", "down_ms"}, "`crash`")
    if "count" in parts and "at" not in parts:
        parts["count"].refuse("a count needs the point it counts: `at`", key=True)
    at: Any = parts["at"].choice(_POINTS, "crash point") if "at" in parts else None
    return s.CrashStep(
        at=at,
        count=parts["count"].count(1) if "count" in parts else 1,
        down_ms=parts["down_ms"].count() if "down_ms" in parts else 0,
        **modifiers,
    )


def _start(value: ValuePlace, _fields: Fields, modifiers: Modifiers) -> s.ScenarioStep:
    return s.StartRunStep(start=parse_start(value, "as"), **modifiers)


def _deploy(value: ValuePlace, _fields: Fields, modifiers: Modifiers) -> s.ScenarioStep:
    return s.DeployStep(definition=parse_definition(value), **modifiers)


def _migrate(value: ValuePlace, _fields: Fields, modifiers: Modifiers) -> s.ScenarioStep:
    parts = value.fields({"to", "nodes", "dry_run"}, "`migrate`")
    if "to" not in parts:
        value.refuse("a migration needs the version it goes `to`")
    nodes = {old: new.text() for old, new in parts["nodes"].map().items()} if "nodes" in parts else {}
    dry_run = "dry_run" in parts and parts["dry_run"].flag()
    return s.MigrateStep(to=parts["to"].count(1), nodes=nodes, dry_run=dry_run, **modifiers)


def _expect(value: ValuePlace, _fields: Fields, modifiers: Modifiers) -> s.ScenarioStep:
    return s.ExpectStep(expectation=parse_expectation(value), **modifiers)


def _json(fields: Fields, key: str) -> Any:
    return fields[key].value if key in fields else None


def _not_both(fields: Fields) -> None:
    if "output" in fields and "error" in fields:
        fields["error"].refuse("an outcome has an output or an error, not both", key=True)


class Verb(NamedTuple):
    """How a step is read, and which keys it has beside its verb."""

    parse: Parser
    more: tuple[str, ...] = ()


_VERBS: dict[str, Verb] = {
    "advance_ms": Verb(_advance),
    "settle": Verb(_bare(s.SettleStep)),
    "release": Verb(_release, ("output", "error", "cost", "usage")),
    "signal": Verb(_signal),
    "gate": Verb(_gate, ("data", "by", "force", "groups", "admin", "comment")),
    "gates": Verb(_gates, ("data",)),
    "claim_gate": Verb(_hand_gate("claim_gate"), ("by", "groups", "admin")),
    "release_gate": Verb(_hand_gate("release_gate"), ("by", "force", "groups", "admin")),
    "delegate_gate": Verb(_hand_gate("delegate_gate"), ("to", "by", "force", "groups", "admin")),
    "comment_gate": Verb(_hand_gate("comment_gate"), ("by", "text")),
    "callback": Verb(_callback, ("output", "error", "times", "attempt", "cost", "usage")),
    "cancel": Verb(_cancel),
    "retry": Verb(_retry),
    "pause": Verb(_bare(s.PauseStep)),
    "resume": Verb(_bare(s.ResumeStep)),
    "extend_timeout_ms": Verb(_extend),
    "extend": Verb(_extend_either),
    "abort": Verb(_bare(s.AbortStep)),
    "skip_compensation": Verb(_addressed(s.SkipCompensationStep)),
    "retry_compensation": Verb(_addressed(s.RetryCompensationStep)),
    "add_siblings": Verb(_add_siblings),
    "close_group": Verb(_close_group),
    "crash": Verb(_crash),
    "start": Verb(_start),
    "deploy": Verb(_deploy),
    "migrate": Verb(_migrate),
    "edit": Verb(change.parse_edit),
    "skip": Verb(change.parse_skip),
    "jump": Verb(change.parse_jump),
    "set_input": Verb(change.parse_set_input),
    "mark": Verb(change.parse_mark),
    "fork": Verb(change.parse_fork),
    "expect": Verb(_expect),
}
