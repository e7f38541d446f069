"""Steps by which a scenario changes its run: `edit`, `skip`, `jump`, `set_input` (6.4), `mark` and `fork` (6.3): their
form, and their parsers.

Part of the parser, which names them in its table; `changing` carries them out.
"""

from __future__ import annotations

from typing import Any

from treadle.model import commands as c
from treadle.model.commands import ForkChanges
from treadle.model.references import EntityRef
from treadle.testing.scenario.form import ScenarioStep
from treadle.testing.scenario.parse_parts import parse_entity
from treadle.testing.scenario.place import ValuePlace
from treadle.testing.scenario.step_fields import Fields, Modifiers

Json = Any


class EditStep(ScenarioStep, frozen=True):
    writes: dict[str, Json]
    address: str | None = None
    """A visit of the branch whose scope is written; None: the run's own scope."""
    by: str = "operator"
    reason: str | None = None


class ChangeVisitStep(ScenarioStep, frozen=True):
    """`skip`, `jump` or `set_input`."""

    verb: str
    address: str
    value: Json = None
    """The output or the input."""
    to: str = ""
    by: str = "operator"
    reason: str | None = None

    def command(self, token: Any) -> c.Command:
        """The command of this step to a visit."""
        if self.verb == "jump":
            return c.JumpToken(token, self.to, self.by, self.reason)
        if self.verb == "skip":
            return c.SkipToken(token, self.value, self.by, self.reason)
        return c.SetInput(token, self.value, self.by, self.reason)


class MarkStep(ScenarioStep, frozen=True):
    """Remembers the last sequence number of a run."""

    name: str


class ForkStep(ScenarioStep, frozen=True):
    """Starts a run with the past of another one."""

    at: int | None = None
    mark: str | None = None
    address: str | None = None
    """Of the visit before whose work the fork begins."""
    node: str | None = None
    changes: ForkChanges = ForkChanges()
    outputs: dict[str, Json] = {}
    """By address."""
    inherit_compensation: bool = False
    entity: EntityRef | None = None
    key: str | None = None
    tags: tuple[str, ...] = ()
    name: str | None = None
    by: str = "operator"


_VALUES = {"skip": "output", "jump": "to", "set_input": "input"}


def parse_edit(value: ValuePlace, _fields: Fields, modifiers: Modifiers) -> ScenarioStep:
    """`edit: {writes: {target path: value}, branch?: address, by?, reason?}`."""
    parts = value.fields({"writes", "branch", "by", "reason"}, "`edit`")
    if "writes" not in parts:
        value.refuse("an edit needs its `writes`: {target path: value}")
    writes = {path: place.value for path, place in parts["writes"].map().items()}
    address = parts["branch"].text() if "branch" in parts else None
    return EditStep(writes=writes, address=address, **_signed(parts), **modifiers)


def parse_skip(value: ValuePlace, _fields: Fields, modifiers: Modifiers) -> ScenarioStep:
    """`skip: {visit: address, output, by?, reason?}`."""
    return _change("skip", value, modifiers)


def parse_jump(value: ValuePlace, _fields: Fields, modifiers: Modifiers) -> ScenarioStep:
    """`jump: {visit: address, to: node, by?, reason?}`."""
    return _change("jump", value, modifiers)


def parse_set_input(value: ValuePlace, _fields: Fields, modifiers: Modifiers) -> ScenarioStep:
    """`set_input: {visit: address, input, by?, reason?}`."""
    return _change("set_input", value, modifiers)


def _change(verb: str, value: ValuePlace, modifiers: Modifiers) -> ScenarioStep:
    key = _VALUES[verb]
    parts = value.fields({"visit", key, "by", "reason"}, f"`{verb}`")
    if "visit" not in parts or (verb == "jump" and "to" not in parts):
        value.refuse(
            f"`{verb}` needs `visit`" + (" and `to`" if verb == "jump" else "") + f": {{visit: node, {key}: …}}"
        )
    given = parts[key].value if key in parts else {}
    to = parts["to"].text() if verb == "jump" else ""
    address = parts["visit"].text()
    return ChangeVisitStep(verb=verb, address=address, value=given, to=to, **_signed(parts), **modifiers)


def parse_mark(value: ValuePlace, _fields: Fields, modifiers: Modifiers) -> ScenarioStep:
    """`mark: name`."""
    return MarkStep(name=value.text(), **modifiers)


_FORK = frozenset({"at", "changes", "inherit_compensation", "entity", "key", "tags", "as", "by"})


def parse_fork(value: ValuePlace, _fields: Fields, modifiers: Modifiers) -> ScenarioStep:
    """`fork: {at: now | SEQ | {mark} | {visit} | {node}, changes?, inherit_compensation?, entity?, key?, tags?, as}`,
    which lets a run begin with the past of another one."""
    parts = value.fields(_FORK, "`fork`")
    if "at" not in parts:
        value.refuse("a fork needs the point it begins `at`: now, a sequence number, {mark}, {visit} or {node}")
    changes, outputs = _changes(parts["changes"]) if "changes" in parts else (ForkChanges(), {})
    return ForkStep(
        **_point(parts["at"]),
        changes=changes,
        outputs=outputs,
        inherit_compensation="inherit_compensation" in parts and parts["inherit_compensation"].flag(),
        entity=parse_entity(parts["entity"]) if "entity" in parts else None,
        key=parts["key"].text() if "key" in parts else None,
        tags=tuple(tag.text() for tag in parts["tags"].items()) if "tags" in parts else (),
        name=parts["as"].text() if "as" in parts else None,
        by=parts["by"].text() if "by" in parts else "operator",
        **modifiers,
    )


def _point(value: ValuePlace) -> dict[str, Any]:
    if value.value == "now":
        return {}
    if not isinstance(value.value, dict):
        return {"at": value.count()}
    parts = value.fields({"mark", "visit", "node", "seq"}, "`at`")
    if len(parts) != 1:
        value.refuse("a fork begins at one point: {mark: name}, {visit: address} or {node: ref}")
    if "seq" in parts:
        return {"at": parts["seq"].count()}
    key = next(iter(parts))
    return {"address" if key == "visit" else key: parts[key].text()}


def _changes(value: ValuePlace) -> tuple[ForkChanges, dict[str, Json]]:
    parts = value.fields({"input", "state", "outputs", "version"}, "`changes`")
    changes = ForkChanges(
        input=parts["input"].value if "input" in parts else None,
        state={path: place.value for path, place in parts["state"].map().items()} if "state" in parts else {},
        version=parts["version"].count(1) if "version" in parts else None,
    )
    outputs = {key: place.value for key, place in parts["outputs"].map().items()} if "outputs" in parts else {}
    return changes, outputs


def _signed(parts: Fields) -> dict[str, Any]:
    return {key: parts[key].text() for key in ("by", "reason") if key in parts}
