"""The journals the judge believes."""

from __future__ import annotations

from pathlib import Path

from tests.torture.journal import Journal, read


def test_a_line_cut_off_by_a_kill_is_no_line_and_the_next_one_is(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(path)
    journal.say(said="first")
    with path.open("ab") as file:
        file.write(b'{"at":17,"sa')
    journal.say(said="second")
    with path.open("ab") as file:
        file.write(b'{"a')
    journal.close()
    assert [line["said"] for line in read(path)] == ["first", "second"]
