"""What an `llm` action imports: only the provider in use, and before its clock starts."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable

import pytest

from tests.runtime.executing import Bench, on_loop, turns
from tests.unit.runtime.attempts import step
from treadle.actions.protocol import Call, Done, Failed, Warming
from treadle.actions.registry import Registry

CODE = """
import sys
from treadle.actions.llm import provider
assert not {"openai", "anthropic"} & sys.modules.keys(), "no provider before one is used"
provider.warm(sys.argv[1])
assert sys.argv[1] in sys.modules
assert sys.argv[2] not in sys.modules, "only the one in use"
"""


@pytest.mark.parametrize(("used", "other"), [("openai", "anthropic"), ("anthropic", "openai")])
def test_only_the_provider_in_use_is_imported(used: str, other: str) -> None:
    done = subprocess.run([sys.executable, "-c", CODE, used, other], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@on_loop
async def test_the_clock_of_an_action_starts_when_it_is_ready() -> None:
    ready, asked = asyncio.Event(), asyncio.Event()

    class Slow:
        name = "slow"

        def run(self, _call: Call) -> Warming:
            async def work(begin: Callable[[], None]) -> Done | Failed:
                asked.set()
                await ready.wait()
                begin()
                await asyncio.get_running_loop().create_future()
                return Done({})

            made: Callable[[Callable[[], None]], Awaitable[Done | Failed]] = work
            return Warming(made)

    registry = Registry()
    registry.register(Slow())
    async with Bench(registry) as bench:
        bench.begin(step("a", "slow", {}, execution={"timeout_ms": 1_000}))
        await asked.wait()
        await bench.clock.advance(60_000)
        ready.set()
        await turns()
        await bench.clock.advance(999)
        assert bench.clock.pending == [1]
        await bench.clock.advance(1)
        assert (await bench.failure()).kind == "TASK_TIMEOUT"


@on_loop
async def test_a_kind_is_warmed_if_it_can_be_and_its_trouble_is_the_attempts() -> None:
    warmed = list[str]()

    class Warm:
        name = "warm"

        def run(self, _call: Call) -> Done:
            return Done({})

        async def warm(self) -> None:
            warmed.append(self.name)
            raise ImportError

    registry = Registry()
    registry.register(Warm())
    await registry.warm(["set", "warm", "nothing_like_it"])
    assert warmed == ["warm"]
