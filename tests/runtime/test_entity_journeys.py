"""Journeys, positions and conversion are those of a fold over all histories, however the runs interleave."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.postgres import new_database
from tests.runtime.reaching import reached
from treadle import CommandRefused, Engine, connect
from treadle.graph.compile import compile_graph
from treadle.language import load_value
from treadle.model import events as e
from treadle.model.ids import RunId, TokenId
from treadle.model.states import RunStatus
from treadle.runtime.client import Client
from treadle.runtime.service.journeys import cost_of_run, legs_of
from treadle.store.entities import MoveRow, place_of
from treadle.store.passages import passages
from treadle.store.port import RunQuery, RunRow

FLOW = {
    "workflow": "lead",
    "nodes": {
        "score": {"action": {"kind": "wait", "ms": 1}},
        "call": {"action": {"kind": "human"}},
        "win": {"entity": {"on_success": {"complete_as": "success", "set_type": "customer"}}},
        "lose": {"entity": {"on_success": {"section": "newsletter", "complete_as": "neutral"}}},
    },
    "transitions": [
        {"from": "score", "to": "call", "condition": "input.way != 'lose'"},
        {"from": "score", "to": "lose", "priority": 2},
        {"from": "call", "to": "win", "condition": "input.way == 'win'"},
        {"from": "call", "to": "lose", "priority": 2},
    ],
}


async def drive(client: Client, random: Random, entities: int, runs: int) -> None:
    """Starts runs about few entities, answers some gates, moves some entities by hand, all at once."""

    async def one(number: int) -> None:
        id = str(random.randrange(entities))
        about = {"type": "lead", "id": id, "attributes": {"last": number}}
        run = await client.start("lead", {"way": random.choice(["win", "lose", "other"])}, entity=about)
        if random.random() < 0.3:
            place: dict[str, str] = random.choice([{"section": "vip"}, {"node": "call"}])
            await client.entities.move("lead", id, "lead", **place)
        async for event in run.events():
            if isinstance(event, e.GateOpened):
                if random.random() < 0.3:
                    return
                await run.complete_gate(event.token, {})

    await asyncio.gather(*(one(number) for number in range(runs)))


async def compare(client: Client) -> None:
    """What the tables say is what all histories say, together with the moves by hand."""
    store: Any = client._commander.store
    found: list[MoveRow] = []
    keys: dict[str, str] = {}
    for row in await store.find_runs(RunQuery(limit=10_000)):
        history = await store.history(row.run)
        started = history[0]
        assert isinstance(started, e.RunStarted) and started.entity is not None
        key = keys[started.entity.id] = f"lead/{started.entity.id}"
        last = 0
        for event in history:
            if isinstance(event, e.EntityMoved):
                last = max(last, event.at)
                kind, place = place_of(event.node, event.edge, event.section)
                found.append(
                    MoveRow(
                        key,
                        row.workflow,
                        last,
                        row.run,
                        event.seq,
                        event.event,
                        kind=kind,
                        place=place,
                        progress=event.progress,
                        completed_as=event.completed_as,
                        set_type=event.entity_type,
                        by=event.by,
                        reason=event.reason,
                    )
                )
    told = [move for key in keys.values() for move in await store.journey(key, None, 100_000)]
    by_hand = [move for move in told if not move.run]
    assert sorted((move for move in told if move.run), key=lambda move: (move.run, move.seq)) == sorted(
        found, key=lambda move: (move.run, move.seq)
    )
    everything = found + by_hand
    assert await store.conversion("lead", 0) == passages(everything, "lead", 0)
    middle = sorted(move.at for move in everything)[len(everything) // 2]
    assert await store.conversion("lead", middle) == passages(everything, "lead", middle)
    last_moves: dict[str, MoveRow] = {}
    for move in sorted(everything, key=lambda move: move.order):
        last_moves[move.key] = move
    here = await client.entities.positions("lead", limit=1_000)
    shown = {(one.id, one.positions[0].since, one.positions[0].run or "") for one in here.items}
    assert shown == {(key.partition("/")[2], move.at, move.run) for key, move in last_moves.items()}
    assert (await client.fsck()).findings == []


@pytest.mark.parametrize(("seed", "way"), [(0, "itself"), (1, "itself"), (2, "server")])
def test_the_tables_say_what_the_histories_say_on_one_engine(tmp_path: Path, seed: int, way: str) -> None:
    async def play() -> None:
        async with Engine(tmp_path / "t.db") as engine:
            await engine.deploy(load_value(FLOW))
            async with reached(engine, way) as client:
                await drive(client, Random(seed), 5, 60)
            await compare(engine)

    asyncio.run(play())


def test_the_tables_say_what_the_histories_say_with_many_nodes() -> None:
    async def play(dsn: str) -> None:
        async with Engine(dsn, name="one") as one, Engine(dsn, name="two") as two:
            await one.deploy(load_value(FLOW))
            async with connect(dsn) as client:
                await asyncio.gather(
                    drive(one, Random(1), 4, 25), drive(two, Random(2), 4, 25), drive(client, Random(3), 4, 15)
                )
                await compare(client)

    with new_database() as dsn:
        asyncio.run(play(dsn))


def test_a_move_by_hand_reaches_the_live_run_and_stays_in_the_section() -> None:
    async def play() -> None:
        async with Engine(":memory:") as engine:
            await engine.deploy(load_value(FLOW))
            run = await engine.start("lead", {"way": "win"}, entity="lead/1")
            async for event in run.events():
                if isinstance(event, e.GateOpened):
                    moved = await engine.entities.move("lead", "1", "lead", section="vip", reason="called", by="ana")
                    assert moved.positions[0].section == "vip"
                    await run.complete_gate(event.token, {})
            moves = [event for event in await run.history() if isinstance(event, e.EntityMoved)]
            assert [(move.by, move.reason) for move in moves if move.by] == [("ana", "called")]
            assert [move.event for move in moves][-2:] == ["moved", "completed"], "no further travel, only the outcome"
            entity = await engine.entities.get("customer", "1")
            assert (entity.positions[0].section, entity.positions[0].completed_as) == ("vip", "success")
            with pytest.raises(CommandRefused, match="no node"):
                await engine.entities.move("customer", "1", "lead", node="nowhere")

    asyncio.run(play())


def test_a_journey_tells_what_the_models_of_a_run_have_cost() -> None:
    judge = {"action": {"kind": "llm", "model": "m", "prompt": "?"}}
    graph = compile_graph(load_value({"workflow": "w", "nodes": {"judge": judge}}).require())
    run = RunId("r")
    history = [
        e.RunStarted(1, 0, run, "w", 1, "h", {}),
        e.EntityMoved(2, 0, "entered", edge="->judge"),
        e.TokenCreated(3, 0, TokenId(1), "judge", "root"),
        e.EntityMoved(4, 1, "arrived", node="judge"),
        e.TokenCompleted(5, 9, TokenId(1), {"text": "yes", "cost": 0.25}),
    ]
    row = RunRow(run, "w", 1, RunStatus.COMPLETED, 5, changed=9)
    moves = [
        MoveRow("lead/1", "w", 0, run, 2, "entered", kind="edge", place="->judge"),
        MoveRow("lead/1", "w", 1, run, 4, "arrived", kind="node", place="judge"),
    ]
    (leg,) = legs_of(moves)
    told = leg.of(row, cost_of_run(history, graph, row))
    assert (told.cost, [move.cost for move in told.moves]) == (0.25, [None, 0.25])
    assert [move.until for move in told.moves] == [1, None]
    assert cost_of_run(history[:2], graph, row) is None, "a trimmed history tells no costs"
