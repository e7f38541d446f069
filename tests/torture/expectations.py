"""What a run must come to, computed from what it was asked for and nothing else.

Owns the arithmetic of the judge: a second, independent opinion on every workflow. Must not read a definition, a history
or the engine.
"""

from __future__ import annotations

import random
from typing import Any

Json = Any


def ask(kind: str, random: random.Random) -> Json:
    """An input for a run of that kind, and what its client will say to it."""
    n = random.randrange(1_000)
    if kind in ("panel", "quorum", "hauls"):
        return {"input": {"items": [random.randrange(100) for _ in range(random.randint(3, 8))]}}
    if kind == "saga":
        return {"input": {"fail": random.random() < 0.6}}
    if kind == "ticks":
        return {"input": {}, "ticks": [random.randrange(1, 1_000) for _ in range(3)]}
    if kind in ("gate", "holder"):
        return {"input": {"n": n}, "answer": random.randrange(1_000), "cancel": random.random() < 0.3}
    return {"input": {"n": n}}


def problem_with(kind: str, asked: Json, status: str, output: Json) -> str | None:
    """What is wrong with how a run ended; None if nothing is."""
    if asked.get("cancel"):
        return None if status == "cancelled" else f"was cancelled by its client and is {status}"
    if kind == "saga" and asked["input"]["fail"]:
        return None if status == "compensated" else f"should be compensated and is {status}"
    if status != "completed":
        return f"should be completed and is {status}"
    if kind == "quorum":
        return _quorum_problem(asked["input"]["items"], output)
    wanted = _output(kind, asked)
    return None if output == wanted else f"gave {output!r} and should give {wanted!r}"


def _output(kind: str, asked: Json) -> Json:
    n = asked["input"].get("n", 0)
    sums = {"chain": 1_111, "expiring": 7, "nap": 3, "caller": 1_116, "queued": 6, "rest": 3, "long": 2}
    if kind in sums:
        return {"n": n + sums[kind]}
    if kind == "gate":
        return {"n": n + 1 + asked["answer"]}
    if kind == "holder":
        return {"n": n + 1 + asked["answer"] + 5}
    if kind == "panel":
        return {"all": [item * item for item in asked["input"]["items"]]}
    if kind == "hauls":
        return {"all": [item + 1 for item in asked["input"]["items"]]}
    if kind == "ticks":
        return {"sum": sum(asked["ticks"]), "count": 3}
    if kind == "flaky":
        return {"n": 9}
    return {"ship": "ship"}


def _quorum_problem(items: list[int], output: Json) -> str | None:
    """At least three squares, in the order of the items, none twice."""
    squares = [item * item for item in items]
    merged = output["all"]
    left = iter(squares)
    if len(merged) >= 3 and all(any(value == square for square in left) for value in merged):
        return None
    return f"merged {merged!r} of {squares!r}"
