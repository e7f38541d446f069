"""The torture of flow control: four engines, a thousand starts, and somebody is struck every second.

Owns the order of things and the choice of victims. Half of the strikes hit the engine that owns the home of one of the
workflows, because only that one decides about its starts. Must not judge.
"""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import asyncpg
from msgspec import Struct

from tests.postgres_server import Server, binaries
from tests.torture import journal
from tests.torture.engine import CLIENT, WORK
from tests.torture.evidence import damage_of, runs_of
from tests.torture.flow.judge import FlowEvidence
from tests.torture.flow.roles import ENGINES, KEYED, LEASE_MS, SINGLE
from tests.torture.journal import Journal
from tests.torture.many.evidence import left_over
from tests.torture.many.roles import FAULTS
from tests.torture.processes import Processes, Unexpected
from treadle.errors import StoreUnavailable
from treadle.kernel.placing import home_of
from treadle.model.states import RUN_OPEN
from treadle.runtime.connecting import connect
from treadle.store.following import EventPosition, FollowedEvent
from treadle.store.postgres import PostgresStore
from treadle.store.rows import shard_of

START_S = 90.0
GONE_S = 60.0
PAUSE_S = (0.4, 1.6)
"""Between two strikes."""
FROZEN_LEASES = (1.2, 2.0)
"""How long a stopped engine stands still: others have its shards when it goes on."""
STRIKES = {"kill": 6, "stop": 3, "term": 2}
SHARDS = 64


class Done(Struct):
    """What a torture has done."""

    seconds: float = 0.0
    faults: dict[str, int] = {}
    findings: list[str] = []


class FlowTorture:
    """See the module's docstring."""

    def __init__(self, place: Path, seed: int, starts: int, say: Callable[[str], None]) -> None:
        self._place, self._starts, self._say = place, starts, say
        self._random = random.Random(seed)
        self._faults = Journal(place / FAULTS)
        self._parts = ExitStack()
        self._parts.callback(self._faults.close)
        self._server = Server(binaries())
        self._parts.callback(self._server.close)
        self._processes = Processes(place / "stderr.log")
        self._parts.callback(self._processes.close)
        self._lives = [0] * ENGINES
        self._pids = [0] * ENGINES
        self._done = Done(faults=dict.fromkeys(STRIKES, 0))

    def run(self, strikes: int, settle_s: float) -> tuple[Done, FlowEvidence]:
        """One torture, and what it has left behind."""
        with self._parts:
            for number in range(ENGINES):  # the first makes the tables and deploys
                self._start(number)
            self._say(f"{ENGINES} engines on {self._server.address()}")
            began = time.monotonic()
            for _ in range(strikes):
                self._processes.rest(self._random.uniform(*PAUSE_S))
                self._strike()
            self._say("no more faults: every run has to end")
            self._settle(settle_s)
            self._done.seconds = time.monotonic() - began
            return self._done, asyncio.run(self._gather())

    def _start(self, number: int) -> None:
        self._lives[number] += 1
        arguments = (self._place, self._server.address(), self._life(number), number, self._starts)
        self._pids[number] = self._processes.start("flow-engine", *arguments)
        self._processes.wait_ready(self._pids[number], START_S)

    def _life(self, number: int) -> str:
        return f"engine-{number}.{self._lives[number]}"

    # Faults

    def _strike(self) -> None:
        victim = self._victim()
        fault = self._random.choices(list(STRIKES), list(STRIKES.values()))[0]
        self._done.faults[fault] += 1
        if fault == "stop":
            seconds = self._random.uniform(*FROZEN_LEASES) * LEASE_MS / 1000
            self._faults.say(fault="stop", on=self._life(victim), ms=int(seconds * 1000))
            self._processes.signal(self._pids[victim], signal.SIGSTOP)
            self._processes.rest(seconds)
            self._processes.signal(self._pids[victim], signal.SIGCONT)
            return
        if fault == "kill":
            self._processes.kill(self._pids[victim])
            self._faults.say(fault="kill", on=self._life(victim), ms=0)
        else:
            self._close(victim)
        self._start(victim)

    def _victim(self) -> int:
        owner = asyncio.run(self._owner(self._random.choice((SINGLE, KEYED))))
        if owner is not None and self._random.random() < 0.5:
            return owner
        return self._random.randrange(ENGINES)

    async def _owner(self, workflow: str) -> int | None:
        """Who owns the home of a workflow."""
        connection = await asyncpg.connect(self._server.address())
        try:
            shard = shard_of(home_of(workflow), SHARDS)
            owner = await connection.fetchval("SELECT owner FROM leases WHERE shard = $1", shard)
        finally:
            await connection.close()
        return next((number for number in range(ENGINES) if owner and f"engine-{number}." in owner), None)

    def _close(self, number: int) -> None:
        self._processes.leaving.add(self._pids[number])
        self._processes.signal(self._pids[number], signal.SIGTERM)
        gone = self._processes.wait("gone", GONE_S, self._pids[number])
        if gone["code"] != 0:
            raise Unexpected(f"{self._life(number)} did not close properly: {gone}; see {self._place}/stderr.log")

    # The end

    def _settle(self, settle_s: float) -> None:
        until = time.monotonic() + settle_s
        try:
            for pid in self._pids:
                self._processes.wait("quiet", max(until - time.monotonic(), 1.0), pid)
        except Unexpected as problem:
            self._done.findings.append(f"some engine still waits for its answers: {problem}")
        left = asyncio.run(self._wait_ended(until))
        self._say(f"{left} runs are open")
        for number in range(ENGINES):
            self._close(number)
        _, met, trace = (self._place / "stderr.log").read_text(errors="replace").partition("Traceback")
        if met:
            self._done.findings.append(f"some process met something it did not expect:\n{met}{trace[:2_000]}")

    async def _wait_ended(self, until: float) -> int:
        async with connect(self._server.address()) as client:
            while True:
                try:
                    left = await client.runs(statuses=RUN_OPEN, limit=100)
                    if not left or time.monotonic() > until:
                        return len(left)
                    await asyncio.wait_for(client.run(left[0].run).wait(), 5)
                except (StoreUnavailable, TimeoutError):
                    continue

    async def _gather(self) -> FlowEvidence:
        async with await PostgresStore.open(self._server.address()) as store:
            return FlowEvidence(
                starts=self._starts,
                client=journal.read(self._place / CLIENT),
                work=journal.read(self._place / WORK),
                faults=journal.read(self._place / FAULTS),
                runs=await runs_of(store),
                log=await _log(store, self._server.address()),
                left=await left_over(store),
                damage=await damage_of(store),
            )


async def _log(store: PostgresStore, database: str) -> list[list[FollowedEvent]]:
    """All events in the order in which they were committed, those of one transaction together."""
    connection = await asyncpg.connect(database)
    try:
        written = dict(await connection.fetch("SELECT position, xmin::text FROM history"))
    finally:
        await connection.close()
    found: list[FollowedEvent] = []
    while page := await store.events_after(found[-1].position if found else None):
        found += page
    # Several engines commit at once, so the blocks of a transaction need not follow each other. Those of one workflow
    # are in one shard, and each transaction takes its lease before its positions: their order is that of the commits.
    transactions: dict[str, list[FollowedEvent]] = {}
    for followed in found:
        transactions.setdefault(written[EventPosition.read(followed.position).number], []).append(followed)
    return list(transactions.values())
