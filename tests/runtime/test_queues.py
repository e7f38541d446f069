"""What operators decide about queues, and what shares turns and limits."""

from __future__ import annotations

import pytest

from tests.runtime.executing import on_loop
from tests.runtime.hall import AtWork, hall, queued
from treadle.errors import CommandRefused
from treadle.model import effects as f
from treadle.runtime.engine import Engine
from treadle.runtime.queue.offers import key_of
from treadle.runtime.queue.queue_settings import QueueRules, read_rate, write_rate
from treadle.store.memory import MemoryStore


@on_loop
async def test_rules_are_kept_and_obeyed() -> None:
    at = AtWork()

    async with hall({"q": 10}, work=at.work) as here:
        await here.engine.set_queue("q", QueueRules(concurrency=2, weights={"w": 3.0}))
        (view,) = await here.engine.queues()
        assert view.rules == QueueRules(concurrency=2, weights={"w": 3.0})
        here.engine._queues.claimant.changed()  # type: ignore[union-attr]
        runs = [await here.engine.start(queued()) for _ in range(10)]
        for run in runs:
            await run.wait()
        assert at.most <= 2
        await here.engine.set_queue("q", QueueRules())
        (view,) = await here.engine.queues()
        assert (view.rules, view.workers) == (QueueRules(), (here.engine.name,)), "the engine names it"


@on_loop
async def test_a_store_without_claims_has_no_queues() -> None:
    async with Engine(MemoryStore()) as engine:
        with pytest.raises(CommandRefused, match="has no claims"):
            await engine.queues()


@pytest.mark.parametrize(
    ("text", "per_s", "back"), [("5", 5, "5/s"), ("90/m", 1.5, "1.5/s"), ("20/h", 20 / 3600, "20/h")]
)
def test_rates_as_people_write_them(text: str, per_s: float, back: str) -> None:
    assert read_rate(text).per_s == pytest.approx(per_s)
    assert write_rate(read_rate(text)) == back


@pytest.mark.parametrize("text", ["0/s", "-1", "fast", "5/d", ""])
def test_what_is_no_rate_is_refused(text: str) -> None:
    with pytest.raises(CommandRefused, match="5/s"):
        read_rate(text)


@pytest.mark.parametrize(
    "rules", [QueueRules(concurrency=0), QueueRules(weights={"a": 0.0}), QueueRules(key_concurrency=-1)]
)
@on_loop
async def test_rules_that_would_stop_everything_are_refused(rules: QueueRules) -> None:
    async with hall() as here:
        with pytest.raises(CommandRefused, match="BAD_REQUEST"):
            await here.engine.set_queue("q", rules)


KEYS = [
    (None, "w"),
    (f.Slot("w/n", 1), "w/n"),
    (f.Slot("w/n", 1, "acme"), "w/n:acme"),
    (f.Slot("w/n", 1, {"b": 1, "a": 2}), 'w/n:{"a":2,"b":1}'),
]


@pytest.mark.parametrize(("slot", "key"), KEYS)
def test_what_shares_turns_and_limits(slot: f.Slot | None, key: str) -> None:
    assert key_of("w", slot) == key


def test_a_long_key_is_known_by_its_digest() -> None:
    one, other = (key_of("w", f.Slot("w/n", 1, "x" * 5_000 + end)) for end in "ab")
    assert one != other
    assert len(one) <= 200
