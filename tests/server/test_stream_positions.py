"""Positions that nobody can continue behind, and waits that cannot end well (5.3): told at once, never waited for."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

from tests.server.client import Served
from tests.server.test_streams import answered, begun, deployed, follow


def test_a_reader_that_is_ahead_of_a_restored_file_is_told_so(tmp_path: Path) -> None:
    served = Served(str(tmp_path / "t.db"), tmp_path)
    with served:
        run = begun(served, deployed(served, "restored"))
        served.stop()
        shutil.copy(tmp_path / "t.db", tmp_path / "backup.db")
        served.start()
        answered(served, run)
        with follow(served, f"/runs/{run}/stream") as one, follow(served, "/stream?after=0&type=gate.completed") as all:
            one.until("gate.completed")
            all.until("gate.completed")
            seen = {f"/runs/{run}/stream": one.last_id, "/stream": all.last_id}
        served.stop()
        for left in tmp_path.glob("t.db-*"):
            left.unlink()
        shutil.copy(tmp_path / "backup.db", tmp_path / "t.db")
        served.start()
        for path, position in seen.items():
            assert position is not None
            with follow(served, path, last_event_id=position) as stream:
                refused = json.loads(stream.response.read())
                assert (stream.status, refused["code"]) == (410, "GONE"), refused
                assert "restored" in refused["detail"]


def test_the_last_position_of_a_run_can_be_continued_and_the_one_behind_it_cannot(served: Served) -> None:
    run = begun(served, deployed(served, "stream-ahead"))
    last = served.as_("viewer").get(f"/runs/{run}")["seq"]
    with follow(served, f"/runs/{run}/stream?after={last}") as stream:
        answered(served, run)
        assert stream.until("gate.completed")[0].data["seq"] == last + 1
    with follow(served, f"/runs/{run}/stream?after={10 * last}") as stream:
        assert stream.status == 410


def test_a_filter_for_what_is_no_address_of_an_entity_is_refused(served: Served) -> None:
    for path in ("/stream?entity=order", "/stream?entity=", "/stream?entity=%2F42", "/runs?entity=order"):
        refused = served.as_("viewer").api("GET", path)
        assert (refused.status, refused.json["code"]) == (400, "BAD_REQUEST"), path
        assert "TYPE/ID" in refused.json["detail"]


def test_nothing_is_waited_for_that_lies_behind_the_last_event_wanted(served: Served) -> None:
    run = begun(served, deployed(served, "history-until"))
    last = served.as_("viewer").get(f"/runs/{run}")["seq"]
    began = time.monotonic()
    for filters in (f"after={last}&until={last}", "after=3&until=3", "until=2&type=run.completed"):
        found = served.as_("viewer").get(f"/runs/{run}/history?{filters}&wait_ms=20000")
        assert found == {"items": [], "next": None}, filters
    assert time.monotonic() - began < 10
