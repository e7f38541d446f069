"""Programs that tests of moving kill: an engine in the middle of everything, and a move that dies at a given step.

python -m tests.runtime.moving engine FILE          fills a store and is killed by its own workflow
python -m tests.runtime.moving move STEPS SOURCE TARGET    killed before its n-th write (even n) or behind it (odd)
"""

from __future__ import annotations

import asyncio
import base64
import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from msgspec.structs import replace

from treadle import Engine, EngineSettings
from treadle.actions.net import NetPolicy
from treadle.actions.outside import OutsideSettings, Subscription
from treadle.language import load_text
from treadle.model.references import EntityRef
from treadle.runtime.operate.moving import move
from treadle.runtime.schedule.definition import Schedule
from treadle.store.postgres import transfer as postgres
from treadle.store.service import Changes, Entry, Note
from treadle.store.sqlite import transfer as sqlite

FLOWS = {
    "asking": """
workflow: asking
nodes: {ask: {action: {kind: human, title: Yes?}}}
output: {answer: $.nodes.ask.output}
""",
    "napping": """
workflow: napping
nodes: {nap: {action: {kind: wait, ms: 2000}}}
""",
    "sleeping": """
workflow: sleeping
nodes: {nap: {action: {kind: wait, ms: 60000000}}}
""",
    "queued": """
workflow: queued
nodes: {n: {queue: gpu, action: {kind: python, function: work}}}
""",
    "dying": """
workflow: dying
nodes: {a: {action: {kind: set, values: {x: 1}}}, b: {queue: cpu, action: {kind: python, function: die}}}
transitions: [{from: a, to: b}]
""",
    "quick": """
workflow: quick
nodes: {n: {action: {kind: artifact_write, name: note, content: hello}}}
""",
    "batched": """
workflow: batched
batch: {size: 2, within_ms: 60000}
nodes: {n: {action: {kind: set, values: {x: 1}}}}
""",
}
LARGE = "x" * 200_000
BUSY_ELSEWHERE = EngineSettings(queues={"cpu": 1})
"""Nobody here works for the queue of `queued`."""


def die() -> NoReturn:
    """What a workflow calls in the middle of things."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("not reached")


def deaf() -> tuple[socket.socket, OutsideSettings]:
    """A subscriber that never answers: messages about gates stay in the outbox."""
    listening = socket.create_server(("127.0.0.1", 0))
    subscription = Subscription(url=f"http://127.0.0.1:{listening.getsockname()[1]}/", types=("gate.opened",))
    net = NetPolicy(allow=("127.0.0.0/8",))
    return listening, OutsideSettings(net=net, subscriptions=(subscription,), signing_secret="signing")


async def fill(file: str) -> None:
    """An engine with something of everything, until it dies."""
    listening, outside = deaf()
    settings = replace(BUSY_ELSEWHERE, outside=outside)
    with listening:
        async with Engine(file, functions={"die": die, "work": lambda: 1}, settings=settings) as engine:
            await keep_what_servers_keep(engine)
            for name, text in FLOWS.items():
                await engine.deploy(load_text(text, name).require())
            await (await engine.start("quick", {}, key="first", tags=("one", "two"))).wait(30)
            await engine.start("batched", {"n": 1}, key="first")
            await (await engine.start("batched", {"n": 2}, key="second")).wait(30)
            await engine.start("asking", {"large": LARGE}, entity=EntityRef("o-1", "order"))
            await engine.start("asking", {})
            paused = await engine.start("sleeping", {})
            await paused.pause("look")
            for name in ("sleeping", "queued"):
                await engine.start(name, {})
            await engine.put_schedule(Schedule(name="yearly", workflow="quick", cron="0 0 1 1 *"))
            await engine.start("napping", {})
            await (await engine.start("dying", {})).wait(30)


async def keep_what_servers_keep(engine: Engine) -> None:
    """A secret with its entry in the audit, which is chained; a delivery in a log that is not; a note."""
    await engine.secrets.put("signing", f"whsec_{base64.b64encode(bytes(32)).decode()}")
    now = engine.now()
    delivery = Entry("delivery:hook", "orders", {"status": 202}, now)
    await engine.records.write(Changes(notes=[Note("asked once", {"status": 201}, now)], entries=[delivery]))


def mortal(steps: int) -> None:
    """The writes of both ends are counted, and one of them is the last thing this process does."""
    left = [steps]

    def counted(verb: Callable[..., Any]) -> Callable[..., Any]:
        async def write(*given: Any) -> Any:
            left[0] -= 1
            if left[0] == 0 and steps % 2 == 0:
                die()
            result = await verb(*given)
            if left[0] == 0:
                die()
            return result

        return write

    for end in (sqlite.SqliteTransfer, postgres.PostgresTransfer):
        for name in ("seal", "unseal", "begin", "put", "finish"):
            setattr(end, name, counted(getattr(end, name)))
    for module in (sqlite, postgres):
        module.ROWS_MAX = 20  # type: ignore[attr-defined]


if __name__ == "__main__":
    if sys.argv[1] == "engine":
        asyncio.run(fill(sys.argv[2]))
    else:
        mortal(int(sys.argv[2]))
        asyncio.run(move(sys.argv[3], sys.argv[4]))
