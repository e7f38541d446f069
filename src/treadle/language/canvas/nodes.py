"""Canvas nodes as canonical nodes: the action of a Worker, the form a person at a UX node sees.

`data` may carry some fields of a node (1.2) by their own names (retry, timeout_ms, …). Keys for the eye (label, colour,
icon) are left to the drawing; everything else in the `data` of a Worker with an address is its configuration and
reaches the external worker as it is.
"""

from __future__ import annotations

from typing import Any

from treadle.language.grammar.kinds import KINDS
from treadle.language.grammar.node import NODE
from treadle.language.grammar.task import ACTION_OR_NAME, ONLY_STEP
from treadle.language.problem import did_you_mean
from treadle.language.reading import Place, Reading
from treadle.language.shapes import BAD, Json
from treadle.model import definition as d

FIELDS = (
    *("retry", "timeout_ms", "terminates", "compensate", "compensate_on_failure"),
    *("queue", "concurrency", "mutex", "entity", "output_mapping"),
)
"""Node fields that `data` may carry under their own names."""
_SPELLINGS = {**{name: name for name in FIELDS}, "entityMovement": "entity"}
_HUMAN = (
    *("title", "description", "form", "assign", "on_quorum_failed"),
    *("due_ms", "remind_ms", "escalate", "on_expiry"),
)
_OF_A_WORKER = frozenset({"webhookUrl", "secret", "action"})
_PAYLOADS = ("treadle", "stitch")
"""Values of `payload` that say how the message is written; any other is the worker's own configuration."""
_FOR_THE_EYE = frozenset(
    {"label", "color", "colour", "backgroundColor", "borderColor", "textColor"}
    | {"icon", "emoji", "className", "collapsed", "expanded"}
)
"""Keys of `data` that drawing tools keep looks in. A worker that wants one of them gets it inside `data.config`."""


def for_the_eye(kind: str, data: dict[str, Json], node: d.Node) -> dict[str, Json]:
    """The part of a node's `data` that is only drawn. `kind` is its type in lower case, `node` the canonical node it
    became."""
    executed = {"ux": set(_HUMAN), "splitter": {"arrayPath"}}.get(kind, set())
    if kind == "worker":
        takes_all = node.task is not None and node.task.steps[0].action.kind == "webhook" and "action" not in data
        executed = data.keys() - _looks(data) if takes_all else {*_OF_A_WORKER, "workerType", "config"}
    return {key: value for key, value in data.items() if key not in executed and key not in _SPELLINGS}


def _looks(data: dict[str, Json]) -> set[str]:
    """Whether `style` is only drawn: it is where it is a map, as in React; a worker may take one as text."""
    return (data.keys() & _FOR_THE_EYE) | ({"style"} if isinstance(data.get("style"), dict) else set())


def worker_node(data: dict[str, Json], at: Place, reading: Reading) -> d.Node:
    """The node of a Worker: an action written in place, a webhook to its address, or the action its `workerType` stands
    for."""
    if data.get("action") is not None:
        return _node(data, at, reading, data["action"], ("data", "action"))
    if data.get("webhookUrl"):
        return _node(data, at, reading, _webhook(data, {"url": data["webhookUrl"]}), ("data",))
    kind = data.get("workerType")
    if not isinstance(kind, str) or not kind:
        return _nobody(data, at, reading)
    if kind in reading.known_names("actions"):
        return _node(data, at, reading, kind, ("data", "workerType"))
    config = data.get("config")
    config = config if isinstance(config, dict) else {}
    workers = reading.settings.workers or {}
    if kind in workers:
        return _configured(workers[kind], config, data, at, reading)
    if kind in KINDS or kind in (reading.settings.kinds or {}):
        return _node(data, at, reading, {**config, "kind": kind}, ("data", "config"))
    known = [*reading.known_names("actions"), *workers, *KINDS, *(reading.settings.kinds or {})]
    hint = did_you_mean(kind, known) or "map it in the setting `workers`, or give the Worker a `webhookUrl`"
    message = f"there is no worker type `{kind[:60]}`, and the Worker has no `webhookUrl`"
    reading.problem("BAD_VALUE", Place((*at.written, "data", "workerType"), at.canonical), message, hint)
    return _node(data, at, reading, None, ())


def _configured(worker: Json, config: dict[str, Json], data: dict[str, Json], at: Place, reading: Reading) -> d.Node:
    """The action of a type by the project's setting `workers`; the node's own `config` is added to it, and wins."""
    if not isinstance(worker, dict):
        message = f"the setting `workers` must give an action for `{data['workerType']}`: a table with `kind`"
        reading.problem("BAD_VALUE", Place((*at.written, "data", "workerType"), at.canonical), message)
        return _node(data, at, reading, None, ())
    action = {key: value for key, value in worker.items() if key != "queue"}
    if worker.get("queue") is not None:
        data = {"queue": worker["queue"], **data}
    if action.get("kind") == "webhook":
        action = _webhook({key: value for key, value in data.items() if key != "queue"}, action)
    else:
        action |= config
    return _node(data, at, reading, action, ("data", "workerType"))


def _nobody(data: dict[str, Json], at: Place, reading: Reading) -> d.Node:
    """A Worker with neither an action, nor an address, nor a type: accepted where the caller answers for it, else a
    mistake."""
    if reading.settings.answered:
        return _node(data, at, reading, _webhook(data, {}), ("data",))
    place = Place((*at.written, "data", "webhookUrl") if "webhookUrl" in data else at.written, at.canonical)
    message = "nobody would do this Worker's work: it has neither `webhookUrl`, `workerType` nor `action`"
    reading.problem("BAD_VALUE", place, message, "give it an address, or a type that the setting `workers` knows")
    return _node(data, at, reading, None, ())


def _webhook(data: dict[str, Json], action: dict[str, Json]) -> dict[str, Json]:
    """A webhook with everything else in `data` as its configuration."""
    action = {"kind": "webhook", **action}
    if data.get("secret") is not None:
        action["secret"] = data["secret"]
    left_out = {*_SPELLINGS, *_OF_A_WORKER, *_looks(data)}
    if data.get("payload") in _PAYLOADS:
        action["payload"] = data["payload"]
        left_out.add("payload")
    config = {key: value for key, value in data.items() if key not in left_out}
    return action | ({"config": config} if config else {})


def ux_node(data: dict[str, Json], at: Place, reading: Reading) -> d.Node:
    """The node of a UX node: a person answers. The label is the title unless there is one."""
    action = {"kind": "human", **{key: data[key] for key in _HUMAN if data.get(key) is not None}}
    if "title" not in action and isinstance(data.get("label"), str):
        action["title"] = data["label"]
    return _node(data, at, reading, action, ("data",))


def passing_node(data: dict[str, Json], at: Place, reading: Reading) -> d.Node:
    """The node of a Splitter or Collector: it has no task, so its input is its output."""
    return _node(data, at, reading, None, ())


def _node(data: dict[str, Json], at: Place, reading: Reading, action: Json, written: tuple[str, ...]) -> d.Node:
    values = _fields(data, at, reading)
    if action is not None:
        place = Place((*at.written, *written), (*at.canonical, "task", "steps", 0, "action"))
        reading.note(place)
        result = ACTION_OR_NAME.read(action, place, reading)
        if result is not BAD:
            values["task"] = d.Task(steps=[d.Step(ref=ONLY_STEP, action=result)])
    node: d.Node = NODE.make(values)
    return node


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
