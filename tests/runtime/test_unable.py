"""Processes that lack a function: work of a queue is left to those that have it, and nobody's run pays for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import structlog

from tests.runtime.cores import calls
from tests.runtime.executing import on_loop, turns
from tests.runtime.hall import nothing, of_kind, queued
from treadle import RunFailed
from treadle.actions.protocol import Missing
from treadle.actions.registry import Registry
from treadle.language import load_value
from treadle.model import events as e
from treadle.model.definition import Workflow
from treadle.model.states import RunStatus
from treadle.runtime.client import Client
from treadle.runtime.command.presence import NodeRow
from treadle.runtime.engine import Engine, EngineSettings
from treadle.runtime.queue.cannot_execute import FORGOTTEN_S, CannotExecute
from treadle.runtime.queue.queue_settings import QueueView, queues_of
from treadle.runtime.run import Run
from treadle.store.memory_work import QueueMemoryStore
from treadle.store.work import Claimed


class Claims(QueueMemoryStore):
    """Counts them."""

    def __init__(self, shards: int = 1) -> None:
        super().__init__(shards)
        self.looks = 0

    async def claim(self, queue: str, *rest: Any, **more: Any) -> list[Claimed]:
        self.looks += queue == "q"
        return await super().claim(queue, *rest, **more)


def node(store: Claims, name: str, **functions: Any) -> Engine:
    return Engine(store, functions=functions, name=name, settings=EngineSettings(grace_ms=0))


async def until_refused(store: Claims) -> None:
    """It has looked at the work, and given it back."""
    while not store.looks or any(row.claimed for row in await store.queue_rows()):
        await turns()


@on_loop
async def test_queue_work_waits_for_a_node_that_has_the_function() -> None:
    store = Claims(shards=4)
    async with node(store, "without") as without:
        run = await started(without)
        await until_refused(store)
        looks = store.looks
        await turns(200)
        assert store.looks <= looks + 1, "it does not claim it again at once"
        async with node(store, "with", work=lambda: {"x": 1}):
            assert (await run.wait()).status is RunStatus.COMPLETED
        (begun,) = await of_kind(run, e.TokenStarted)
        assert begun.worker.startswith("with:")
        assert not await of_kind(run, e.TokenRetryScheduled), "nobody has counted it"


async def started(engine: Engine, workflow: Workflow | None = None) -> Run:
    """Deployed from elsewhere: an engine checks what it deploys itself."""
    deployed = await Client.deploy(engine, workflow or queued())
    return await engine.start(deployed.workflow)


@on_loop
async def test_the_work_behind_it_is_found() -> None:
    store = Claims()
    other = load_value({"workflow": "other", "nodes": {"n": calls("known", queue="q")}}).require()
    async with node(store, "half", known=nothing) as half:
        stuck = [await started(half) for _ in range(50)]
        for _ in range(3):
            run = await started(half, other)
            assert (await run.wait()).status is RunStatus.COMPLETED
        assert {await run.status() for run in stuck} == {RunStatus.RUNNING}


@on_loop
async def test_a_node_says_once_what_it_lacks_and_what_to_do() -> None:
    store = Claims()
    with structlog.testing.capture_logs() as logs:
        async with node(store, "without") as without:
            for _ in range(3):
                await started(without)
            await until_refused(store)
            await turns(100)
    (said,) = [line for line in logs if line["log_level"] == "warning"]
    assert said["event"].startswith("without lacks function 'work' of workflow 'w'")
    assert "--functions MODULE" in said["remedy"]
    assert "another queue" in said["remedy"]


@on_loop
async def test_what_a_node_lacks_is_told_while_work_waits_for_it() -> None:
    store, now = Claims(), [0.0]
    unable = CannotExecute(lambda _task: Missing("function 'work'", "", ""), "me", elapsed=lambda: now[0])
    assert unable.lacks == {}
    async with node(store, "without") as without:
        await started(without)
        await until_refused(store)
        (claimed,) = await store.claim("q", "me", 1, 1_000)
    task = queued().nodes["n"].task
    assert task is not None and unable.is_beyond(claimed, task)
    assert unable.lacks == {"q": ("function 'work'",)}
    now[0] += FORGOTTEN_S + 1
    assert unable.lacks == {}, "nobody waits for it any more"


@on_loop
async def test_of_two_with_one_name_one_may_have_what_the_other_lacks() -> None:
    def row(name: str, lacks: bool) -> NodeRow:
        return NodeRow(name, name, False, ("q",), (), 0, 0, 0, lacks={"q": ("function 'work'",)} if lacks else {})

    async def view(*nodes: NodeRow) -> QueueView:
        (one,) = await queues_of(QueueMemoryStore(1), nodes, 0)
        return one

    assert (await view(row("box", True), row("box", True))).lacks == {"box": ("function 'work'",)}
    mixed = await view(row("box", True), row("box", False))
    assert mixed.lacks == {} and not mixed.is_left_alone
    assert (await view(row("box", True), row("desk", True))).is_left_alone


@on_loop
async def test_work_of_the_engines_own_fails_so_that_trying_again_may_help_and_names_the_node() -> None:
    plain = load_value(
        {"workflow": "p", "nodes": {"n": calls("work", retry={"max_attempts": 2, "initial_delay_ms": 1})}}
    )
    async with node(Claims(), "bare") as bare:
        run = await started(bare, plain.require())
        with pytest.raises(RunFailed, match=r"Node bare executes this .* `--functions MODULE`"):
            await run.result()
        (again,) = await of_kind(run, e.TokenRetryScheduled)
        assert again.error.retryable


@on_loop
async def test_python_is_told_what_the_branches_have_died_of() -> None:
    fan = {
        "workflow": "fan",
        "nodes": {"begin": {}, "judge": calls("judge"), "end": {}},
        "transitions": [
            {"id": "panel", "from": "begin", "to": "judge", "spawn_count": 3},
            {"from": "judge", "to": "end", "synchronization": {"strategy": {"m_of_n": 2}, "sibling_group": "panel"}},
        ],
    }
    async with node(Claims(), "bare") as bare:
        run = await started(bare, load_value(fan).require())
        with pytest.raises(RunFailed, match=r"2 failed: 'judge' .* with NOT_FOUND: no function 'judge'") as failed:
            await run.result()
        assert [(cause.node, cause.kind) for cause in failed.value.causes] == [("judge", "NOT_FOUND")] * 2


def test_a_queue_rests_longer_and_longer_and_new_work_shortens_it() -> None:
    now = [0.0]
    told: list[str] = []
    unable = CannotExecute(lambda _task: None, "me", told.append, lambda: now[0])
    rests = []
    for _ in range(7):
        unable.looked("q", aside=1, begun=0)
        begun = now[0]
        while not unable.may_look("q"):
            now[0] += 1
        rests.append(now[0] - begun)
    assert rests == [1, 2, 4, 8, 16, 30, 30]
    assert told == ["q"], "two that cannot do it do not wake each other for ever"
    unable.looked("q", aside=1, begun=0)
    unable.woken("q")
    assert not unable.may_look("q")
    now[0] += 1
    assert unable.may_look("q")
    unable.looked("q", aside=1, begun=1)
    assert unable.may_look("q"), "who can do some of it goes on"


@pytest.mark.parametrize(
    ("action", "what"),
    [
        ({"kind": "python", "function": "nosuch"}, "function 'nosuch'"),
        ({"kind": "python", "function": "nosuch.module:f"}, "function 'nosuch.module:f'"),
        ({"kind": "llm", "profile": "x", "prompt": "y"}, "action kind 'llm'"),
        ({"kind": "set", "values": {}}, None),
    ],
)
def test_what_is_missing_is_known_before_it_is_begun(action: dict[str, Any], what: str | None) -> None:
    workflow = load_value({"workflow": "w", "nodes": {"n": {"action": action}}}).require()
    task = workflow.nodes["n"].task
    assert task is not None
    found = Registry().missing(task)
    assert (found.what if isinstance(found, Missing) else None) == what


@on_loop
async def test_a_module_that_breaks_when_it_is_imported_fails_the_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_by_hand.py").write_text("1 / 0\n", "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    document = {"workflow": "b", "nodes": {"n": calls("broken_by_hand:f", queue="q")}}
    settings = EngineSettings(grace_ms=0, functions_allow=("broken_by_hand",))
    async with Engine(Claims(), name="here", settings=settings) as here:
        run = await started(here, load_value(document).require())
        with pytest.raises(RunFailed, match="ZeroDivisionError"):
            await run.result()


@on_loop
async def test_a_kind_that_is_not_set_up_names_the_node_and_the_setting() -> None:
    asks = {"workflow": "asks", "nodes": {"n": {"action": {"kind": "llm", "prompt": "Well?"}}}}
    async with node(Claims(), "bare") as bare:
        run = await started(bare, load_value(asks).require())
        with pytest.raises(RunFailed, match=r"NOT_FOUND: node bare .* lacks action kind 'llm': set `llm.profiles`"):
            await run.result()
