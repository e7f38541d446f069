"""Which run somebody means when they name one: an exact id, or an end of it that fits no other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runtime.cores import chain
from tests.runtime.executing import on_loop
from tests.runtime.hall import nothing
from tests.runtime.reaching import reached
from treadle import CommandRefused, Engine, connect
from treadle.errors import EngineStopped

NAMES = ("order-1", "reorder-1", "preorder-1", "1-000000", "2-000000", "0", "late-order-17")


@pytest.fixture(params=["sqlite", "postgres", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param != "postgres":
        yield str(tmp_path / "t.db") if request.param == "sqlite" else ":memory:"
        return
    from tests.postgres import new_database

    with new_database() as dsn:
        yield dsn


@pytest.mark.parametrize("way", ["itself", "server"])
@on_loop
async def test_an_exact_id_wins_an_end_must_be_long_and_fit_one_run_and_doubt_is_refused(place: str, way: str) -> None:
    async with Engine(place, functions={"a": nothing}) as owner, reached(owner, way) as engine:
        for name in NAMES:
            await owner.start(chain("a"), run_id=name)
        for text in ("order-1", "0", "reorder-1", "2-000000"):
            assert (await engine.find_run(text)).id == text
        for text in ("…order-17", "order-17"):
            assert (await engine.find_run(text)).id == "late-order-17"
        with pytest.raises(CommandRefused, match="several runs end in 'eorder-1': preorder-1, reorder-1; name one"):
            await engine.find_run("eorder-1")
        with pytest.raises(CommandRefused, match="several runs end in '000000': 2-000000, 1-000000"):
            await engine.find_run("000000")
        for few in ("00000", "1", "", "er-1"):
            with pytest.raises(CommandRefused, match=f"there is no run '{few}'; .* from 6 characters on"):
                await engine.find_run(few)
        with pytest.raises(CommandRefused, match="there is no run 'border-1'"):
            await engine.find_run("border-1")


@on_loop
async def test_a_run_that_is_only_asked_for_is_not_mistaken_for_one_that_ends_alike(tmp_path: Path) -> None:
    place = str(tmp_path / "t.db")
    async with Engine(place, functions={"a": nothing}) as engine:
        await engine.start(chain("a"), run_id="reorder-1")
    async with connect(place) as client:
        assert (await client.find_run("order-1")).id == "reorder-1"
        with pytest.raises(EngineStopped):
            await client.start("chain", run_id="order-1")
        with pytest.raises(CommandRefused, match="'order-1' is asked for and has not begun"):
            await client.find_run("order-1")
