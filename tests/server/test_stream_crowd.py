"""A thousand open streams of which nothing is heard: the service does no work for them but comment lines."""

from __future__ import annotations

import os
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.postgres import new_database
from tests.server.client import Served
from tests.server.following import Follower

STREAMS = int(os.environ.get("TREADLE_CROWD", "1000"))
WATCHED_S, SETTLE_S = 4.0, 90.0
SHARE_MAX = 0.08
"""Of one core. Comment lines alone take 0.04 on a busy machine. Streams that look at the store all the time take 0.10,
which is as much as they may."""
WAITS = {"workflow": "still", "nodes": {"a": {"action": {"kind": "signal", "name": "never"}}}}
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    """Seconds that a process has computed so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def share_of(pid: int) -> float:
    """The share of a core that a process takes, looked at for a while."""
    before, began = cpu_s(pid), time.monotonic()
    threading.Event().wait(WATCHED_S)
    return (cpu_s(pid) - before) / (time.monotonic() - began)


@pytest.mark.slow
@pytest.mark.parametrize(("store", "options"), [("sqlite", ()), ("postgres", ("--no-engine",))])
def test_a_thousand_idle_streams_cost_almost_nothing(tmp_path: Path, store: str, options: tuple[str, ...]) -> None:
    with ExitStack() as held:
        place = held.enter_context(new_database()) if store == "postgres" else str(tmp_path / "treadle.db")
        served = held.enter_context(Served(place, tmp_path))
        if options:  # the runs are coordinated by another process
            (tmp_path / "door").mkdir()
            door = Served(place, tmp_path / "door", *options)
            door.keys = served.keys = {**door.keys, **served.keys}
            watched = held.enter_context(door)
        else:
            watched = served
        served.as_("author").post("/workflows", WAITS)
        runs = [served.as_("operator").post("/runs", {"workflow": "still"})["run"] for _ in range(10)]
        paths = ["/stream", "/gates/stream", *(f"/runs/{run}/stream" for run in runs)]
        key = watched.keys["viewer"]
        followers = [
            held.enter_context(Follower(watched.url, key, paths[number % len(paths)], timeout_s=60))
            for number in range(STREAMS)
        ]
        assert {follower.status for follower in followers} == {200}
        assert watched.process is not None
        until = time.monotonic() + SETTLE_S
        while (share := share_of(watched.process.pid)) > SHARE_MAX:  # the past is still being sent
            assert time.monotonic() < until, f"{STREAMS} idle streams take {share:.1%} of a core"
        assert any(event.event != ":" for event in followers[2].until("token.waiting"))
