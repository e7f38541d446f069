"""Many events become one block, whichever way they were packed."""

from __future__ import annotations

import pytest

from treadle.model import events as e
from treadle.model.codec import COMPRESSED, joined, pack_events, uncompressed, unpacking
from treadle.model.ids import RunId
from treadle.model.states import RunStatus
from treadle.store.planning import SLICE, BatchPlan
from treadle.store.port import Batch, Commit
from treadle.store.seals import about_block, unseal
from treadle.store.spill import Resolver

RUN = RunId("r")
BIG = "x" * 500


def events(count: int, big: tuple[int, ...] = (), first: int = 1) -> list[e.Event]:
    return [e.Custom(seq, 7, "x", BIG if seq in big else seq) for seq in range(first, first + count)]


@pytest.mark.parametrize("count", [1, 15, 16, 17, 63, 64, 65, 1_000, 65_535, 65_536, 70_000])
@pytest.mark.parametrize("slice", [1, 15, 16, 64, 66_000])
def test_slices_join_to_what_packing_all_at_once_gives(count: int, slice: int) -> None:
    every = events(count)
    assert joined([pack_events(every[at : at + slice]) for at in range(0, count, slice)]) == pack_events(every)


@pytest.mark.parametrize("big", [(), (2,), (SLICE, SLICE + 1), (10, 3 * SLICE)])
def test_only_large_values_leave_a_block_of_many_events(big: tuple[int, ...]) -> None:
    started = e.RunStarted(1, 0, RUN, "w", 1, "hash", None)
    every = [started, *events(4 * SLICE, big, first=2)]
    plan = BatchPlan(Batch([Commit(RUN, 0, tuple(every), (), RunStatus.RUNNING, False)]), 200)
    ((_, last, kept),) = plan.blocks
    block = unseal(kept, about_block(RUN, last))
    assert block is not None
    blobs = {digest: content for _, digest, content in plan.blobs}
    assert last == len(every)
    assert len(blobs) == (1 if big else 0)
    assert unpacking(Resolver(blobs.__getitem__))(block) == every
    assert block[:1] == COMPRESSED and len(uncompressed(block)) > 2 * len(block)
    assert len(block) < 200 * SLICE
