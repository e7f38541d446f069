"""A workflow's drawing: kept beside the version, whole, changed without a new one, and never executed."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.postgres import new_database
from tests.runtime.executing import on_loop
from tests.runtime.reaching import reached
from treadle import CommandRefused, Engine, load_value
from treadle.runtime.coordinate.library import KIND

LOOKS = {"label": "Outline", "color": "#bfdbfe", "icon": "pen"}
CANVAS: dict[str, Any] = {
    "workflow": "drawn",
    "nodes": [
        {
            "id": "a",
            "type": "Worker",
            "position": {"x": 0, "y": 0},
            "data": {**LOOKS, "action": {"kind": "set", "values": {"n": 1}}},
        },
        {"id": "b", "type": "Collector", "position": {"x": 9, "y": 0}, "data": LOOKS},
        {"id": "note", "type": "note", "data": {"text": "look here"}},
    ],
    "edges": [{"id": "e", "source": "a", "target": "b", "data": {"colour": "red"}}],
}


def moved() -> dict[str, Any]:
    """The same workflow after somebody has moved a node and coloured it."""
    other = copy.deepcopy(CANVAS)
    other["nodes"][0]["position"] = {"x": 50, "y": 60}
    other["nodes"][0]["data"]["color"] = "#000"
    other["nodes"][0]["data"]["label"] = "Draft"
    return other


@pytest.fixture(params=["file", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "file":
        yield str(tmp_path / "treadle.db")
        return
    with new_database() as dsn:
        yield dsn


@pytest.mark.parametrize("way", ["store", "server"])
@on_loop
async def test_a_drawing_that_changes_is_kept_and_makes_no_version(place: str, way: str) -> None:
    async with Engine(place) as engine:
        first = await engine.deploy(load_value(CANVAS))
        assert (first.version, first.drawn) == (1, True)
        drawing = await engine.drawing("drawn")
        assert drawing["nodes"]["a"] == {"type": "Worker", "position": {"x": 0, "y": 0}, "data": LOOKS}
        assert drawing["nodes"]["b"]["data"] == LOOKS
        assert drawing["edges"][0]["data"] == {"colour": "red"}
        assert drawing["sections"] == [CANVAS["nodes"][2]]
        assert not (await engine.deploy(load_value(CANVAS))).drawn
        again = await engine.deploy(load_value(moved()))
        assert (again.version, again.hash, again.drawn) == (1, first.hash, True)
    async with Engine(place) as engine, reached(engine, way, place) as client:
        drawing = await client.drawing("drawn", 1)
        assert drawing["nodes"]["a"]["position"] == {"x": 50, "y": 60}
        assert drawing["nodes"]["a"]["data"] == {"label": "Draft", "color": "#000", "icon": "pen"}
        assert (await client.deploy(load_value(CANVAS))).drawn  # also for whoever had put it there before
        assert await client.draw("drawn", {"nodes": {}})
        assert not await client.draw("drawn", {"nodes": {}}, 1)
        assert await client.drawing("drawn") == {"nodes": {}}
        with pytest.raises(CommandRefused, match="there is no workflow 'other'"):
            await client.draw("other", {})


@on_loop
async def test_a_drawing_is_no_part_of_what_is_executed(place: str) -> None:
    async with Engine(place) as engine:
        run = await engine.start(load_value(CANVAS))
        await run.result(10)
        assert (await engine.definition("drawn")).canvas is None
        (document,) = await engine._commander.store.documents(KIND, "drawn")
        assert "look here" not in str(document.body)
        assert "#bfdbfe" not in str(document.body)


@on_loop
async def test_a_drawing_that_version_0_1_kept_in_the_definition_is_found(place: str) -> None:
    async with Engine(place) as engine:
        await engine.deploy(load_value({"workflow": "old", "nodes": {"a": {}}}))
        store = engine._commander.store
        (document,) = await store.documents(KIND, "old")
        await store.put_document(KIND, "old", "another hash", {**document.body, "canvas": {"zoom": 2}})
    async with Engine(place) as engine:
        assert await engine.drawing("old", 1) is None
        assert await engine.drawing("old") == {"zoom": 2}
        assert await engine.start("old") is not None
        assert (await engine.definition("old")).canvas is None
