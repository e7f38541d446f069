"""Callbacks over HTTP beside answers given in the engine's own process, on a SQLite file, durable before the answer.

Both answer visits of the same kind, sixteen at a time, in turns; the floor is the rate of answers in process. The
client of the service is a process of its own: machines with two cores share them, which the ratio of rates includes
and that of processor time does not.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

from bench.report import Report, Round
from bench.served import Service, bare_callbacks, served
from treadle.actions.outside import OutsideSettings
from treadle.language import load_value
from treadle.model.ids import TokenId
from treadle.runtime.deliver.callbacks import Callback, callback_token
from treadle.runtime.deliver.courier import WebhookCourier
from treadle.runtime.engine import Engine, EngineSettings

NAME = "callbacks"
AT_ONCE = 16
BRANCHES = 200
RUNS = 10
LAPS = 5
FLOW = {
    "workflow": "asks",
    "nodes": {"a": {}, "x": {"action": {"kind": "webhook", "url": "https://worker.example/"}}, "b": {}},
    "transitions": [
        {"id": "t", "from": "a", "to": "x", "spawn_count": BRANCHES},
        {"from": "x", "to": "b", "synchronization": {"sibling_group": "t"}},
    ],
}


def run(report: Report) -> None:
    asyncio.run(_all(report))


async def _all(report: Report) -> None:
    rates, times, floors = [], [], []
    async with _engine() as engine, served(engine) as service, bare_callbacks(engine) as least:
        key = await engine.secret_root()

        async def tokens() -> list[str]:
            return [callback_token(key, one.run, one.token, one.attempt) for one in await _waiting(engine)]

        for _ in range(LAPS):
            here = await _in_process(engine, await _waiting(engine))
            there = await _over_http(service, await tokens())
            floor = await _over_http(least, await tokens())
            rates.append(Round(there[0], here[0]))
            times.append(Round(there[1], here[1]))
            floors.append(Round(there[1], floor[1]))
    report.rounds("POST /callbacks, 16 clients, against answers in process", rates, "answers/s", best=max)
    report.rounds("processor time of the same", times, "µs", best=min)
    report.rounds("processor time of the same, against a bare application", floors, "µs", best=min)


@asynccontextmanager
async def _engine() -> AsyncIterator[Engine]:
    outside = OutsideSettings(public_url="http://127.0.0.1:1", signing_secret="NONE")
    settings = EngineSettings(outside=outside, spare_collector=True)  # as `treadle serve` has it
    with tempfile.TemporaryDirectory() as folder:
        async with Engine(Path(folder) / "bench.db", settings=settings) as engine:
            courier = engine._core.outgoing._courier
            assert isinstance(courier, WebhookCourier)
            courier.carry = _accepted  # type: ignore[method-assign,assignment]
            courier.turn = lambda _effect, _context: nullcontext()  # type: ignore[method-assign,assignment]
            await engine.deploy(load_value(FLOW))
            yield engine


async def _accepted(*_words: Any) -> None:
    """A worker that has taken every job."""


async def _waiting(engine: Engine) -> list[Callback]:
    """Visits that wait for their workers."""
    found: list[Callback] = []
    for _ in range(RUNS):
        started = await engine.start("asks", {})
        state = await started.state()
        found += [Callback(started.id, TokenId(one), 1) for one, token in state.tokens.items() if token.node == "x"]
    await engine._core.wait_quiet()
    return found


async def _in_process(engine: Engine, waiting: list[Callback]) -> tuple[float, float]:
    began, clock, todo = time.perf_counter(), time.process_time(), iter(waiting)

    async def answer() -> None:
        for one in todo:
            assert await engine.callbacks.answer(one, {"v": 1})

    await asyncio.gather(*(answer() for _ in range(AT_ONCE)))
    return len(waiting) / (time.perf_counter() - began), (time.process_time() - clock) / len(waiting) * 1e6


async def _over_http(service: Service, tokens: list[str]) -> tuple[float, float]:
    body = {"status": "completed", "output": {"v": 1}}
    requests = service.requests_to("POST", [f"/callbacks/{token}" for token in tokens], body)
    clock = time.process_time()
    loaded = await service.load(requests, AT_ONCE, '"applied":true')
    return len(tokens) / loaded.seconds, (time.process_time() - clock) / len(tokens) * 1e6
