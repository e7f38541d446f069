"""Lines, slots across runs, queues and their leases."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.runtime.executing import Bench, on_loop, python, turns
from tests.unit.runtime.attempts import mock, step
from treadle.actions.current import current_attempt
from treadle.actions.registry import Registry
from treadle.model.commands import Command, ExtendLease, FinishAttempt, StartAttempt
from treadle.model.effects import Slot
from treadle.model.ids import TokenId
from treadle.runtime.execute.slots import Line, Slots


def starts(bench: Bench) -> list[tuple[str, TokenId]]:
    return [(run, command.token) for run, command in bench.reports if isinstance(command, StartAttempt)]


def gated() -> tuple[Registry, dict[int, asyncio.Event]]:
    """A function `wait` that ends when the event of its token is set."""
    registry, gates = Registry(), {token: asyncio.Event() for token in range(10)}

    @registry.function("wait")
    async def wait(input: Any) -> None:
        await gates[current_attempt().facts.token].wait()

    return registry, gates


def test_a_line_serves_in_order_and_can_be_left_from_the_middle() -> None:
    line: Line[str] = Line(1)
    assert [line.enter(who) for who in "abcd"] == [True, False, False, False]
    assert line.withdraw("c")
    assert not line.withdraw("c")
    assert not line.withdraw("a")
    assert list(line.turns()) == []
    line.leave()
    assert list(line.turns()) == ["b"]
    line.leave()
    assert list(line.turns()) == ["d"]
    assert not line.idle
    line.leave()
    assert line.idle
    with pytest.raises(AssertionError):
        line.leave()


def test_a_raised_limit_lets_those_in_line_in_first_and_a_lowered_one_lets_nobody_in() -> None:
    slots: Slots[str] = Slots()
    line = slots.line(Slot("n", 1))
    assert [line.enter(who) for who in "abc"] == [True, False, False]
    assert slots.line(Slot("n", 2)) is line
    assert not line.enter("d")
    assert list(line.turns()) == ["b"]
    assert slots.line(Slot("n", 1)) is line
    line.leave()
    assert list(line.turns()) == []


@on_loop
async def test_a_slot_counts_across_runs_and_serves_in_order() -> None:
    registry, gates = gated()
    async with Bench(registry) as bench:
        for token, run in [(1, "r1"), (2, "r2"), (3, "r3")]:
            bench.begin(python("wait"), token, run=run, slot=Slot("n", 2))
        await turns()
        assert starts(bench) == [("r1", 1), ("r2", 2)]
        assert bench.executor.executing == 3
        gates[2].set()
        await turns()
        assert starts(bench)[2:] == [("r3", 3)]
        assert bench.reports[0] == ("r1", StartAttempt(TokenId(1), 1))
        gates[1].set()
        gates[3].set()
        await bench.wait_ends(3)


@on_loop
async def test_slots_of_other_names_and_keys_do_not_wait_for_each_other_and_none_is_kept() -> None:
    registry, gates = gated()
    async with Bench(registry) as bench:
        slots = [
            Slot("n", 1, "a"),
            Slot("n", 1, "b"),
            Slot("m", 1, "a"),
            Slot("n", 1, {"k": [1]}),
            Slot("n", 1, {"k": [1]}),
        ]
        for token, slot in enumerate(slots):
            bench.begin(python("wait"), token, slot=slot)
        await turns()
        assert [token for _, token in starts(bench)] == [0, 1, 2, 3]
        for gate in gates.values():
            gate.set()
        await bench.wait_ends(5)
        assert len(bench.executor._slots) == 0


@on_loop
async def test_an_attempt_that_only_shares_a_slot_with_a_finished_one_still_keeps_its_limit() -> None:
    registry, gates = gated()
    async with Bench(registry) as bench:
        bench.begin(mock("a"), 9, slot=Slot("n", 1))
        for token in (1, 2):
            bench.begin(python("wait"), token, slot=Slot("n", 1))
        await turns()
        assert [token for _, token in starts(bench)] == [9, 1]
        gates[1].set()
        gates[2].set()
        await bench.wait_ends(3)


@on_loop
async def test_a_stopped_attempt_gives_its_slot_to_the_next_and_one_in_line_leaves_it() -> None:
    registry, _ = gated()
    async with Bench(registry) as bench:
        for token in (1, 2, 3):
            bench.begin(python("wait"), token, slot=Slot("n", 1))
        await turns()
        bench.stop(2)
        bench.stop(1)
        await turns()
        assert [token for _, token in starts(bench)] == [1, 3]


@on_loop
async def test_a_queue_limits_how_many_run_and_only_served_queues_are_begun() -> None:
    registry, gates = gated()
    async with Bench(registry, queues={"gpu": 2}) as bench:
        for token in (1, 2, 3):
            bench.begin(python("wait"), token, queue="gpu")
        bench.begin(mock("a"), 4, queue="mainframe")
        bench.begin(mock("a"), 5)
        assert bench.executor.executing == 4
        await turns()
        assert [token for _, token in starts(bench)] == [1, 2]
        assert bench.ends() == [FinishAttempt(TokenId(5), 1, {})]
        gates[1].set()
        await turns()
        assert [token for _, token in starts(bench)] == [1, 2, 3]


@on_loop
async def test_a_place_in_a_queue_does_not_idle_while_its_holder_waits_for_a_slot() -> None:
    registry, _ = gated()
    async with Bench(registry, queues={"gpu": 2}) as bench:
        bench.begin(python("wait"), 1, queue="gpu", slot=Slot("n", 1))
        bench.begin(python("wait"), 2, queue="gpu", slot=Slot("n", 1))
        bench.begin(python("wait"), 3, queue="gpu")
        await turns()
        assert [token for _, token in starts(bench)] == [1, 3]


@on_loop
async def test_work_of_a_queue_is_leased_and_the_lease_extended_while_it_runs() -> None:
    registry, gates = gated()
    async with Bench(registry, name="w1", lease_ms=30_000) as bench:
        start = bench.clock.now()
        bench.begin(python("wait"), 1, queue="gpu")
        await turns()
        await bench.clock.advance(9_999)
        claim: list[Command] = [StartAttempt(TokenId(1), 1, "w1", start + 30_000)]
        assert [command for _, command in bench.reports] == claim
        await bench.clock.advance(1)
        await bench.clock.advance(10_000)
        extensions = [ExtendLease(TokenId(1), 1, "w1", start + ms) for ms in (40_000, 50_000)]
        assert [command for _, command in bench.reports] == [*claim, *extensions]
        gates[1].set()
        assert await bench.wait_ends() == [FinishAttempt(TokenId(1), 1, {"result": None}, worker="w1")]
        assert bench.clock.pending == []


@on_loop
async def test_a_stopped_attempt_lets_its_lease_go() -> None:
    async with Bench(name="w1") as bench:
        bench.begin(step("a", "mock", {"output": {}, "after_ms": 1_000_000}), 1, queue="gpu")
        await turns()
        bench.stop()
        assert bench.clock.pending == []


@on_loop
async def test_an_attempt_refused_at_its_start_does_not_run() -> None:
    registry, begun = Registry(), list[int]()

    @registry.function("f")
    async def f(input: Any) -> None:
        begun.append(1)

    async with Bench(registry) as bench:
        bench.executor._report = lambda run, command: bench.executor.stop(run, command.token, 1)  # type: ignore[attr-defined]
        bench.begin(python("f"), 1, queue="gpu")
        await turns()
        assert (begun, bench.executor.executing, bench.clock.pending) == ([], 0, [])
