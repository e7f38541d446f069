"""A store that is away for a while: its log says so in a handful of lines, and when it is over."""

from __future__ import annotations

import structlog

from tests.runtime.executing import on_loop
from tests.runtime.nodes import TTL_MS, World
from treadle.errors import StoreUnavailable
from treadle.runtime.surroundings.outage import AGAIN_S, OVER_S, REASONS_MAX, Outage

GONE = StoreUnavailable("postgresql://db/x: the server cannot be reached")


def test_an_outage_is_a_handful_of_lines_and_its_end_is_said() -> None:
    now = [0.0]
    outage = Outage(lambda: now[0])
    with structlog.testing.capture_logs() as logs:
        outage.answered()
        for _ in range(1_000):  # a hundred seconds
            outage.failed("heartbeat", GONE)
            outage.failed("committing", GONE)
            now[0] += 0.1
        outage.answered()
        now[0] += OVER_S
        outage.answered()
        outage.answered()
    said = [line["event"] for line in logs]
    assert said[0] == "the store does not answer: trying again"
    assert said[1:-1] == ["the store still does not answer"] * int(100 / AGAIN_S)
    assert said[-1] == "the store answers again"
    assert (logs[-1]["after_s"], logs[-1]["failures"]) == (100, 2_000)


def test_a_server_that_takes_some_and_refuses_others_does_not_come_and_go() -> None:
    now = [0.0]
    outage = Outage(lambda: now[0])
    with structlog.testing.capture_logs() as logs:
        for _ in range(20):
            outage.failed("taking shards", GONE)
            outage.answered()
            now[0] += 1
    assert len(logs) == 1


def test_another_reason_is_said_at_once_and_reasons_that_never_repeat_do_not_flood_the_log() -> None:
    outage = Outage(lambda: 0.0)
    with structlog.testing.capture_logs() as logs:
        outage.failed("committing", GONE)
        outage.failed("committing", StoreUnavailable("treadle.db: the disk is full: make room"))
        outage.failed("committing", GONE)
        for number in range(100):
            outage.failed("reading", StoreUnavailable(f"no answer from port {number}"))
    assert [line["error"] for line in logs][:2] == [str(GONE), "treadle.db: the disk is full: make room"]
    assert len(logs) == REASONS_MAX


@on_loop
async def test_who_takes_over_from_a_node_that_died_says_so_and_a_good_bye_is_no_trouble() -> None:
    async with World({}) as world:
        first, second = await world.node("a"), await world.node("b")
        await world.node("c")
        with structlog.testing.capture_logs() as logs:
            await second.close()
            await world.pass_time(2 * TTL_MS)
        assert [line for line in logs if line["log_level"] == "warning"] == []
        assert "a node has left" in {line["event"] for line in logs}
        with structlog.testing.capture_logs() as logs:
            first.kill()
            await world.pass_time(3 * TTL_MS)
        (gone,) = [line for line in logs if line["event"] == "a node is gone without a word"]
        assert gone["node"] == "a"
        taken = {line["shards"] for line in logs if line["event"] == "shards were taken"}
        assert gone["taken_over"] in {*taken, "nothing yet"}
        assert world.shares() == {"c": 8}
