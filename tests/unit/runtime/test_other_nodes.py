"""Commands on their way to the inbox of another node: once, in order, and no row is removed before they are written."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, cast

from tests.runtime.executing import VirtualClock, on_loop, turns
from treadle.model.commands import SendSignal
from treadle.model.ids import RunId
from treadle.runtime.coordinate.gathering import Item
from treadle.runtime.coordinate.shards import Shards
from treadle.runtime.deliver.other_nodes import OtherNodes
from treadle.store.memory import MemoryStore
from treadle.store.port import Fence, InboxAnswer, InboxRequest, Store

HERE, THERE = 0, 1


class SlowStore(MemoryStore):
    """A memory store whose inbox takes requests when it may."""

    def __init__(self) -> None:
        super().__init__(shards=2)
        self.may_write = asyncio.Event()

    async def submit(self, request: InboxRequest) -> InboxAnswer | None:
        await self.may_write.wait()
        return await super().submit(request)


class Posting:
    """This node owns one of two shards; the target of what it sends is in the other."""

    def __init__(self) -> None:
        self.store = SlowStore()
        shards = Shards(2)
        shards.gain([Fence("me", HERE, 1)])
        names = [f"r{number}" for number in range(20)]
        self.source = RunId(next(name for name in names if shards.of(name) == HERE))
        self.target = RunId(next(name for name in names if shards.of(name) == THERE))
        self.settled: list[int] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self.nodes = OtherNodes(
            cast(Store, self.store), shards, VirtualClock(), self._spawn, self.settled.append, lambda: False
        )

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.add(asyncio.ensure_future(work))

    def send(self, row: int) -> None:
        """As an outbox row of the source is delivered."""
        self.nodes.take(Item(self.target, SendSignal(f"s{row}", id=f"s{row}"), row=row, source=self.source))

    async def written(self) -> list[str]:
        return [request.id for request in await self.store.inbox((THERE,), 100)]


@on_loop
async def test_a_row_that_is_delivered_again_finds_its_first_request() -> None:
    post = Posting()
    post.store.may_write.set()
    for _ in range(2):
        post.send(7)
        await turns(10)
    assert await post.written() == ["outbox:7"]


@on_loop
async def test_commands_for_one_run_are_written_in_the_order_of_their_rows() -> None:
    post = Posting()
    for row in (3, 4, 5, 6):
        post.send(row)
    await turns(10)
    post.store.may_write.set()
    await turns(30)
    assert await post.written() == ["outbox:3", "outbox:4", "outbox:5", "outbox:6"]


@on_loop
async def test_a_row_is_removed_when_its_request_is_written_and_not_before() -> None:
    post = Posting()
    post.send(7)
    await turns(10)
    assert post.settled == []
    post.store.may_write.set()
    await turns(10)
    assert post.settled == [7] and await post.written() == ["outbox:7"]
