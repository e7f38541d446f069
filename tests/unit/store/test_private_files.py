"""The key of a store: of several processes that make it at once, all get the same one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

from treadle.store.sqlite.private import key_of, key_path


def test_one_key_is_made_however_many_ask_for_the_first(tmp_path: Path) -> None:
    for number in range(20):
        place = tmp_path / f"{number}.db"
        together = Barrier(8)

        def ask(_: int, place: Path = place, together: Barrier = together) -> str:
            together.wait()
            return key_of(place, None)

        with ThreadPoolExecutor(8) as threads:
            found = set(threads.map(ask, range(8)))
        assert found == {key_path(place).read_text()}
    assert not list(tmp_path.glob("*.part")), "nothing is left lying about"


def test_a_known_key_replaces_the_one_that_is_there(tmp_path: Path) -> None:
    place = tmp_path / "treadle.db"
    first = key_of(place, None)
    assert key_of(place, "ab" * 32) == "ab" * 32 != first
    assert key_of(place, None) == "ab" * 32
    key_path(place).write_text("")
    assert key_of(place, None) == key_path(place).read_text() != ""
