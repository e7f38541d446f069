"""The secret of a store whose nodes share it: made once, however many nodes begin at the same moment."""

from __future__ import annotations

import asyncio

from treadle.runtime.access.root import root_secret
from treadle.store.memory import MemoryStore


def test_nodes_that_begin_together_have_one_secret() -> None:
    async def whole() -> set[bytes]:
        store = MemoryStore()
        return {*(await asyncio.gather(*(root_secret(store) for _ in range(5)))), await root_secret(store)}

    assert len(asyncio.run(whole())) == 1
