"""A node that was killed and is started again on its machine goes on at once: it sees that its predecessor is dead."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from tests.postgres import new_database

LIMIT_S = 20.0
"""A second or two on an idle machine, most of it Python's start; the leases of the dead node last 60 s."""
ENGINE = """
import asyncio, sys
from treadle import Engine
from treadle.language import load_value
from treadle.runtime.engine import EngineSettings

async def work() -> dict[str, str]:
    print("working", flush=True)
    if sys.argv[2] == "first":
        await asyncio.Event().wait()
    return {}

def node(**more):
    return {"action": {"kind": "python", "function": "work"}, **more}

flow = load_value({"workflow": "w", "nodes": {"own": node(), "queued": node(queue="q")}}).require()

async def main() -> None:
    settings = EngineSettings(lease_ms=60_000, claim_ms=60_000, grace_ms=0)
    async with Engine(sys.argv[1], functions={"work": work}, settings=settings) as engine:
        run = await engine.start(flow, key="once")
        print((await run.wait()).status.value, flush=True)

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    with new_database() as made:
        yield made


def start(dsn: str, which: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", ENGINE, dsn, which], stdout=subprocess.PIPE, text=True)


def lines(child: subprocess.Popen[str], count: int) -> list[str]:
    assert child.stdout is not None
    return [child.stdout.readline().strip() for _ in range(count)]


def test_a_node_killed_and_started_again_waits_for_no_lease(dsn: str) -> None:
    first = start(dsn, "first")
    try:
        assert lines(first, 2) == ["working", "working"], "its own work, and what it has claimed of a queue"
    finally:
        first.kill()
    began = time.monotonic()
    second = start(dsn, "second")
    try:
        assert lines(second, 3) == ["working", "working", "completed"]
        assert time.monotonic() - began < LIMIT_S
    finally:
        second.kill()
        for child in (first, second):
            child.communicate()
