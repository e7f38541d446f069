"""A run whose history cannot be read is refused, and whoever asks again and again does not slow down the others."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from tests.runtime.executing import on_loop
from tests.runtime.test_answers import ASKS
from treadle.errors import CommandRefused
from treadle.model.events import Event
from treadle.model.ids import RunId, TokenId
from treadle.runtime.coordinate import loading
from treadle.runtime.engine import Engine
from treadle.store.sqlite import SqliteStore


async def an_unreadable_run(place: Path) -> RunId:
    async with Engine(place) as engine:
        await engine.deploy(ASKS)
        run = (await engine.start("asks")).id
    with apsw.Connection(str(place)) as file:
        file.execute("UPDATE history SET block = x'c1'")  # the one byte no msgpack begins with
    return run


@on_loop
async def test_it_is_refused_and_not_read_again_for_a_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, read = tmp_path / "t.db", 0
    real = SqliteStore.history

    async def history(store: SqliteStore, run: RunId, after: int = 0, limit: int | None = None) -> list[Event]:
        nonlocal read
        read += 1
        return await real(store, run, after, limit)

    run = await an_unreadable_run(place)
    monkeypatch.setattr(loading, "UNREADABLE_S", 600.0)
    async with Engine(place) as engine:
        monkeypatch.setattr(SqliteStore, "history", history)
        for _ in range(3):
            with pytest.raises(CommandRefused, match=f"{run} cannot be read.*treadle fsck"):
                await engine.complete_gate(run, TokenId(1), {"ok": True})
        assert read == 1, "it was read for everybody who asked"
        remembered = engine._core.coordinator._loading._unreadable
        remembered.update({unreadable: (0.0, why) for unreadable, (_until, why) in remembered.items()})
        with pytest.raises(CommandRefused, match="cannot be read"):
            await engine.complete_gate(run, TokenId(1), {"ok": True})
        assert read == 2, "it was not looked at again: somebody may have mended it"
