"""A part of a run is cancelled, an open group grows and is closed, a run is about an entity, and how it once stood."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from tests.runtime.executing import on_loop, turns
from tests.runtime.reaching import reached
from treadle import CommandRefused, Engine
from treadle.language import load_text
from treadle.model.states import RunStatus
from treadle.runtime.client import Client

WAITING = load_text("""
workflow: waiting
output: {n: $.state.n}
nodes:
  begin: {action: {kind: set, values: {n: 1}}, output_mapping: {state.n: $.n}}
  ask: {action: {kind: human}}
  end: {action: {kind: set, values: {n: 2}}, output_mapping: {state.n: $.n}}
transitions:
  - {id: fan, from: begin, to: ask, spawn_count: 3}
  - {from: ask, to: end, synchronization: {sibling_group: fan, strategy: any, on_early_complete: cancel}}
""")
GROWING = load_text("""
workflow: growing
output: {votes: $.state.votes}
nodes:
  begin: {}
  vote: {action: {kind: human}, input_mapping: {it: $.it}, output_mapping: {state.v: $.v}}
  end: {}
transitions:
  - {id: fan, from: begin, to: vote, foreach: {collection: input.items, item_var: it}, open: true}
  - from: vote
    to: end
    synchronization: {sibling_group: fan, merge: {source: _branch.output.v, target: state.votes, strategy: append}}
""")


async def asked(engine: Client) -> list[int]:
    """The three gates, once they are open."""
    while len(gates := await engine.gates()) < 3:
        await turns()
    return [gate.token for gate in gates]


@pytest.mark.parametrize("way", ["itself", "server"])
@on_loop
async def test_one_visit_and_then_a_whole_group_are_cancelled(way: str) -> None:
    async with Engine(":memory:") as owner, reached(owner, way) as engine:
        run = await engine.start(WAITING)
        first, *rest = await asked(engine)
        await run.cancel("not this one", visit=first)
        assert [gate.token for gate in await engine.gates()] == rest
        assert await run.status() is RunStatus.RUNNING
        with pytest.raises(ValueError, match="a visit or a group"):
            await run.cancel(visit=rest[0], group="fan")
        with pytest.raises(CommandRefused, match="no group of this workflow answers to 'nothing'"):
            await run.cancel(group="nothing")
        await run.cancel(group="fan")
        assert await engine.gates() == []


@pytest.mark.parametrize("way", ["itself", "server"])
@on_loop
async def test_an_open_group_grows_by_items_or_a_number_and_is_closed(way: str) -> None:
    async with Engine(":memory:") as owner, reached(owner, way) as engine:
        run = await engine.start(GROWING, {"items": ["a"]})
        await run.add_siblings("fan", ["b", "c"])
        await run.add_siblings("fan", ["d"], id="once")
        await run.add_siblings("fan", ["d"], id="once")
        for both_or_none in ({"items": ["e"], "count": 1}, {}):
            with pytest.raises(ValueError, match="items or a count"):
                await run.add_siblings("fan", **both_or_none)  # type: ignore[arg-type]
        await run.close_group("fan")
        for number, gate in enumerate(await engine.gates()):
            await engine.complete_gate(run.id, gate.visit, {"v": number})
        assert (await run.result())["votes"] == [0, 1, 2, 3]
        with pytest.raises(CommandRefused):
            await run.add_siblings("fan", ["f"])


@on_loop
async def test_a_run_is_about_an_entity_and_knows_what_started_it() -> None:
    async with Engine(":memory:") as engine:
        run = await engine.start(WAITING, entity="order/42/a", trigger={"hook": "paid"})
        state = await run.state()
        assert state.entity is not None
        assert (state.entity.type, state.entity.id) == ("order", "42/a")
        assert (await run.history(0, 1))[0].trigger == {"hook": "paid"}  # type: ignore[attr-defined]
        assert [row.run for row in await engine.runs(entity="order/42/a")] == [run.id]
        assert await engine.runs(entity="person/42/a") == await engine.runs(entity="42/a") == []
        for wrong in ("order", "/42", "order/"):
            with pytest.raises(CommandRefused, match="TYPE/ID"):
                await engine.start(WAITING, entity=wrong)
            with pytest.raises(CommandRefused, match="TYPE/ID"):
                await engine.runs(entity=wrong)


@on_loop
async def test_a_row_of_version_0_1_which_has_the_id_of_its_entity_alone_is_found_and_in_order(tmp_path: Path) -> None:
    place = tmp_path / "treadle.db"
    async with Engine(place) as engine:
        old = await engine.start(WAITING, entity="order/42")
        slashed = await engine.start(WAITING, entity="order/invoice/42")
    connection = apsw.Connection(str(place))
    connection.execute("UPDATE runs SET entity = '42' WHERE run = ?", (old.id,))
    connection.close()
    async with Engine(place) as engine:
        assert [row.run for row in await engine.runs(entity="order/42")] == [old.id]
        assert [row.run for row in await engine.runs(entity="order/invoice/42")] == [slashed.id]
        assert await engine.runs(entity="invoice/43") == []
        assert (await engine.fsck()).findings == []


@pytest.mark.parametrize("way", ["itself", "server"])
@on_loop
async def test_a_run_as_it_was_after_any_of_its_events(way: str) -> None:
    async with Engine(":memory:") as owner, reached(owner, way) as engine:
        run = await engine.start(WAITING)
        await engine.complete_gate(run.id, (await asked(engine))[0], {})
        await run.wait()
        history = await run.history()
        opened = next(event.seq for event in history if event.type == "gate.opened")
        then = await run.state(at=opened)
        assert (then.status, then.context()["state"]) == (RunStatus.RUNNING, {"n": 1})
        assert then.seq == next(end for end in await run.decisions() if end >= opened), "the end of its decision"
        last = await run.state(at=history[-1].seq)
        assert (last.status, last.context()["state"]) == (RunStatus.COMPLETED, {"n": 2})
        with pytest.raises(CommandRefused, match=f"has {len(history)} events, none is number {len(history) + 1}"):
            await run.state(at=len(history) + 1)
        with pytest.raises(CommandRefused, match="counted from 1"):
            await run.state(at=0)
        with pytest.raises(CommandRefused, match="there is no run"):
            await engine.run("nobody").state(at=1)
