"""What every task of a nested fan-out reads, and what the run's state is at the end, against a recursion over plain
dictionaries.

Owns that recursion: a block is given what its branch sees and answers with the writes it makes. Reads fall through,
writes stay, a join lays the branches' writes over one another by index or merges what each has written (2.4). Tasks
write whole values and parts of them, so that overlays meet at every depth.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from tests.driving import TASK, Driven, graph_of
from tests.property.playing import fixed_seeds, told
from treadle.model import commands as c
from treadle.model.states import RunStatus, TokenState

Json = Any
Branch = tuple[int, ...]
Values = dict[str, Json]
Writes = list[tuple[str, Json]]
Reads = dict[tuple[str, Branch], list[Json]]
"""The inputs of every task, by node and branch."""
Oracle = Callable[[Branch, Values, Reads], Writes]

DEPTH = 4
INPUT = {f"n{count}": list(range(count)) for count in range(4)}
READING = {"x": "$.state.x", "y": "$.state.y"}


class Block(NamedTuple):
    """A part of a workflow, and what it writes."""

    entry: str
    exit: str
    writes: Oracle


def test_every_task_reads_and_every_join_writes_what_the_branches_say() -> None:
    for seed in fixed_seeds(600):
        random = Random(seed)
        sketch = Sketch(random)
        whole = sketch.whole()
        driven = Driven(graph_of(sketch.document)).start(INPUT)
        read = play(driven, random)
        before = written({}, wrote("START", ()))
        expected: Reads = {}
        after = written(before, whole.writes((), before, expected))
        assert driven.state.status is RunStatus.COMPLETED, told(driven, [f"seed {seed}: {driven.state.error}"])
        found = [*differences(expected, read), *differences(after, driven.state.context()["state"])]
        assert not found, told(driven, [f"seed {seed}", *found])


def wrote(ref: str, branch: Branch) -> Writes:
    """What a task that writes everything writes, in its branch."""
    value = f"{ref}{list(branch)}"
    return [("x", value), ("y", {"a": value, "c": value})]


def written(values: Values, writes: Writes) -> Values:
    """A write of a part leaves the other parts alone; a write of the whole replaces them."""
    values = dict(values)
    for key, value in writes:
        whole, _, part = key.partition(".")
        if part:
            inside = values.get(whole)
            values[whole] = {**(inside if isinstance(inside, dict) else {}), part: value}
        else:
            values[whole] = value
    return values


def differences(expected: dict[Any, Json], got: dict[Any, Json]) -> list[str]:
    keys = dict.fromkeys([*expected, *got])
    return [f"{k}: expected {expected.get(k)}, got {got.get(k)}" for k in keys if expected.get(k) != got.get(k)]


def play(driven: Driven, random: Random) -> Reads:
    """Answer in any order; what each task was given."""
    read: Reads = {}
    while not driven.ended:
        executing = [token for token in driven.state.tokens.values() if token.state is TokenState.EXECUTING]
        assert executing, told(driven, ["the run hangs"])
        token = random.choice(executing)
        branch = tuple(index for _, index in token.frames)
        if token.node != "START":
            read.setdefault((token.node, branch), []).append(token.input)
        (_, value), (_, parts) = wrote(token.node, branch)
        driven.do(c.FinishAttempt(token.id, token.attempt, {"v": value, "w": parts}))
    return read


class Sketch:
    """Draws blocks, and keeps the nodes and transitions they consist of."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.nodes: dict[str, Json] = {"END": {}}
        self.nodes["START"] = {**TASK, "output_mapping": {"state.x": "$.v", "state.y": "$.w"}}
        self.transitions: list[dict[str, Json]] = []
        self._count = 0

    @property
    def document(self) -> dict[str, Json]:
        return {"start": "START", "nodes": self.nodes, "transitions": self.transitions}

    def whole(self) -> Block:
        whole = self.block(DEPTH)
        self.hop("START", whole.entry)
        self.hop(whole.exit, "END")
        return whole

    def name(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def node(self, prefix: str, **fields: Json) -> str:
        ref = self.name(prefix)
        self.nodes[ref] = fields
        return ref

    def hop(self, source: str, target: str, **fields: Json) -> None:
        self.transitions.append({"from": source, "to": target, **fields})

    def block(self, depth: int) -> Block:
        kind = self.random.choice(["task", "sequence", "sequence", "replicated", "fork"]) if depth > 0 else "task"
        if kind == "task":
            return self.task()
        return {"sequence": self.sequence, "replicated": self.replicated, "fork": self.fork}[kind](depth - 1)

    def task(self) -> Block:
        keys = self.random.sample(["x", "y.a", "y.b", "y"], self.random.randint(0, 2))
        if "y" in keys:
            keys = [key for key in keys if not key.startswith("y.")]
        mapping = {f"state.{key}": "$.w" if key == "y" else "$.v" for key in keys}
        ref = self.node("task", **TASK, output_mapping=mapping, input_mapping=READING)

        def writes(branch: Branch, values: Values, reads: Reads) -> Writes:
            reads.setdefault((ref, branch), []).append({key: values.get(key) for key in READING})
            (_, value), (_, parts) = wrote(ref, branch)
            return [(key, parts if key == "y" else value) for key in keys]

        return Block(ref, ref, writes)

    def sequence(self, depth: int) -> Block:
        first, second = self.block(depth), self.block(depth)
        self.hop(first.exit, second.entry)

        def writes(branch: Branch, values: Values, reads: Reads) -> Writes:
            before = first.writes(branch, values, reads)
            return [*before, *second.writes(branch, written(values, before), reads)]

        return Block(first.entry, second.exit, writes)

    def replicated(self, depth: int) -> Block:
        count = self.random.choice([0, 1, 2, 3])
        split, join, body, name = self.node("split"), self.node("join"), self.block(depth), self.name("t")
        foreach: dict[str, Json] = {"collection": f"input.n{count}"}
        if self.random.random() < 0.3:
            foreach["max_in_flight"] = self.random.randint(1, 2)
        self.hop(split, body.entry, id=name, foreach=foreach)
        merged = self.random.random() < 0.4
        self.hop(body.exit, join, synchronization=synchronization(name, join, merged))
        return Block(split, join, joined([body] * count, join, merged))

    def fork(self, depth: int) -> Block:
        split, join = self.node("fork"), self.node("join")
        ways = [self.block(depth) for _ in range(self.random.choice([1, 2, 3]))]
        merged, declared = self.random.random() < 0.3, self.random.random() < 0.4
        name = self.name("g") if declared else split
        for way in ways:
            self.hop(split, way.entry, **({"sibling_group": name} if declared else {}))
            self.hop(way.exit, join, synchronization=synchronization(name, join, merged))
        return Block(split, join, joined(ways, join, merged))


def synchronization(group: str, join: str, merged: bool) -> dict[str, Json]:
    merge = {"source": "_branch.output.x", "target": f"state.all_{join}", "strategy": "append"}
    return {"sibling_group": group, **({"merge": merge} if merged else {})}


def joined(ways: list[Block], join: str, merged: bool) -> Oracle:
    """Branches see what was before the fan-out; behind the join is their list, or all their writes by index."""

    def writes(branch: Branch, values: Values, reads: Reads) -> Writes:
        each = [way.writes((*branch, index), values, reads) for index, way in enumerate(ways)]
        if merged:
            return [(f"all_{join}", [written({}, own).get("x") for own in each])]
        return [write for own in each for write in own]

    return writes
