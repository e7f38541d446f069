"""The workflows a torture runs: one per thing that could be lost or done twice.

Owns the definitions. What each must come to is computed in `expectations`, which does not look in here.
"""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

from treadle.language import load_value
from treadle.model.definition import Workflow

Json = dict[str, Any]


def calls(function: str, input: Json, output: Json, **more: Any) -> Json:
    action = {"kind": "python", "function": f"tests.torture.tasks:{function}"}
    return {"action": action, "input_mapping": input, "output_mapping": output, **more}


def adds(by: Any, n: str = "$.state.n", **more: Any) -> Json:
    return calls("add", {"n": n, "by": by}, {"state.n": "$.n"}, **more)


def row(*nodes: str) -> list[Json]:
    return [{"from": source, "to": target} for source, target in itertools.pairwise(nodes)]


def chain() -> Json:
    nodes = {
        "a": adds(1, "$.input.n"),
        "b": adds(10),
        "c": calls("add", {"n": "$.state.n", "by": 100, "ms": 15}, {"state.n": "$.n"}),
        "d": adds(1000),
    }
    return {"workflow": "chain", "output": {"n": "$.state.n"}, "nodes": nodes, "transitions": row("a", "b", "c", "d")}


def fan_out(name: str, join: Json) -> Json:
    square = calls("square", {"n": "$.item"}, {"state.v": "$.n"})
    merge = {"source": "_branch.output.v", "target": "state.all", "strategy": "append"}
    joined = {"sibling_group": "fan", "merge": merge, **join}
    return {
        "workflow": name,
        "output": {"all": "$.state.all"},
        "nodes": {"begin": {}, "square": square, "verdict": {}},
        "transitions": [
            {
                "id": "fan",
                "from": "begin",
                "to": "square",
                "foreach": {"collection": "input.items", "item_var": "item"},
            },
            {"from": "square", "to": "verdict", "synchronization": joined},
        ],
    }


def saga() -> Json:
    def step(what: str, **more: Any) -> Json:
        undo = {"kind": "python", "function": "tests.torture.tasks:undo"}
        undone = {"compensate": {"action": undo, "input_mapping": {"what": what}}}
        return calls("book", {"what": what}, {f"state.{what}": "$.booked"}, **undone, **more)

    last = calls("book", {"what": "ship", "fail": "$.input.fail"}, {"state.ship": "$.booked"})
    return {
        "workflow": "saga",
        "output": {"ship": "$.state.ship"},
        "nodes": {"reserve": step("reserve"), "charge": step("charge"), "insure": step("insure"), "ship": last},
        "transitions": row("reserve", "charge", "insure", "ship"),
    }


def gate() -> Json:
    ask = {"action": {"kind": "human", "title": "how much?"}, "output_mapping": {"state.answer": "$.answer"}}
    return {
        "workflow": "gate",
        "output": {"n": "$.state.n"},
        "nodes": {"before": adds(1, "$.input.n"), "ask": ask, "after": adds("$.state.answer")},
        "transitions": row("before", "ask", "after"),
    }


def expiring() -> Json:
    """A gate nobody answers: its own timer does."""
    human = {"kind": "human", "due_ms": 150, "on_expiry": {"default": {"answer": 7}}}
    ask = {"action": human, "output_mapping": {"state.answer": "$.answer"}}
    return {
        "workflow": "expiring",
        "output": {"n": "$.state.n"},
        "nodes": {"ask": ask, "after": adds("$.state.answer", "$.input.n")},
        "transitions": row("ask", "after"),
    }


def ticks() -> Json:
    """Three signals, added up: one lost hangs, one counted twice is a wrong sum."""
    begin = {
        "action": {"kind": "set", "values": {"zero": 0}},
        "output_mapping": {"state.sum": "$.zero", "state.count": "$.zero"},
    }
    hear = {"action": {"kind": "signal", "name": "tick"}, "output_mapping": {"state.last": "$.n"}}
    heard = {"sum": "$.state.sum", "count": "$.state.count", "last": "$.state.last"}
    count = calls("tally", heard, {"state.sum": "$.sum", "state.count": "$.count"})
    again = {"from": "count", "to": "hear", "condition": "state.count < 3", "loop": {"max_iterations": 10}}
    return {
        "workflow": "ticks",
        "output": {"sum": "$.state.sum", "count": "$.state.count"},
        "start": "begin",
        "nodes": {"begin": begin, "hear": hear, "count": count, "end": {}},
        "transitions": [*row("begin", "hear", "count"), again, {"from": "count", "to": "end", "priority": 2}],
    }


