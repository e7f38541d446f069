"""Who waits for the end of a run is not woken for its steps."""

from __future__ import annotations

import asyncio

import pytest

from tests.runtime.executing import on_loop
from treadle.model.events import RunPaused
from treadle.model.ids import RunId
from treadle.model.states import RUN_ENDED, RunStatus
from treadle.runtime.coordinate.feed import Feed
from treadle.store.port import Commit

RUN = RunId("r")


def paused(seq: int, status: RunStatus) -> Commit:
    return Commit(RUN, seq - 1, [RunPaused(seq, 0, "ann")], [], status)


@on_loop
async def test_a_watch_for_ends_is_rung_by_an_end_and_by_doubt_only() -> None:
    feed = Feed()
    with feed.watch(RUN) as ends, feed.watch(RUN) as all_news:
        ends.only = RUN_ENDED
        feed.publish([paused(3, RunStatus.RUNNING)])
        news = await all_news.news()
        assert news is not None and news.seq == 3
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(ends.news(), 0)
        feed.publish([paused(4, RunStatus.FAILED)])
        ended = await ends.news()
        assert ended is not None and ended.status is RunStatus.FAILED
        feed.wake_everybody()
        assert await ends.news() is None
