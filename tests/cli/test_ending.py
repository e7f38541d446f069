"""SIGTERM ends a verb cleanly, also when it comes twice."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from treadle.cli.frame.opening import drive


def test_a_second_sigterm_does_not_interrupt_the_closing_that_the_first_began() -> None:
    told: list[str] = []

    async def verb() -> int:
        loop = asyncio.get_running_loop()
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.Event().wait()
        finally:
            os.kill(os.getpid(), signal.SIGTERM)
            closing = loop.create_future()
            loop.call_later(0.05, closing.set_result, None)  # long enough for the signal to be heard
            await closing
            told.append("closed")
        return 0

    with pytest.raises(KeyboardInterrupt):
        drive(verb())
    assert told == ["closed"]