def nap() -> Json:
    wait = {"action": {"kind": "wait", "ms": 120}}
    nodes = {"before": adds(1, "$.input.n"), "wait": wait, "after": adds(2)}
    return {"workflow": "nap", "output": {"n": "$.state.n"}, "nodes": nodes, "transitions": row(*nodes)}


def caller(name: str, child: str) -> Json:
    action = {"kind": "workflow_call", "workflow": child}
    call = {"action": action, "input_mapping": {"n": "$.input.n"}, "output_mapping": {"state.n": "$.n"}}
    nodes = {"call": call, "after": adds(5)}
    return {"workflow": name, "output": {"n": "$.state.n"}, "nodes": nodes, "transitions": row(*nodes)}


def flaky() -> Json:
    """Durable retries inside a loop: three rounds of three attempts."""
    retry = {"max_attempts": 3, "backoff": "none", "initial_delay_ms": 5}
    begin = {"action": {"kind": "set", "values": {"zero": 0}}, "output_mapping": {"state.n": "$.zero"}}
    body = calls("flaky", {"n": "$.state.n"}, {"state.n": "$.n"}, retry=retry)
    again = {"from": "body", "to": "body", "condition": "state.n < 9", "loop": {"max_iterations": 10}}
    return {
        "workflow": "flaky",
        "output": {"n": "$.state.n"},
        "start": "begin",
        "nodes": {"begin": begin, "body": body, "end": {}},
        "transitions": [*row("begin", "body"), again, {"from": "body", "to": "end", "priority": 2}],
    }


def queued() -> Json:
    """Work that waits in lines: offered through the outbox, under a lease or a limit across runs."""
    nodes = {
        "heavy": adds(1, "$.input.n", queue="heavy"),
        "narrow": adds(2, concurrency={"limit": 2}),
        "after": adds(3),
    }
    return {"workflow": "queued", "output": {"n": "$.state.n"}, "nodes": nodes, "transitions": row(*nodes)}


def rest() -> Json:
    """A wait long enough that a clock that is wrong shows."""
    wait = {"action": {"kind": "wait", "ms": 3_000}}
    nodes = {"before": adds(1, "$.input.n"), "wait": wait, "after": adds(2)}
    return {"workflow": "rest", "output": {"n": "$.state.n"}, "nodes": nodes, "transitions": row(*nodes)}


def hauls() -> Json:
    """A fan-out into a queue: many workers, one join."""
    haul = calls("add", {"n": "$.item", "by": 1, "ms": 250}, {"state.v": "$.n"}, queue="heavy")
    merge = {"source": "_branch.output.v", "target": "state.all", "strategy": "append"}
    fan = {"id": "fan", "from": "begin", "to": "haul", "foreach": {"collection": "input.items", "item_var": "item"}}
    return {
        "workflow": "hauls",
        "output": {"all": "$.state.all"},
        "nodes": {"begin": {}, "haul": haul, "verdict": {}},
        "transitions": [
            fan,
            {"from": "haul", "to": "verdict", "synchronization": {"sibling_group": "fan", "merge": merge}},
        ],
    }


def long() -> Json:
    """Work that outlasts a lease: who stands still in the middle of it reports when somebody else is at it."""

    def takes(ms: int, n: str, **more: Any) -> Json:
        return calls("add", {"n": n, "by": 1, "ms": ms}, {"state.n": "$.n"}, **more)

    nodes = {"haul": takes(5_000, "$.input.n", queue="heavy"), "work": takes(4_000, "$.state.n")}
    return {"workflow": "long", "output": {"n": "$.state.n"}, "nodes": nodes, "transitions": row(*nodes)}


@cache
def workflows() -> tuple[Workflow, ...]:
    """All of them, read and checked."""
    documents = [
        chain(),
        fan_out("panel", {"strategy": "all"}),
        fan_out("quorum", {"strategy": {"m_of_n": 3}, "on_early_complete": "cancel"}),
        saga(),
        gate(),
        expiring(),
        ticks(),
        nap(),
        caller("caller", "chain"),
        caller("holder", "gate"),
        flaky(),
        queued(),
        rest(),
        hauls(),
        long(),
    ]
    return tuple(load_value(document).require() for document in documents)
