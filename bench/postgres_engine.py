"""Engines on PostgreSQL in processes of their own: each does its workload and prints what that cost, a line of JSON.

Only the work is counted, not opening, deploying, closing. Engines of a herd share a database: they say when they are
there, begin together when every shard has its owner, and leave when the last is done. What their server spends is
counted from the outside then.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Sequence

import asyncpg
import msgspec
from msgspec import Struct

from bench.bench_engine import FUNCTIONS, chain, fan_out, runs_of
from bench.floors import Step, in_shares
from bench.floors_postgres import FLOORS, Bare, steps_of
from bench.postgres_server import Server, Spent, Watch
from bench.report import peak_mib
from bench.settings import AS_SERVED
from treadle.runtime.engine import Engine
from treadle.store.postgres.store import SHARDS


class Asked(Struct, kw_only=True):
    """A workload: so many runs of so many steps each, one after the other or together; or a fan-out."""

    server: Server
    dsn: str
    runs: int = 1
    steps: int = 0
    branches: int = 0
    in_turn: bool = False
    laps: int = 1
    floors: tuple[str, ...] = ()
    """Played after each lap with the rows of the first, in a database of their own."""
    floor_dsn: str = ""
    wait: bool = False
    profile: str = ""
    """A file for the profile, if somebody wants one."""


class Bared(Struct):
    """What a floor cost: its seconds, and the CPU seconds of client and server."""

    seconds: float
    cpu: float


class Lap(Struct, kw_only=True):
    """What the workload cost once."""

    seconds: float
    engine_cpu: float
    server: Spent
    peak_mib: float
    floors: dict[str, Bared] = {}
    """The same rows without an engine."""
    rows: int = 0
    """Of history, in a floor."""
    times: list[float] = []
    """Of each run, if they came one after the other."""


def measured(asked: Asked) -> list[Lap]:
    """What it costs in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.postgres_engine"],
        input=msgspec.json.encode(asked) + b"\n",
        check=True,
        stdout=subprocess.PIPE,
    )
    return msgspec.json.decode(done.stdout.splitlines()[-1], type=list[Lap])


class Herd:
    """Several engines on one database, to be entered; `work` is for once."""

    def __init__(self, size: int, asked: Asked) -> None:
        self._asked = msgspec.structs.replace(asked, wait=True)
        self._size = size
        self._engines: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Herd:
        return self

    def __exit__(self, *_exception: object) -> None:
        for engine in self._engines:
            engine.kill()
            engine.communicate()

    def work(self, runs: int) -> Lap:
        """So many runs by each, all at the same time."""
        asked = msgspec.structs.replace(self._asked, runs=runs)
        for _ in range(self._size):
            engine = subprocess.Popen(
                [sys.executable, "-m", "bench.postgres_engine"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
            self._engines.append(engine)
            self._say(engine, msgspec.json.encode(asked))
            self._hear(engine)
        asyncio.run(self._spread())
        before = asyncio.run(self._spent())
        began = time.perf_counter()
        for engine in self._engines:
            self._say(engine, b"begin")
        for engine in self._engines:
            self._hear(engine)
        seconds = time.perf_counter() - began
        server = asyncio.run(self._spent()) - before
        for engine in self._engines:
            self._say(engine, b"leave")
        costs = [msgspec.json.decode(self._hear(engine), type=list[Lap])[0] for engine in self._engines]
        cpu, peak = sum(cost.engine_cpu for cost in costs), max(cost.peak_mib for cost in costs)
        return Lap(seconds=seconds, engine_cpu=cpu, server=server, peak_mib=peak)

    async def _spent(self) -> Spent:
        watch = await Watch.open(self._asked.server)
        try:
            return await watch.spent()
        finally:
            await watch.close()

    async def _spread(self) -> None:
        """Waits until each engine has its share of the shards."""
        connection = await asyncpg.connect(self._asked.dsn)
        try:
            async with asyncio.timeout(60):
                while not is_even(await connection.fetch(SHARES), self._size):
                    await asyncio.sleep(0.1)
        finally:
            await connection.close()

    def _say(self, engine: subprocess.Popen[bytes], word: bytes) -> None:
        assert engine.stdin is not None
        engine.stdin.write(word + b"\n")
        engine.stdin.flush()

    def _hear(self, engine: subprocess.Popen[bytes]) -> bytes:
        assert engine.stdout is not None
        heard = engine.stdout.readline()
        assert heard, "an engine has ended; what it said is above"
        return heard


SHARES = "SELECT count(*) FROM leases WHERE until > extract(epoch FROM clock_timestamp()) * 1000 GROUP BY owner"


def is_even(shares: Sequence[Sequence[int]], size: int) -> bool:
    """Whether so many have as much as each other, within one."""
    counts = [row[0] for row in shares]
    return len(counts) == size and sum(counts) == SHARDS and max(counts) - min(counts) <= 1


async def perform(asked: Asked) -> list[Lap]:
    flow = fan_out(asked.branches) if asked.branches else chain(asked.steps)
    watch = await Watch.open(asked.server)
    floors = Floors(asked)
    laps = []
    async with Engine(asked.dsn, functions=FUNCTIONS, settings=AS_SERVED) as engine:
        await engine.deploy(flow)
        if asked.wait:
            await told("ready")
        for _ in range(asked.laps):
            laps.append(await lap(asked, watch, engine, flow.workflow))
            laps[-1].floors = await floors.play()
            laps[-1].rows = len(floors.steps)
        if asked.wait:
            await told("done")  # nobody leaves while others work
    await watch.close()
    return laps


async def lap(asked: Asked, watch: Watch, engine: Engine, workflow: str) -> Lap:
    before = await watch.spent()
    cpu, began = time.process_time(), time.perf_counter()
    times = await one_after_the_other(engine, workflow, asked.runs) if asked.in_turn else []
    if not asked.in_turn:
        await runs_of(engine, workflow, asked.runs)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    server = await watch.spent() - before
    peak = peak_mib()
    return Lap(seconds=seconds, engine_cpu=cpu, server=server, peak_mib=peak, times=times)


class Floors:
    """The rows of the first lap, written again and again without an engine."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self.steps: list[Step] = []

    async def play(self) -> dict[str, Bared]:
        asked = self._asked
        if asked.floors and not self.steps:
            steps = await steps_of(asked.dsn)
            self.steps = in_shares(steps, asked.branches) if asked.branches else steps
        found = {}
        for name in asked.floors:
            bare = await Bare.open(asked.floor_dsn)
            await bare.clear()
            cpu = time.process_time() + asked.server.cpu()
            seconds = await FLOORS[name](bare, self.steps)
            found[name] = Bared(seconds, time.process_time() + asked.server.cpu() - cpu)
            await bare.close()
        return found


async def one_after_the_other(engine: Engine, workflow: str, runs: int) -> list[float]:
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        await (await engine.start(workflow)).wait()
        times.append(time.perf_counter() - began)
    return times


async def told(word: str) -> None:
    """Says it, and waits to be told something."""
    print(word, flush=True)
    await asyncio.to_thread(sys.stdin.readline)


def main() -> None:
    asked = msgspec.json.decode(sys.stdin.readline(), type=Asked)
    if asked.profile:
        import cProfile

        profile = cProfile.Profile()
        laps = profile.runcall(asyncio.run, perform(asked))
        profile.dump_stats(asked.profile)
    else:
        laps = asyncio.run(perform(asked))
    print(msgspec.json.encode(laps).decode(), flush=True)


if __name__ == "__main__":
    main()
