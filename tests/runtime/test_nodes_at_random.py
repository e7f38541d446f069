"""Nodes that come, go, stall, die and cannot reach their store, as a seed says: everything is done, and once.

Seeds are numbers: one that fails is played again by its number. What is judged at the end: every acknowledged start is
a run that has completed; every acknowledged signal is in its run's history once; every completion came from the
execution that was handed out last; nothing is left in outbox, inbox or timers; `fsck` has no findings.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random
from typing import Any

import pytest

from tests.runtime.cores import calls, chain
from tests.runtime.executing import on_loop, turns
from tests.runtime.nodes import TTL_MS, Here, World
from treadle.errors import EngineStopped
from treadle.language import load_value
from treadle.model import events as e
from treadle.model.commands import SendSignal
from treadle.model.definition import Workflow
from treadle.model.ids import RunId
from treadle.model.states import RunStatus
from treadle.runtime.surroundings import patience

SEEDS = range(40)
RUNS = 12
SHARDS = 8


def journey() -> Workflow:
    """Work, a fan-out through a slot, a join, a child, a signal, a timer, work."""
    document: dict[str, Any] = {
        "workflow": "journey",
        "nodes": {
            "begin": calls("f"),
            "slot": calls("f", concurrency={"limit": 2}),
            "join": {},
            "call": {"task": {"steps": [{"ref": "do", "action": {"kind": "workflow_call", "workflow": "child"}}]}},
            "wait": {"action": {"kind": "signal", "name": "go"}},
            "nap": {"action": {"kind": "wait", "ms": 700}},
            "end": calls("f", retry={"max_attempts": 2, "backoff": "none", "initial_delay_ms": 300}),
        },
        "transitions": [
            {"id": "fan", "from": "begin", "to": "slot", "spawn_count": 3},
            {"from": "slot", "to": "join", "synchronization": {"sibling_group": "fan"}},
            {"from": "join", "to": "call"},
            {"from": "call", "to": "wait"},
            {"from": "wait", "to": "nap"},
            {"from": "nap", "to": "end"},
        ],
    }
    return load_value(document).require()


class Labour:
    """Work of all lengths. Says in its output which execution it was."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.began: list[int] = []
        self.keys: list[str] = []

    async def __call__(self, here: Here, facts: Any) -> dict[str, int]:
        number = len(self.began)
        self.began.append(here.world.clock.now())
        self.keys.append(facts.key)
        await here.world.later(self._random.choice([0, 50, 400, 3_000, 15_000]))
        return {"execution": number}


class Trouble:
    """What happens to the nodes."""

    def __init__(self, world: World, random: Random) -> None:
        self._world = world
        self._random = random
        self._names = 0
        self.over = False
        self.happened: Counter[str] = Counter()
        self._closing: list[asyncio.Future[None]] = []

    async def come(self) -> None:
        self._names += 1
        node = await self._world.node(f"n{self._names}")
        node.door.trouble = self._at_the_door

    def _at_the_door(self, verb: str) -> str:
        if self.over or self._random.random() > (0.04 if verb == "commit" else 0.01):
            return ""
        return self._random.choice(["before", "after"])

    async def once(self) -> None:
        world, random = self._world, self._random
        world.wakes_are_lost = random.random() < 0.3
        up = [node for node in world.nodes.values() if node.is_open]
        kind = random.choice(["come", "kill", "close", "stall", "wake", "nothing"])
        if kind == "come" and len(world.nodes) < 5:
            await self.come()
        elif kind == "kill" and len(up) > 1:
            random.choice(up).kill()
        elif kind == "close" and len(up) > 1:
            node = random.choice(up)
            node.is_open = False
            self._closing.append(asyncio.ensure_future(node.close(random.choice([0, 500, 5_000]))))
        elif kind == "stall":
            random.choice(up).stall()
        elif kind == "wake":
            random.choice(up).wake()
        else:
            return
        self.happened[kind] += 1

    async def end(self) -> None:
        self.over = True
        self._world.wakes_are_lost = False
        for node in list(self._world.nodes.values()):
            node.wake()
        if not any(node.is_open for node in self._world.nodes.values()):
            await self.come()


class Client:
    """Starts runs and sends signals at any node, and remembers what it was told."""

    def __init__(self, world: World, random: Random) -> None:
        self._world = world
        self._random = random
        self.signals: dict[str, set[str]] = {}
        """By run, those that were acknowledged."""

    async def live(self, number: int) -> None:
        await self._world.later(self._random.randrange(15_000))
        run = f"r{number}"
        answer = await self._insist(lambda node: self._world.start(node, "journey", run))
        assert answer.rejection is None, answer
        self.signals[run] = set()
        for times in range(3):
            await self._world.later(self._random.randrange(10_000))
            await self._signal(run, f"note{times}")
        answer = await self._insist(lambda node: self._world.signal(node, run, "go", "go"))
        assert answer.rejection is None, answer

    async def _signal(self, run: str, name: str) -> None:
        """Without an id: sent twice it would count twice."""
        node = self._some_node()
        if node is None:
            return
        try:
            answer = await self._world.ask(node, run, SendSignal(name))
        except EngineStopped:
            return  # nobody knows
        assert answer.rejection is None, answer
        self.signals[run].add(name)

    async def _insist(self, ask: Any) -> Any:
        while True:
            node = self._some_node()
            try:
                if node is not None:
                    return await ask(node)
            except EngineStopped:
                pass
            await self._world.later(500)

    def _some_node(self) -> Here | None:
        up = [node for node in self._world.nodes.values() if node.is_open]
        return self._random.choice(up) if up else None


async def judge(world: World, labour: Labour, client: Client) -> None:
    statuses = await world.statuses()
    assert set(statuses.values()) == {RunStatus.COMPLETED}, statuses
    assert len(statuses) == 2 * RUNS, "every run and its child"
    for run in statuses:
        history = await world.store.history(RunId(run))
        received = Counter(event.name for event in history if isinstance(event, e.SignalReceived))
        assert all(times == 1 for times in received.values()), (run, received)
        assert client.signals.get(run, set()) <= set(received), (run, received)
        handed_out: dict[int, int] = {}
        for event in history:
            if isinstance(event, e.TokenDispatched):
                handed_out[event.token] = event.at
            elif isinstance(event, e.TokenCompleted) and "execution" in (event.output or {}):
                began = labour.began[event.output["execution"]]
                assert began >= handed_out[event.token], f"{run}: a stale result of visit {event.token} was applied"
    everything = range(SHARDS)
    assert await world.store.outbox(everything) == []
    assert await world.store.inbox(everything) == []
    assert await world.store.timers(everything) == []
    assert await world.fsck() == []


@pytest.mark.parametrize("seed", SEEDS)
@on_loop
async def test_everything_is_done_once_whatever_becomes_of_the_nodes(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "RETRY_FIRST_S", 0.0)
    random = Random(seed)
    labour = Labour(random)
    async with World({"f": labour}, SHARDS) as world:
        await world.deploy(journey(), chain("f", name="child"))
        trouble, client = Trouble(world, random), Client(world, random)
        for _ in range(3):
            await trouble.come()
        lives = [asyncio.ensure_future(client.live(number)) for number in range(RUNS)]
        for _ in range(25):
            await trouble.once()
            await world.pass_time(random.choice([250, 1_000, 4_000]), 250)
        await trouble.end()
        await world.wait_ended(2 * RUNS, 400_000)
        await world.pass_time(2 * TTL_MS)
        await turns(50)
        await asyncio.gather(*lives)
        await judge(world, labour, client)
