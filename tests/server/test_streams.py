"""Streams (5.3): every event once, in order, continued anywhere; ends, goodbyes and readers that are too slow."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest

from tests.postgres import new_database
from tests.server.client import Caller, Served
from tests.server.following import Follower, Message
from treadle import connect

ASKS = """
workflow: {name}
nodes:
  first: {{action: {{kind: human}}}}
  second: {{action: {{kind: human}}}}
transitions:
  - {{from: first, to: second}}
"""


def deployed(served: Served, name: str) -> str:
    served.deploy(ASKS.format(name=name))
    return name


def begun(served: Served, workflow: str, **given: Any) -> str:
    run: str = served.as_("operator").post("/runs", {"workflow": workflow, **given})["run"]
    return run


def answered(served: Served, run: str) -> None:
    """Answers the gate that is open."""

    async def answer() -> None:
        async with connect(served.store) as client:
            (gate,) = await client.gates(run)
            await client.complete_gate(run, gate.token, {})

    asyncio.run(answer())


def follow(served: Served, path: str, role: str = "viewer", **headers: str) -> Follower:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return Follower(served.url, served.keys[role], path, given)


def seqs(messages: list[Message]) -> list[int]:
    return [message.data["seq"] for message in messages if message.id is not None]


def test_a_run_is_followed_from_its_past_into_its_present_to_its_end(served: Served) -> None:
    run = begun(served, deployed(served, "stream-one"))
    with follow(served, f"/runs/{run}/stream") as stream:
        assert stream.status == 200
        assert stream.response.getheader("content-type", "").startswith("text/event-stream")
        first = stream.until("gate.opened")
        assert [message.id for message in first] == [str(number) for number in range(1, len(first) + 1)]
        answered(served, run)
        more = stream.until("gate.opened")
        answered(served, run)
        rest = stream.until("end")
        assert rest[-1].id is None
        assert rest[-1].data["status"] == "completed"
        whole = [*first, *more, *rest[:-1]]
    kept = served.as_("viewer").get(f"/runs/{run}/history?limit=1000")["items"]
    assert [message.data for message in whole] == kept
    assert [message.event for message in whole] == [event["type"] for event in kept]
    for given in ({"Last-Event-ID": "3"}, {}):
        path = f"/runs/{run}/stream" + ("" if given else "?after=3")
        with Follower(served.url, served.keys["viewer"], path, given) as again:
            assert seqs(again.until("end")) == [event["seq"] for event in kept][3:]


def test_what_is_not_a_position_is_refused(served: Served) -> None:
    run = begun(served, deployed(served, "stream-odd"))
    for path in (
        f"/runs/{run}/stream?after=x",
        "/stream?after=x",
        "/stream?after=a-1-2-3-x",
        f"/runs/{run}/stream?x=1",
    ):
        with follow(served, path) as stream:
            assert stream.status == 400, path
    with follow(served, "/stream?after=otherstore-1-2-0-0") as stream:
        assert stream.status == 410
        assert json.loads(stream.response.read())["code"] == "GONE"
    with follow(served, "/runs/nobody/stream") as stream:
        assert stream.status == 404
    with follow(served, "/stream", role="worker") as stream:
        assert stream.status == 403


def test_all_runs_are_followed_in_one_order_with_filters(served: Served) -> None:
    name, other = deployed(served, "stream-all"), deployed(served, "stream-other")
    with (
        follow(served, f"/stream?workflow={name}") as stream,
        follow(served, "/gates/stream") as gates,
        follow(served, f"/stream?workflow={name}&type=run.started&type=run.completed") as few,
    ):
        runs = [begun(served, name), begun(served, other), begun(served, name)]
        for run in runs:
            answered(served, run)
            answered(served, run)
        seen: dict[str, list[int]] = {}
        positions = []
        while sum(run in seen and seen[run][-1] == -1 for run in (runs[0], runs[2])) < 2:
            for message in stream.messages():
                if message.event == ":":
                    continue
                seen.setdefault(message.data["run"], []).append(message.data["seq"])
                positions.append((message.id, message.data["run"], message.data["seq"]))
                if message.event == "run.completed":
                    seen[message.data["run"]].append(-1)
                    break
        for run in (runs[0], runs[2]):
            kept = served.as_("viewer").get(f"/runs/{run}/history?limit=1000")["items"]
            assert seen[run] == [*(event["seq"] for event in kept), -1]
        assert runs[1] not in seen
        both = [*few.until("run.completed"), *few.until("run.completed")]
        assert {message.event for message in both} == {"run.started", "run.completed"}
        opened = [gates.until("gate.opened")[-1] for _ in range(6)]
        assert sorted({message.data["run"] for message in opened}) == sorted(runs)
    middle = len(positions) // 2
    for place, (position, _, _) in ((0, positions[0]), (middle, positions[middle])):
        with follow(served, f"/stream?workflow={name}", last_event_id=str(position)) as again:
            found = []
            for message in again.messages():
                if message.event != ":":
                    found.append((message.data["run"], message.data["seq"]))
                if len(found) == len(positions) - place - 1:
                    break
            assert found == [(run, seq) for _, run, seq in positions[place + 1 :]]


def test_a_stream_goes_on_at_another_server_after_a_kill(tmp_path: Path) -> None:
    """Two servers on one database; one dies in the middle of two streams."""
    with new_database() as dsn:
        folders = [tmp_path / name for name in ("one", "two")]
        for folder in folders:
            folder.mkdir()
        one, two = (Served(dsn, folder) for folder in folders)
        two.keys = one.keys = two.keys | one.keys
        with one, two:
            name = deployed(one, "stream-moves")
            run = begun(one, name)
            with follow(one, f"/runs/{run}/stream") as stream, follow(one, "/stream?after=0") as whole:
                seen = seqs(stream.until("gate.opened"))
                every = [(m.data["run"], m.data["seq"]) for m in whole.until("gate.opened")]
                one.kill()
                last, position = stream.last_id, whole.last_id
            answered(two, run)
            answered(two, run)
            with follow(two, f"/runs/{run}/stream", last_event_id=str(last)) as stream:
                seen += seqs(stream.until("end"))
            with follow(two, "/stream", last_event_id=str(position)) as whole:
                every += [(m.data["run"], m.data["seq"]) for m in whole.until("run.completed")]
            kept = [event["seq"] for event in two.as_("viewer").get(f"/runs/{run}/history?limit=1000")["items"]]
            assert seen == kept
            assert [seq for of, seq in every if of == run] == kept


def test_a_server_that_stops_says_goodbye_and_a_revoked_key_loses_its_stream(own_service: Served) -> None:
    with own_service as served:
        run = begun(served, deployed(served, "stream-bye"))
        made = served.as_("admin").post("/keys", {"name": "brief", "roles": ["viewer"]}, status=201)
        with (
            follow(served, f"/runs/{run}/stream") as stream,
            follow(served, "/stream") as whole,
            Follower(served.url, made["key"], f"/runs/{run}/stream") as brief,
        ):
            stream.until("gate.opened")
            brief.until("gate.opened")
            assert served.as_("admin").api("DELETE", f"/keys/{made['id']}").status == 204
            left = {message.event for message in brief.messages()}  # it ends by itself
            assert not left & {"end", "drain", "slow"}
            assert served.process is not None
            served.process.terminate()
            for follower in (stream, whole):
                bye = follower.until("drain")[-1]
                assert bye.id is None and bye.data["reason"]
                assert list(follower.messages()) == []
            assert served.process.wait(30) == 0
            served._closed()


def test_history_has_filters_and_waits(served: Served) -> None:
    run = begun(served, deployed(served, "stream-history"))
    viewer = served.as_("viewer")
    whole = viewer.get(f"/runs/{run}/history")["items"]
    assert viewer.get(f"/runs/{run}/history?after=1&until=3")["items"] == whole[1:3]
    page = viewer.get(f"/runs/{run}/history?limit=2")
    assert page["items"] == whole[:2]
    assert viewer.get(f"/runs/{run}/history?limit=2&cursor={page['next']}")["items"] == whole[2:4]
    opened = viewer.get(f"/runs/{run}/history?type=gate.opened&type=nothing")["items"]
    assert [event["type"] for event in opened] == ["gate.opened"]
    visit = opened[0]["token"]
    assert all(event["token"] == visit for event in viewer.get(f"/runs/{run}/history?visit={visit}")["items"])
    assert viewer.get(f"/runs/{run}/history?after={whole[-1]['seq']}&wait_ms=50")["items"] == []
    with follow(served, f"/runs/{run}/stream?after={whole[-1]['seq']}"):
        answered(served, run)
    more = viewer.get(f"/runs/{run}/history?after={whole[-1]['seq']}&wait_ms=10000")["items"]
    assert more[0]["seq"] == whole[-1]["seq"] + 1
    assert viewer.api("GET", f"/runs/{run}/history?wait_ms=99999999").status == 400


@pytest.mark.parametrize("path", ["/stream?after=0", "/runs/{run}/stream"])
def test_a_reader_that_does_not_read_does_not_hold_others_up(served_sqlite: Served, path: str) -> None:
    served = served_sqlite
    run = begun(served, deployed(served, "stream-slow"))
    with follow(served, path.format(run=run)), follow(served, f"/runs/{run}/stream") as quick:
        quick.until("gate.opened")
        answered(served, run)
        answered(served, run)
        assert quick.until("end")[-1].data["status"] == "completed"


def test_who_loses_the_right_loses_every_stream_within_five_seconds(served: Served) -> None:
    """The key is revoked on the store, as another node would."""
    run = begun(served, deployed(served, "stream-right"))
    key = served.new_key("brief right", "--role", "viewer")
    paths = (f"/runs/{run}/stream", "/stream", "/gates/stream")
    followers = [Follower(served.url, key, path) for path in paths]

    async def revoke() -> None:
        async with connect(served.store) as client:
            await client.keys.revoke(key)

    asyncio.run(revoke())
    revoked = time.monotonic()
    for follower in followers:
        with follower:
            assert follower.status == 200
            said = {message.event for message in follower.messages()}  # it ends by itself
            assert time.monotonic() - revoked < 5
            assert not said & {"end", "drain", "slow"}
    assert Caller(served.url, key).api("GET", "/me").status == 401


def test_a_stream_goes_on_at_the_next_server_of_a_file_after_a_kill(own_service: Served) -> None:
    with own_service as served:
        run = begun(served, deployed(served, "stream-killed"))
        paths = (f"/runs/{run}/stream", "/stream?after=0", "/gates/stream?after=0")
        seen: dict[str, list[int]] = {}
        last: dict[str, str | None] = {}
        followers = {path: follow(served, path) for path in paths}
        for path, follower in followers.items():
            seen[path] = seqs(follower.until("gate.opened"))
        port = served.port
        served.kill()
        for path, follower in followers.items():
            with follower, suppress(OSError, HTTPException):
                seen[path] += seqs([message for message in follower.messages() if message.event != ":"])
            last[path] = follower.last_id
        served.start(port)
        answered(served, run)
        answered(served, run)
        for path, end in zip(paths, ("end", "run.completed", "gate.completed"), strict=True):
            with follow(served, path.partition("?")[0], last_event_id=str(last[path])) as again:
                seen[path] += seqs(again.until(end))
                if end == "gate.completed":
                    seen[path] += seqs(again.until(end))
        kept = served.as_("viewer").get(f"/runs/{run}/history?limit=1000")["items"]
        assert seen[paths[0]] == seen[paths[1]] == [event["seq"] for event in kept]
        assert seen[paths[2]] == [event["seq"] for event in kept if event["type"].startswith("gate.")]
