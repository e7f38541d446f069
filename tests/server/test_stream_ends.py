"""Streams (5.3): comment lines, the end and events behind it, readers that are too slow or take nothing.

The intervals are short here (`Tuned`); that the real ones are those of 5.3 is a test of its own."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.client import Caller, Connected, Served, Worker
from tests.server.following import Follower, Message
from treadle.server.settings import ServerSettings

PING_S, SLOW_S, GIVE_UP_S, AFTER_END_S = 0.3, 0.5, 4.0, 1.5
GATES = 16
RUNS = 15
LARGE = "x" * 900_000
"""Sixteen of them are more than sockets hold for a reader that does not read."""
ASKS = {
    "workflow": "large",
    "nodes": {"a": {}, "sign": {"action": {"kind": "human"}}},
    "transitions": [{"from": "a", "to": "sign", "spawn_count": GATES}],
}
WAITS = """
workflow: {name}
nodes: {{ask: {{action: {{kind: webhook, url: "{url}"}}}}}}
"""


class Tuned(Connected):
    """A service with short intervals."""

    command = [
        *(sys.executable, "-m", "tests.server.tuned"),
        json.dumps(
            {
                "stream_ping_s": PING_S,
                "stream_slow_s": SLOW_S,
                "stream_give_up_s": GIVE_UP_S,
                "stream_after_end_s": AFTER_END_S,
            }
        ),
    ]


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tuned]:
    folder = tmp_path_factory.mktemp("tuned")
    service = Tuned(str(folder / "treadle.db"), folder)
    service.environment["PYTHONPATH"] = str(Path(__file__).parents[2])
    with service:
        yield service


@pytest.fixture(scope="module")
def large(tuned: Tuned) -> str:
    """A run with many large events."""
    tuned.as_("author").post("/workflows", ASKS)
    run: str = tuned.as_("operator").post("/runs", {"workflow": "large"})["run"]
    for gate in tuned.as_("viewer").get(f"/gates?run={run}")["items"]:
        tuned.as_("approver").post(f"/gates/{run}/{gate['visit']}/answer", {"data": {"text": LARGE}})
    return run


def follow(served: Served, path: str, *, takes_little: bool = False, **headers: str) -> Follower:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return Follower(served.url, served.keys["viewer"], path, given, 60, takes_little=takes_little)


def keep_busy(served: Served, seconds: float) -> None:
    """Asks the service other things for a while: a reader that is busy elsewhere."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        assert served.as_(None)("GET", "/health/live").status == 200


def readers(served: Served) -> float:
    text = served.as_("viewer")("GET", "/metrics").raw.decode()
    return next(float(line.split()[1]) for line in text.splitlines() if line.startswith("treadle_stream_readers "))


def wait_readers(served: Served, count: int, seconds: float = 30) -> None:
    until = time.monotonic() + seconds
    while readers(served) != count:
        assert time.monotonic() < until, f"{readers(served)} streams are open"


def test_the_intervals_of_streams_are_those_of_the_specification() -> None:
    settings = ServerSettings()
    assert (settings.stream_ping_s, settings.stream_after_end_s) == (15, 30)


@pytest.mark.parametrize("path", ["/runs/{run}/stream", "/stream", "/gates/stream"])
def test_a_comment_line_comes_again_and_again(tuned: Tuned, path: str) -> None:
    tuned.as_("author").post("/workflows", {**ASKS, "workflow": "quiet"})
    run = tuned.as_("operator").post("/runs", {"workflow": "quiet"})["run"]
    with follow(tuned, path.format(run=run)) as stream:
        began, seen = time.monotonic(), []
        for message in stream.messages():
            seen += [time.monotonic() - began] if message.event == ":" else []
            if len(seen) == 4:
                break
    assert all(at >= number * PING_S * 0.9 for number, at in enumerate(seen, 1)), "not more often"


