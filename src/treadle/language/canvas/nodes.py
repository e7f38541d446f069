"""One canvas node → one canonical node: which action a Worker is, what a person at a UX node sees.

`data` may carry some fields of page 1 by their own names (retry, timeout_ms, …). Everything else in a Worker's
`data` is its configuration and reaches the external worker as it is.
"""

from __future__ import annotations

from typing import Any

from treadle.language.grammar.kinds import KINDS
from treadle.language.grammar.node import NODE
from treadle.language.grammar.task import ACTION_OR_NAME, ONLY_STEP
from treadle.language.reading import Place, Reading
from treadle.language.shapes import BAD, Json
from treadle.model import definition as d

FIELDS = (
    *("retry", "timeout_ms", "terminates", "compensate", "compensate_on_failure"),
    *("queue", "concurrency", "mutex", "entity", "output_mapping"),
)
"""Node fields that `data` may carry under their own names."""
_SPELLINGS = {**{name: name for name in FIELDS}, "entityMovement": "entity"}
_HUMAN = ("title", "form", "assign", "due_ms", "remind_ms", "on_expiry")
_NOT_CONFIG = {*_SPELLINGS, "webhookUrl", "secret", "label", "action"}


def worker_node(data: dict[str, Json], at: Place, reading: Reading) -> d.Node:
    """A Worker: an action written in place, an integrated one by `workerType`, or a webhook."""
    if data.get("action") is not None:
        return _node(data, at, reading, data["action"], ("data", "action"))
    kind = data.get("workerType")
    named = isinstance(kind, str) and kind in reading.known_names("actions")
    if named and not data.get("webhookUrl"):
        return _node(data, at, reading, kind, ("data", "workerType"))
    known = isinstance(kind, str) and (kind in KINDS or kind in (reading.settings.kinds or {}))
    if known and not data.get("webhookUrl"):
        config = data.get("config")
        action = {**(config if isinstance(config, dict) else {}), "kind": kind}
        return _node(data, at, reading, action, ("data", "config"))
    return _node(data, at, reading, _webhook(data), ("data",))


def _webhook(data: dict[str, Json]) -> dict[str, Json]:
    action: dict[str, Json] = {"kind": "webhook", "url": data.get("webhookUrl") or ""}
    if data.get("secret") is not None:
        action["secret"] = data["secret"]
    config = {key: value for key, value in data.items() if key not in _NOT_CONFIG}
    return action | ({"config": config} if config else {})


def ux_node(data: dict[str, Json], at: Place, reading: Reading) -> d.Node:
    """A UX node: a person answers. The label is the title unless there is one."""
    action = {"kind": "human", **{key: data[key] for key in _HUMAN if data.get(key) is not None}}
    if "title" not in action and isinstance(data.get("label"), str):
        action["title"] = data["label"]
    return _node(data, at, reading, action, ("data",))


def passing_node(data: dict[str, Json], at: Place, reading: Reading) -> d.Node:
    """A Splitter or Collector: no task of its own; what comes in goes out."""
    return _node(data, at, reading, None, ())


def _node(data: dict[str, Json], at: Place, reading: Reading, action: Json, written: tuple[str, ...]) -> d.Node:
    values = _fields(data, at, reading)
    if isinstance(data.get("label"), str) and data["label"]:
        values["description"] = data["label"]
    if action is not None:
        place = Place((*at.written, *written), (*at.canonical, "task", "steps", 0, "action"))
        reading.note(place)
        result = ACTION_OR_NAME.read(action, place, reading)
        if result is not BAD:
            values["task"] = d.Task(steps=[d.Step(ref=ONLY_STEP, action=result)])
    return d.Node(**values)


def _fields(data: dict[str, Json], at: Place, reading: Reading) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for spelled, name in _SPELLINGS.items():
        if data.get(spelled) is not None:
            place = Place((*at.written, "data", spelled), (*at.canonical, name))
            reading.note(place)
            result = NODE.spellings[name].shape.read(data[spelled], place, reading)
            if result is not BAD:
                values[name] = result
    return values
