"""What a node does: every kind of work that the kernel treats differently.

Every answer in the simulated world, whoever gives it, is an object with `v` (unique), `n` (a small number), `list`
and `items`; so output mappings fit any kind of node.
"""

from __future__ import annotations

from typing import Any

from tests.simulator.draw import Draw
from tests.simulator.generator.sketch import Fields, Sketch
from treadle.model.definition import Action, Concurrency, Step, Task

SIGNALS = ("alpha", "beta", "gamma")
FORM = {"type": "object", "required": ["v"], "properties": {"v": {"type": "integer"}}}
"""Of a gate: an answer without an integer `v` is refused, and the gate stays open."""
OUTPUT_SCHEMA = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 3}}}


def task(kind: str, **config: Any) -> Task:
    """A task of one step."""
    return Task(steps=[Step(ref="do", action=Action(kind=kind, config=config))])


def work(s: Sketch, **fields: Any) -> str:
    """A node with some kind of work."""
    content = s.draw.weighted(_kinds(s))(s)
    if "output_mapping" not in content and content and s.draw.chance(0.7):
        content["output_mapping"] = _mapping(s)
    return s.node(**{**content, **fields})


def _kinds(s: Sketch) -> list[tuple[Any, float]]:
    options: list[tuple[Any, float]] = [(local, 6.0)]
    extra: tuple[tuple[str, Any], ...] = (
        ("human", human),
        ("wait", wait),
        ("signal", signal),
        ("webhook", webhook),
        ("queue", queued),
        ("slot", slotted),
        ("native", native),
        ("passing", passing),
    )
    options += [(maker, 1.5) for name, maker in extra if s.plan.has(name)]
    if s.callees:
        options.append((call, 1.5))
    return options


def _mapping(s: Sketch) -> dict[str, Any]:
    mapping: dict[str, Any] = {"state.v": "$.v"}
    if s.draw.chance(0.3):
        mapping["state.list"] = "$.list"
    if s.draw.chance(0.2):
        mapping["output.v"] = "$.v"
    if s.draw.chance(0.1):
        mapping["state.deep.er"] = {"cel": s.draw.pick(("has(output.n) ? 1 : 0", "state.n", "output.n + 1"))}
    return mapping


def local(s: Sketch) -> Fields:
    """Executed in the engine's own process."""
    work = task("mock")
    if s.has("schema", 0.3):
        work = Task(steps=work.steps, output_schema=OUTPUT_SCHEMA)
    fields: Fields = {"task": work}
    if s.draw.chance(0.3):
        fields["input_mapping"] = {"x": "$.state.v", "i": "$._branch.index", "prev": "$.nodes.n0.output.v"}
    return fields


def queued(s: Sketch) -> Fields:
    """Executed by whoever claims it."""
    return {"task": task("mock"), "queue": s.draw.pick(("q1", "q2"))}


def slotted(s: Sketch) -> Fields:
    """Executed when a place is free."""
    return {"task": task("mock"), "concurrency": Concurrency(limit=s.draw.between(1, 2))}


def human(s: Sketch) -> Fields:
    """A person answers."""
    config: dict[str, Any] = {"title": "decide"}
    if s.draw.chance(0.5):
        config["form"] = FORM
    if s.draw.chance(0.4):
        config["due_ms"] = s.draw.between(20, 600)
        config["on_expiry"] = s.draw.pick(("fail", {"default": {"v": -1, "n": 0}}))
    if s.draw.chance(0.2):
        config["remind_ms"] = s.draw.between(10, 200)
    _asked(Draw(s.plan.seed, f"people of {s.name} {len(s.nodes)}"), config)
    return {"task": task("human", **config)}


def _asked(draw: Draw, config: Fields) -> None:
    """The people a gate asks, and when; from a stream of its own, so that the graph stays as it was."""
    if "remind_ms" in config and draw.chance(0.5):
        config["remind_ms"] = [20, 90]
    if draw.chance(0.25):
        quorum = draw.pick(({"of": 3, "accept": 2}, {"of": 2, "accept": 2}, {"of": 2, "accept": 1}))
        config["assign"] = {"users": ["ann", "bob", "eve"], "quorum": quorum}
        config["on_quorum_failed"] = draw.pick(("fail", "first"))
    elif draw.chance(0.3):
        config["assign"] = draw.pick(("ann", ["ann", "bob"], {"groups": ["staff"]}))
    if draw.chance(0.2):
        config["escalate"] = {"after_ms": draw.between(20, 300), "to": "eve"}


def wait(s: Sketch) -> Fields:
    """Time passes."""
    return {"task": task("wait", ms=s.draw.pick((0, 10, 80, 300)))}


def signal(s: Sketch) -> Fields:
    """Somebody says something."""
    config: dict[str, Any] = {"name": s.draw.pick(SIGNALS)}
    if s.draw.chance(0.3):
        config["key"] = s.draw.pick((1, "$.input.n"))
    if s.draw.chance(0.3):
        config["buffer"] = s.draw.pick(("none", 50))
    return {"task": task("signal", **config)}


def awaits(s: Sketch, ref: str, name: str) -> bool:
    """Whether the node itself waits for this signal."""
    work = s.nodes[ref].get("task")
    return work is not None and any(
        step.action.kind == "signal" and step.action.config["name"] == name for step in work.steps
    )


def webhook(s: Sketch) -> Fields:
    """An external worker calls back."""
    config: dict[str, Any] = {"url": "https://worker.example/do"}
    if s.draw.chance(0.4):
        config["timeout_ms"] = s.draw.between(30, 400)
    return {"task": task("webhook", **config)}


def call(s: Sketch) -> Fields:
    """A child run."""
    config: dict[str, Any] = {"workflow": s.draw.pick(s.callees)}
    if s.draw.chance(0.4):
        config["on_failure"] = "catch"
    mapping = {"n": "$.input.n", "items": "$.input.items", "flag": True}
    return {"task": task("workflow_call", **config), "input_mapping": mapping}


def native(s: Sketch) -> Fields:
    """What the kernel carries out itself; group actions are placed where there are groups, by `trimmings`."""
    if s.draw.chance(0.4):
        return {"task": task("emit", type="progress", data="$.state.v")}
    return {"task": task("send", signal=s.draw.pick(SIGNALS), data={"v": s.draw.between(1, 9)})}


def passing(s: Sketch) -> Fields:
    """No task: straight through."""
    return {"input_mapping": {"v": "$.state.v", "n": 1}} if s.draw.chance(0.5) else {}