def test_events_behind_the_end_are_delivered_then_end_again_and_the_stream_closes_later(tuned: Tuned) -> None:
    with Worker() as worker:
        tuned.deploy(WAITS.format(name="late", url=worker.url))
        run = tuned.as_("operator").post("/runs", {"workflow": "late"})["run"]
        letter = worker.next()
        with follow(tuned, f"/runs/{run}/stream") as stream:
            tuned.as_("operator").post(f"/runs/{run}/cancel")
            first = stream.until("end")
            path = letter["callback_url"].removeprefix(tuned.url)
            assert Caller(tuned.url, None)("POST", path, {"status": "completed", "output": 1}).status == 409
            late = stream.until("end")
            ended = time.monotonic()
            left = [message for message in stream.messages() if message.event != ":"]
            stayed = time.monotonic() - ended
    assert [message.event for message in late] == ["callback.refused", "end"]
    assert [first[-1].id, late[-1].id] == [None, None]
    assert late[-1].data == {"status": "cancelled", "seq": late[0].data["seq"]}
    assert [m.data["seq"] for m in [*first[:-1], late[0]]] == list(range(1, late[0].data["seq"] + 1))
    assert left == []
    assert AFTER_END_S * 0.8 <= stayed < AFTER_END_S + 10


@pytest.mark.parametrize("path", ["/runs/{run}/stream", "/stream?after=0", "/gates/stream?after=0"])
def test_a_reader_too_slow_is_told_and_cut_off_and_continues_without_a_gap(tuned: Tuned, large: str, path: str) -> None:
    """It does not read for longer than a message may wait, but not so long that the service gives it up."""
    path = path.format(run=large)
    last = last_of(tuned, large, path)
    with follow(tuned, path) as quick:
        whole = until_event(quick, large, last)
    seen: list[Message] = []
    with follow(tuned, path, takes_little=True) as slow:
        seen += slow.until("gate.opened")
        keep_busy(tuned, SLOW_S * 3)
        seen += slow.until("slow")
        assert seen[-1].id is None and seen[-1].data["reason"]
        assert [message for message in slow.messages() if message.event != ":"] == [], "it is cut off"
    assert len(seen) < len(whole)
    with follow(tuned, path, last_event_id=str(slow.last_id)) as again:
        seen += until_event(again, large, last)
    assert [message.id for message in seen if message.id] == [message.id for message in whole if message.id]
    assert [message.data for message in seen if message.id] == [message.data for message in whole if message.id]


def last_of(served: Served, run: str, path: str) -> tuple[str, int]:
    """The run and number of the last event of the run that the stream has."""
    events = served.as_("viewer").get(f"/runs/{run}/history?limit=1000")["items"]
    return run, max(event["seq"] for event in events if "/gates" not in path or event["type"].startswith("gate."))


def until_event(stream: Follower, run: str, last: tuple[str, int]) -> list[Message]:
    """Messages up to an event; the stream of one run does not name it."""
    found = []
    for message in stream.messages():
        if message.event != ":":
            found.append(message)
        if message.id is not None and (message.data.get("run", run), message.data["seq"]) == last:
            return found
    raise AssertionError(f"the stream ended before {last}")


@pytest.mark.parametrize("path", ["/runs/{run}/stream", "/stream?after=0"])
def test_a_reader_that_takes_nothing_is_cut_off(tuned: Tuned, large: str, path: str) -> None:
    wait_readers(tuned, 0)
    with follow(tuned, path.format(run=large), takes_little=True):
        wait_readers(tuned, 1)
        wait_readers(tuned, 0, GIVE_UP_S + 20)
    said = tuned.said()
    assert "its reader takes nothing" in said
    assert "Traceback" not in said


def test_readers_that_read_nothing_do_not_slow_the_engine(tuned: Tuned, large: str) -> None:
    tuned.deploy(
        "workflow: brisk\nnodes: {a: {action: {kind: set, values: {}}}, b: {}}\ntransitions: [{from: a, to: b}]"
    )

    def work() -> float:
        began = time.monotonic()
        for _ in range(RUNS):
            assert tuned.as_("operator").post("/runs?wait_ms=20000", {"workflow": "brisk"})["status"] == "completed"
        return time.monotonic() - began

    work()
    alone = min(work(), work())
    stuck = [follow(tuned, "/stream?after=0", takes_little=True) for _ in range(20)]
    try:
        beside = min(work(), work())
    finally:
        for stream in stuck:
            stream.__exit__()
    assert beside < 5 * alone + 2, f"{RUNS} runs took {alone:.2f} s alone and {beside:.2f} s beside 20 stuck readers"
