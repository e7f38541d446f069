"""Workflows made of nested blocks, together with what must come of them.

Owns an oracle that knows nothing of tokens, groups or events. A block has one entry and one exit; whether somebody who
enters comes out again is computed by recursion over the blocks, from which tasks succeed in which branch. So a join
that fires wrongly, a branch that is lost, or a node reached twice shows as another end of the run, whatever the order
in which the tasks are answered.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from tests.driving import TASK

Json = Any
Branch = tuple[int, ...]
"""The indexes of a visit's frames, outermost first."""
Outcome = Callable[[str, Branch], bool]
"""Whether the task of this node succeeds in this branch."""
Oracle = Callable[[Branch, Outcome], bool]
"""Whether a block is left by its exit."""

DEPTH = 3
ITEMS_MAX = 4
INPUT: dict[str, Json] = {f"n{count}": list(range(count)) for count in range(ITEMS_MAX + 1)}
"""A list of every size, for the collections of fan-outs."""


class Block(NamedTuple):
    """A part of a workflow."""

    entry: str
    exit: str
    leaves: Oracle


class Joint(NamedTuple):
    """A synchronization, and when it lets the run go on."""

    sync: dict[str, Json]
    fires: Callable[[list[bool]], bool]


class Blocks:
    """Draws blocks, and keeps the nodes and transitions they consist of."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.nodes: dict[str, dict[str, Json]] = {}
        self.transitions: list[dict[str, Json]] = []
        self._count = 0

    def document(self, **more: Json) -> tuple[dict[str, Json], Oracle]:
        """A whole workflow, from START to END."""
        whole = self.block(DEPTH)
        self.nodes["START"], self.nodes["END"] = {}, {}
        self.hop("START", whole.entry)
        self.hop(whole.exit, "END")
        return {"start": "START", "nodes": self.nodes, "transitions": self.transitions, **more}, whole.leaves

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
        if depth <= 0:
            return self.task() if self.random.random() < 0.8 else self.handled()
        nested = (self.sequence, self.replicated, self.replicated, self.fork, self.fork, self.diamond)
        kinds = (*nested, self.choice, self.loop, self.threads)
        number = self.random.randrange(len(kinds) + 2)
        if number >= len(kinds):
            return self.task() if number == len(kinds) else self.handled()
        return kinds[number](depth - 1)

    def task(self) -> Block:
        extras: dict[str, Json] = {}
        if self.random.random() < 0.15:
            extras["mutex"] = self.random.choice(["m1", "m2"])
        if self.random.random() < 0.15:
            extras["retry"] = {"max_attempts": 2, "initial_delay_ms": self.random.choice([0, 5])}
        ref = self.node("task", **TASK, **extras)
        return Block(ref, ref, lambda branch, outcome: outcome(ref, branch))

    def handled(self) -> Block:
        """A failure transition: whatever the task does, the block is left."""
        risky, handler, after = self.task().entry, self.node("handler"), self.node("after")
        self.hop(risky, after)
        self.hop(risky, handler, on="failure")
        self.hop(handler, after)
        return Block(risky, after, lambda _branch, _outcome: True)

    def sequence(self, depth: int) -> Block:
        first, second = self.block(depth), self.block(depth)
        self.hop(first.exit, second.entry)

        def leaves(branch: Branch, outcome: Outcome) -> bool:
            return first.leaves(branch, outcome) and second.leaves(branch, outcome)

        return Block(first.entry, second.exit, leaves)

    def choice(self, depth: int) -> Block:
        fork, after = self.node("choice"), self.node("after")
        ways = [self.block(depth), self.block(depth)]
        taken = self.random.randrange(2)
        self.hop(fork, ways[0].entry, condition="true" if taken == 0 else "false")
        self.hop(fork, ways[1].entry, priority=2)
        for way in ways:
            self.hop(way.exit, after)
        return Block(fork, after, ways[taken].leaves)

    def loop(self, depth: int) -> Block:
        """Tasks do the same in every round, so rounds change nothing."""
        head, after, body = self.node("head"), self.node("after"), self.block(depth)
        self.hop(head, body.entry)
        self.hop(body.exit, head, loop={"max_iterations": self.random.choice([1, 2])})
        self.hop(body.exit, after, priority=2)
        return Block(head, after, body.leaves)

    def replicated(self, depth: int) -> Block:
        """One block, once per item."""
        count = self.random.choice([0, 1, 2, 2, 3, 3, 4])
        split, join, body, name = self.node("split"), self.node("join"), self.block(depth), self.name("t")
        joint = self.joint(count)
        fields = self.replication(count)
        patient = joint.sync["strategy"] == "all" and joint.sync["on_branch_failure"] != "fail"
        if patient and self.random.random() < 0.3:  # the first success is enough for these, so it may end the race
            fields["on_first_completion"] = "cancel_remaining"
        self.hop(split, body.entry, id=name, **fields)
        self.hop(body.exit, join, synchronization={**joint.sync, "sibling_group": name})

        def leaves(branch: Branch, outcome: Outcome) -> bool:
            return joint.fires([body.leaves((*branch, index), outcome) for index in range(count)])

        return Block(split, join, leaves)

    def replication(self, count: int) -> dict[str, Json]:
        lazy = self.random.random() < 0.35
        if count > 1 and not lazy and self.random.random() < 0.4:
            return {"spawn_count": count}
        foreach: dict[str, Json] = {"collection": f"input.n{count}"}
        if lazy:
            foreach["max_in_flight"] = self.random.randint(1, 2)
        return {"foreach": foreach}

    def fork(self, depth: int) -> Block:
        """Several blocks side by side, found again by the node's ref or by a declared name."""
        split, join = self.node("fork"), self.node("join")
        ways = [self.block(depth) for _ in range(self.random.choice([1, 2, 2, 3]))]
        joint = self.joint(len(ways))
        declared = self.random.random() < 0.4
        name = self.name("g") if declared else split
        for way in ways:
            self.hop(split, way.entry, **({"sibling_group": name} if declared else {}))
            self.hop(way.exit, join, synchronization={**joint.sync, "sibling_group": name})

        def leaves(branch: Branch, outcome: Outcome) -> bool:
            return joint.fires([way.leaves((*branch, index), outcome) for index, way in enumerate(ways)])

        return Block(split, join, leaves)

    def diamond(self, depth: int) -> Block:
        """The same with a node's own join, which names no group."""
        split = self.node("diamond")
        ways = [self.block(depth) for _ in range(self.random.choice([2, 2, 3]))]
        join = self.node("meet", join=self.random.choice(["all_inbound", "all_reachable"]))
        for way in ways:
            self.hop(split, way.entry)
            self.hop(way.exit, join)
        return Block(split, join, lambda branch, outcome: all(way.leaves(branch, outcome) for way in ways))

    def threads(self, _depth: int) -> Block:
        """A replicated group that only a node's own join brings together."""
        count = self.random.choice([2, 3])
        split, body = self.node("threads"), self.block(0)
        kind: Json = {"tokens": count} if self.random.random() < 0.5 else "all_reachable"
        join = self.node("meet", join=kind)
        foreach: dict[str, Json] = {"collection": f"input.n{count}"}
        if self.random.random() < 0.4:
            foreach["max_in_flight"] = 1
        self.hop(split, body.entry, id=self.name("t"), foreach=foreach)
        self.hop(body.exit, join)

        def leaves(branch: Branch, outcome: Outcome) -> bool:
            return all(body.leaves((*branch, index), outcome) for index in range(count))

        return Block(split, join, leaves)

    def joint(self, count: int) -> Joint:
        """A strategy, and 2.5 said in one line each."""
        rest = self.random.choice(["abandon", "cancel", "abandon", "cancel", "block"])
        kind = self.random.choice(["all", "all", "any", "m_of_n", "percent"])
        if kind == "all":
            policy = self.random.choice(["include_errors", "include_errors", "exclude", "fail"])
            enough = {"include_errors": lambda _: True, "exclude": any, "fail": all}[policy]
            sync = {"strategy": "all", "on_branch_failure": policy, "on_early_complete": rest}
            return Joint(sync, lambda ways: not ways or enough(ways))
        sync = {"strategy": kind, "on_branch_failure": "include_errors", "on_early_complete": rest}
        if kind == "any":
            return Joint(sync, any)
        if kind == "m_of_n":
            need = self.random.randint(1, max(count, 1))
            return Joint({**sync, "strategy": {kind: need}}, lambda ways: sum(ways) >= need)
        share = self.random.choice([30, 50, 67, 100])
        return Joint(
            {**sync, "strategy": {kind: share}}, lambda ways: bool(ways) and sum(ways) * 100 >= share * len(ways)
        )
