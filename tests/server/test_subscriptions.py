"""Subscriptions over HTTP: events go out signed, in order per run; what was missed is replayed; changes need no
restart."""

from __future__ import annotations

import time
from typing import Any

from standardwebhooks import Webhook

from tests.server.client import Connected, Worker

FLOW = """
workflow: {name}
nodes:
  tell: {{action: {{kind: emit, type: told, data: {{n: 1}}}}}}
"""
SECRET = "whsec_" + "bmV3" * 8


def put(service: Connected, name: str, **fields: Any) -> Any:
    reply = service.as_("author").api("PUT", f"/subscriptions/{name}", fields)
    assert reply.status in (200, 201), reply
    return reply.json


def started(service: Connected, workflow: str) -> str:
    run: str = service.as_("operator").post("/runs?wait_ms=20000", {"workflow": workflow})["run"]
    return run


def test_events_of_a_run_arrive_signed_and_in_order(connected: Connected) -> None:
    with Worker(200) as endpoint:
        connected.deploy(FLOW.format(name="subscribed"))
        put(
            connected, "ordered", url=endpoint.url, types=["run.*", "custom.*"], workflows=["subscribed"], secret=SECRET
        )
        runs = [started(connected, "subscribed") for _ in range(3)]
        messages = [endpoint.next() for _ in range(9)]
        for message in messages:
            headers = {name.lower(): value for name, value in message["headers"].items()}
            assert Webhook(SECRET).verify(message["raw"], headers)["type"] == message["type"]
        for run in runs:
            of_run = [one for one in messages if one["data"]["run_id"] == run]
            assert [one["type"] for one in of_run] == ["run.started", "custom.told", "run.completed"]
            assert [one["data"]["seq"] for one in of_run] == sorted(one["data"]["seq"] for one in of_run)
        shown = connected.as_("author").get("/subscriptions/ordered")
        assert (shown["has_secret"], "secret" in shown, shown["url"]) == (True, False, endpoint.url)
        connected.as_("author").api("DELETE", "/subscriptions/ordered")
        started(connected, "subscribed")
        assert endpoint.told.empty(), "nothing more after it was removed"
        assert connected.as_("author").api("GET", "/subscriptions/ordered").status == 404


def test_what_happened_is_replayed_and_the_log_says_what_was_sent(connected: Connected) -> None:
    with Worker(200) as endpoint:
        connected.deploy(FLOW.format(name="replayed-events"))
        before = started(connected, "replayed-events")
        put(connected, "again", url=endpoint.url, types=["run.completed"], workflows=["replayed-events"])
        run = started(connected, "replayed-events")
        message = endpoint.next()
        assert message["data"]["run_id"] == run
        author = connected.as_("author")
        assert author.api("POST", "/subscriptions/again/replay", {"from": message["position"]}).status == 200
        assert endpoint.next()["data"]["run_id"] == run
        assert (
            author.api("POST", "/subscriptions/again/replay", {"from": int(time.time() * 1000) - 3_600_000}).status
            == 200
        )
        assert {endpoint.next()["data"]["run_id"], endpoint.next()["data"]["run_id"]} == {before, run}
        wrong = author.api("POST", "/subscriptions/again/replay", {"from": "yesterday"})
        assert (wrong.status, wrong.json["code"]) == (400, "BAD_REQUEST")
        assert {one["result"] for one in author.get("/subscriptions/again/deliveries")["items"]} == {"sent"}
        author.api("DELETE", "/subscriptions/again")


def test_an_endpoint_that_fails_is_tried_again_and_said_so(connected_sqlite: Connected) -> None:
    with Worker(503) as endpoint:
        connected_sqlite.deploy(FLOW.format(name="failing-events"))
        put(connected_sqlite, "failing", url=endpoint.url, types=["run.started"], workflows=["failing-events"])
        started(connected_sqlite, "failing-events")
        first, second = endpoint.next(), endpoint.next()
        assert first["raw"] == second["raw"]
        shown = connected_sqlite.as_("author").get("/subscriptions/failing")
        assert "503" in shown["error"] and shown["failing_since"]
        connected_sqlite.as_("author").api("DELETE", "/subscriptions/failing")


def test_addresses_inside_and_secrets_that_cannot_sign_are_refused(served_sqlite: Any) -> None:
    author = served_sqlite.as_("author")
    for url in (
        "http://127.0.0.1:1/",
        "http://[::1]/",
        "http://169.254.169.254/",
        "http://2130706433/",
        "file:///etc/passwd",
    ):
        reply = author.api("PUT", "/subscriptions/inside", {"url": url, "types": ["*"]})
        assert (reply.status, reply.json["code"]) == (400, "BAD_REQUEST"), url
    body = {"url": "https://x.example/", "types": ["*"], "secret": "short"}
    assert author.api("PUT", "/subscriptions/inside", body).status == 400
    assert author.api("PUT", "/subscriptions/inside", {"url": "https://x.example/", "types": []}).status == 400
    assert "inside" not in [row["name"] for row in author.get("/subscriptions")["items"]]
    assert served_sqlite.as_("operator").api("GET", "/subscriptions").status == 403


def test_events_survive_a_kill_of_the_service(tmp_path: Any) -> None:
    service = Connected(str(tmp_path / "treadle.db"), tmp_path)
    with Worker(503) as dead:
        with service:
            service.deploy(FLOW.format(name="w"))
            put(service, "s", url=dead.url, types=["run.*"], secret=SECRET)
            run = started(service, "w")
            assert dead.next()["type"] == "run.started"
        with service, Worker(200) as alive:
            put(service, "s", url=alive.url, types=["run.*"])
            assert [alive.next()["type"] for _ in range(2)] == ["run.started", "run.completed"]
            assert run
