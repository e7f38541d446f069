"""A commit begins when it is asked for, and is a task in every other respect."""

from __future__ import annotations

import asyncio

import pytest

from tests.runtime.executing import turns
from treadle.store.postgres.eager_task import begun


def test_the_first_step_is_taken_before_anybody_else_has_a_turn() -> None:
    async def story() -> None:
        said: list[str] = []
        gate: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        async def work() -> str:
            said.append("sent")
            return await gate

        task = begun(work())
        assert said == ["sent"]
        gate.set_result("answer")
        assert await task == "answer"

    asyncio.run(story())


def test_work_that_waits_for_nothing_and_work_that_fails_tell_so_as_tasks_do() -> None:
    async def three() -> int:
        return 3

    async def wrong() -> int:
        raise ValueError("no")

    async def late() -> int:
        await turns(1)
        raise ValueError("later")

    async def story() -> None:
        assert await begun(three()) == 3
        for failing in (wrong, late):
            with pytest.raises(ValueError, match=r"no|later"):
                await begun(failing())

    asyncio.run(story())


@pytest.mark.parametrize("has_turned", [False, True])
def test_who_is_cancelled_hears_it_where_it_waits(has_turned: bool) -> None:
    async def story() -> list[str]:
        heard: list[str] = []

        async def work() -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                heard.append("cancelled")
                raise

        task = begun(work())
        if has_turned:
            await turns(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return heard

    assert asyncio.run(story()) == ["cancelled"]


def test_what_was_done_at_once_can_still_be_cancelled() -> None:
    async def story() -> None:
        async def three() -> int:
            return 3

        task = begun(three())
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(story())


@pytest.mark.parametrize("in_a_task", [False, True])
def test_a_timeout_in_the_first_step_is_about_the_work_and_not_about_who_called(in_a_task: bool) -> None:
    async def work() -> str:
        try:
            async with asyncio.timeout(0):
                await asyncio.Event().wait()
        except TimeoutError:
            return "out of time"
        return "never"

    async def caller() -> str:
        if in_a_task:
            me = asyncio.current_task()
            task = begun(work())
            assert asyncio.current_task() is me
            return await task
        loop = asyncio.get_running_loop()
        given: asyncio.Future[asyncio.Task[str]] = loop.create_future()
        loop.call_soon(lambda: given.set_result(begun(work())))
        return await (await given)

    assert asyncio.run(caller()) == "out of time"
