"""Who waits for the end of a run is not woken for its steps."""

from __future__ import annotations

import asyncio

import pytest

from tests.runtime.executing import on_loop
from treadle.model.events import RunPaused
from treadle.model.ids import RunId
from treadle.model.states import RUN_ENDED, RunStatus
from treadle.runtime.coordinate.feed import Feed

RUN = RunId("r")


@on_loop
async def test_a_watch_for_ends_is_rung_by_an_end_and_by_doubt_only() -> None:
    feed = Feed()
    with feed.watch(RUN) as ends, feed.watch(RUN) as all_news:
        ends.only = RUN_ENDED
        feed.publish(RUN, RunPaused(3, 0, "ann"), RunStatus.RUNNING)
        news = await all_news.news()
        assert news is not None and news.seq == 3
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(ends.news(), 0)
        feed.publish(RUN, RunPaused(4, 0, "ann"), RunStatus.FAILED)
        ended = await ends.news()
        assert ended is not None and ended.status is RunStatus.FAILED
        feed.wake_everybody()
        assert await ends.news() is None
