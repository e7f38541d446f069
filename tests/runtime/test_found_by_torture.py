"""What the torture of many machines found in the runtime, made small."""

from __future__ import annotations

from typing import Any

from tests.runtime.cores import chain
from tests.runtime.executing import on_loop
from tests.runtime.nodes import TTL_MS, Here, World
from treadle.language import load_value
from treadle.model.commands import StartRun
from treadle.model.ids import RunId
from treadle.model.states import RunStatus
from treadle.store.port import InboxRequest


async def nothing(_here: Here, _facts: Any) -> dict[str, Any]:
    return {}


@on_loop
async def test_a_child_is_found_though_nobody_said_that_it_was_deployed() -> None:
    """Found by the scenarios on real stores: who reads the inbox learns of the workflow that is started, and of no
    other. The parent failed for good."""
    call = {"task": {"steps": [{"ref": "do", "action": {"kind": "workflow_call", "workflow": "child"}}]}}
    parent = load_value({"workflow": "parent", "nodes": {"call": call}}).require()
    async with World({"f": nothing}) as world:
        node = await world.node("a")
        await world.deploy(chain("f", name="child"), parent)
        run = RunId("one")
        await world.store.submit(
            InboxRequest("r", run, StartRun(run=run, input={}, version=0), world.clock.now(), "parent")
        )
        node.look()
        statuses = await world.wait_ended(2)
        assert set(statuses.values()) == {RunStatus.COMPLETED}


@on_loop
async def test_a_start_with_a_key_is_answered_though_its_shard_was_lost_while_the_key_was_looked_up() -> None:
    """Whoever had lost it went on waiting for itself, and every later start with the key behind it (seed 100)."""
    async with World({"f": nothing}) as world:
        node = await world.node("a")
        await world.deploy(chain("f"))
        run = RunId("one")
        command = StartRun(run=run, input={}, version=0, idempotency_key="k")
        request = InboxRequest("r", run, command, world.clock.now(), "chain")

        def lose(verb: str) -> str:
            if verb == "find_runs":
                node.core.lose(range(8), "a test says so")
                node.door.trouble = lambda _verb: ""
            return ""

        node.door.trouble = lose
        await world.store.submit(request)
        node.look()
        await world.pass_time(2 * TTL_MS)
        assert len(node.owned) == 8, "it has them back"
        answer = await world.store.submit(request)
        assert answer is not None and answer.rejection is None
