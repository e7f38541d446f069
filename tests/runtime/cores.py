"""A core on the memory store for tests: functions by name, a courier that keeps letters, a store that fails as told."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from itertools import pairwise
from typing import Any

from treadle.actions.registry import Registry
from treadle.errors import StoreUnavailable
from treadle.language import load_value
from treadle.model.definition import Workflow
from treadle.model.effects import Effect
from treadle.model.ids import RunId
from treadle.runtime.client import Client
from treadle.runtime.deliver.core import Core
from treadle.runtime.engine import Direct
from treadle.runtime.execute.executor import LocalExecutor
from treadle.runtime.execute.workshop import Workshop
from treadle.runtime.surroundings.clock import SystemClock
from treadle.runtime.surroundings.ports import Clock
from treadle.store.memory import MemoryStore
from treadle.store.port import Batch, Fence, OutboxRow, Store
from treadle.store.rows import SHARD


def calls(name: str, **node: Any) -> dict[str, Any]:
    """A node that calls one function."""
    return {"task": {"steps": [{"ref": "do", "action": {"kind": "python", "function": name}}]}, **node}


def chain(*nodes: str, name: str = "chain", **options: Any) -> Workflow:
    """Nodes in a row, each calling the function of its name."""
    pairs = pairwise(nodes)
    document = {
        "workflow": name,
        "nodes": {node: calls(node) for node in nodes},
        "transitions": [{"from": source, "to": target} for source, target in pairs],
        **options,
    }
    return load_value(document).require()


def one(name: str, action: dict[str, Any], **more: Any) -> Workflow:
    """A workflow of one node with one action."""
    nodes = {"n": {"task": {"steps": [{"ref": "do", "action": action}]}}}
    return load_value({"workflow": name, "nodes": nodes, **more}).require()


class Letters:
    """A courier that keeps what it is given, or fails as told."""

    def __init__(self) -> None:
        self.carried: list[tuple[RunId, Effect]] = []
        self.failures: list[Exception] = []

    def turn(self, _effect: Effect, _context: Any) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    async def carry(self, run: RunId, effect: Effect, _context: Any) -> None:
        if self.failures:
            raise self.failures.pop(0)
        self.carried.append((run, effect))


class FaultyStore(MemoryStore):
    """A memory store whose commits fail as told: `lost` did not happen, `unseen` happened and nobody heard of it."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[str] = []
        self.batches: list[Batch] = []

    async def commit(self, batch: Batch, *fences: Fence) -> list[OutboxRow]:
        fault = self.faults.pop(0) if self.faults and batch.commits else None
        if fault == "lost":
            raise StoreUnavailable("disk full")
        rows = await super().commit(batch, *fences)
        self.batches.append(batch)
        if fault == "unseen":
            raise StoreUnavailable("connection lost")
        return rows


class Running:
    """A core and its faces."""

    def __init__(self, core: Core, letters: Letters) -> None:
        self.core = core
        self.letters = letters
        self.client = Client(Direct(core, lambda: None))


@asynccontextmanager
async def running(
    store: Store, functions: Mapping[str, Callable[..., Any]], clock: Clock | None = None, owner: str = "engine"
) -> AsyncIterator[Running]:
    """An open core that owns the store."""
    clock = clock or SystemClock()
    fence = await store.lease(SHARD, owner, clock.now(), 1 << 50, evict=True)
    assert fence is not None
    registry = Registry()
    registry.functions.update(functions)
    letters = Letters()
    shop = Workshop(registry, clock, name=owner)
    core = Core(store, clock, lambda report: LocalExecutor(shop, report, name=owner), letters)
    await core.open()
    await core.gain(fence)
    try:
        yield Running(core, letters)
    finally:
        await core.close()
        await shop.close()
