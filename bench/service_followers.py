"""Followers of streams: what five hundred of them cost the engine they follow, and how soon they hear.

The followers are a process of their own (`python -m bench.service_followers`), which only reads bytes: the cost that is
measured is that of the service. W2 is played with and without them, in turns.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.report import Report, Round
from bench.served import Service, served
from bench.settings import AS_SERVED
from treadle.language import load_value
from treadle.runtime.engine import Engine

FOLLOWERS, RUNS, STEPS, LAPS, HEARD = 500, 3_000, 5, 5, 100
"""W2 takes some seconds: what followers may do at once after a pause (`pace.BURST_S`) is no part of their share."""


async def _step(**_given: Any) -> dict[str, Any]:
    return {"ok": True, "n": 1}


def _chain(length: int) -> dict[str, Any]:
    call = {"task": {"steps": [{"ref": "do", "action": {"kind": "python", "function": "step"}}]}}
    names = [f"n{number}" for number in range(length)]
    edges = [{"from": a, "to": b} for a, b in itertools.pairwise(names)]
    return {"workflow": "chain", "nodes": dict.fromkeys(names, call), "transitions": edges}


async def measure(report: Report) -> None:
    rounds: list[Round] = []
    with tempfile.TemporaryDirectory(prefix="treadle-bench-") as home:
        async with Engine(Path(home) / "t.db", functions={"step": _step}, settings=AS_SERVED) as engine:
            await engine.deploy(load_value(_chain(STEPS)))
            async with served(engine) as service:
                await _w2(engine)
                for _ in range(LAPS):
                    before = await _w2(engine)
                    followers = await _followers(service, FOLLOWERS)
                    rounds.append(Round(await _w2(engine), before))
                    await _end(followers)
                delay = await _delay(engine, service)
    report.rounds(f"W2 with {FOLLOWERS} followers of all runs, against W2 alone", rounds, "steps/s", best=max)
    report.figure("from commit to follower, p50", statistics.median(delay), "ms", floor=5.0)


async def _w2(engine: Engine) -> float:
    began = time.perf_counter()
    runs = await asyncio.gather(*(engine.start("chain") for _ in range(RUNS)))
    await asyncio.gather(*(run.wait() for run in runs))
    return RUNS * STEPS / (time.perf_counter() - began)


async def _followers(service: Service, count: int) -> asyncio.subprocess.Process:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "bench.service_followers",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=1 << 24,
    )
    assert process.stdin is not None and process.stdout is not None
    orders = [service.host, service.port, service.request("GET", "/api/v1/stream"), count]
    process.stdin.write(json.dumps(orders).encode() + b"\n")
    assert await process.stdout.readline() == b"ready\n"
    return process


async def _end(process: asyncio.subprocess.Process) -> list[Any]:
    """Ends the followers; returns what they have heard: `[when, event]`."""
    assert process.stdin is not None
    process.stdin.write(b"end\n")
    said, _ = await process.communicate()
    heard: list[Any] = json.loads(said)
    return heard


async def _delay(engine: Engine, service: Service) -> list[float]:
    """Milliseconds from the answer to a start, which is behind its commit, until a follower has read it."""
    follower = await _followers(service, 1)
    begun: dict[str, float] = {}
    for _ in range(HEARD):
        run = await engine.start("chain")
        begun[run.id] = time.time()
        await run.wait()
        await asyncio.sleep(0.02)
    heard = await _end(follower)
    return [(when - begun[run]) * 1e3 for when, run in heard if run in begun]


_STARTED = re.compile(rb'"type":"run.started"|event: run.started')
_RUN = re.compile(rb'"run":"([^"]+)"')


class Follower(asyncio.Protocol):
    """Reads and counts; the first one notes when it hears that a run has started."""

    def __init__(self, request: bytes, heard: list[tuple[float, str]] | None) -> None:
        self._request, self._heard = request, heard
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        if not self.ready.done():
            assert b" 200 " in data, data
            self.ready.set_result(None)
        elif self._heard is not None and _STARTED.search(data):
            at = time.time()
            for part in data.split(b"event: run.started")[1:]:
                if found := _RUN.search(part):
                    self._heard.append((at, found[1].decode()))


async def _follow() -> None:
    loop = asyncio.get_running_loop()
    host, port, request, count = json.loads(await loop.run_in_executor(None, sys.stdin.readline))
    heard: list[tuple[float, str]] = []
    for number in range(count):
        notes = heard if count == 1 and number == 0 else None
        _, follower = await loop.create_connection(
            lambda notes=notes: Follower(request.encode(), notes),  # type: ignore[misc]
            host,
            port,
        )
        await follower.ready
    print("ready", flush=True)
    await loop.run_in_executor(None, sys.stdin.readline)
    print(json.dumps(heard))


if __name__ == "__main__":
    asyncio.run(_follow())
