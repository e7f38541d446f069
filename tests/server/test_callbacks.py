"""Callbacks over HTTP, from outside: what each answer means, on both stores; tokens tell nothing."""

from __future__ import annotations

import json
import statistics
import time
from http.client import HTTPConnection
from typing import Any

import pytest

from tests.server.client import Caller, Connected, Reply, Worker

FLOW = """
workflow: {name}
nodes:
  ask:
    task:
      steps: [{{ref: call, action: {{kind: webhook, url: "{url}"}}}}]
      output_schema: {{type: object, required: [film]}}
    timeout_ms: {timeout_ms}
    retry: {{max_attempts: {attempts}}}
  after: {{action: {{kind: signal, name: go}}}}
transitions: [{{from: ask, to: after}}, {{from: ask, to: after, on: failure}}]
"""
DONE = {"status": "completed", "output": {"film": "x"}}


class Asked:
    """A run whose worker was told to work, and where it answers."""

    def __init__(self, service: Connected, worker: Worker, name: str, timeout_ms: int = 60_000, attempts: int = 1):
        self.service = service
        service.deploy(FLOW.format(name=name, url=worker.url, timeout_ms=timeout_ms, attempts=attempts))
        self.run = service.as_("operator").post("/runs", {"workflow": name})["run"]
        self.message = worker.next()
        assert self.message["run_id"] == self.run
        self.path = self.message["callback_url"].removeprefix(service.url)

    def answer(self, body: Any) -> Reply:
        return Caller(self.service.url, None)("POST", self.path, body)

    def history(self) -> list[str]:
        """Events about callbacks, read from the store itself."""
        done = self.service.run("runs", "history", self.run, "--output", "json")
        assert done.returncode == 0, done.stderr
        events = [json.loads(line) for line in done.stdout.splitlines() if line.strip().startswith("{")]
        events = events or json.loads(done.stdout)
        told = [event for event in events if event["type"].startswith("callback.")]
        return [event["type"] + (f" {event['kind']}" if "kind" in event else "") for event in told]


def test_an_answer_is_applied_once_and_the_same_again_changes_nothing(connected: Connected) -> None:
    with Worker() as worker:
        asked = Asked(connected, worker, "callback-once")
        first, again = asked.answer(DONE), asked.answer(DONE)
        assert [(reply.status, reply.json) for reply in (first, again)] == [
            (200, {"applied": True}),
            (200, {"applied": False}),
        ]
        other = asked.answer({"status": "completed", "output": {"film": "y"}})
        assert (other.status, other.json["code"]) == (409, "DUPLICATE")
        failed = asked.answer({"status": "failed", "error": {"kind": "LATE_PAPER", "message": "no"}})
        assert (failed.status, failed.json["code"]) == (409, "DUPLICATE")
        assert asked.history() == ["callback.received", "callback.refused DUPLICATE", "callback.refused DUPLICATE"]


def test_a_failed_worker_fails_the_visit_with_its_error(connected: Connected) -> None:
    with Worker() as worker:
        for number, error in enumerate([{"kind": "OUT_OF_PAPER", "message": "no"}, "no", None]):
            asked = Asked(connected, worker, f"callback-failed-{number}")
            body = {"status": "failed"} if error is None else {"status": "failed", "error": error}
            assert asked.answer(body).json == {"applied": True}
            assert asked.history() == ["callback.received"]


def test_an_output_against_the_schema_is_refused_and_counts_as_the_answer(connected: Connected) -> None:
    with Worker() as worker:
        asked = Asked(connected, worker, "callback-schema", attempts=3)
        bad = {"status": "completed", "output": {"video": 1}}
        refused = asked.answer(bad)
        assert (refused.status, refused.json["code"]) == (422, "SCHEMA")
        assert "film" in refused.json["detail"]
        assert asked.answer(bad).json == {"applied": False}
        assert asked.answer(DONE).json["code"] == "DUPLICATE"
        assert asked.history() == ["callback.received", "callback.refused SCHEMA", "callback.refused DUPLICATE"]
        assert worker.told.empty(), "the node's retry does not apply"


def test_a_cancelled_run_refuses_the_answer_and_a_late_one_is_gone(connected: Connected) -> None:
    with Worker() as worker:
        cancelled = Asked(connected, worker, "callback-cancelled")
        connected.as_("operator").post(f"/runs/{cancelled.run}/cancel")
        reply = cancelled.answer(DONE)
        assert (reply.status, reply.json["code"]) == (409, "INVALID_STATE")
        late = Asked(connected, worker, "callback-late", timeout_ms=200, attempts=2)
        second = worker.next()
        assert second["attempt"] == 2
        reply = late.answer(DONE)
        assert (reply.status, reply.json["code"]) == (410, "LATE_RESULT")
        late.path = second["callback_url"].removeprefix(connected.url)
        assert late.answer(DONE).json == {"applied": True}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "status"),
        (b"{", "no JSON"),
        (b"[]", "must be an object"),
        (b'{"status": "done"}', "status"),
        (b'{"status": "completed", "result": 1}', "unknown field: result"),
        (b'{"status": "completed", "error": "x"}', "no error"),
        (b'{"status": "failed", "output": 1}', "no output"),
        (b'{"status": "completed", "output": ' + b"[" * 100 + b"]" * 100 + b"}", "nested deeper"),
        (b'{"status": "completed", "status": "failed"}', "twice"),
        (b'{"status": "completed", "output": NaN}', "NaN"),
    ],
    ids=lambda value: value[:30].decode() if isinstance(value, bytes) else "",
)
def test_a_body_that_cannot_be_used_is_refused_and_recorded(
    connected_sqlite: Connected, body: bytes, said: str
) -> None:
    with Worker() as worker:
        asked = Asked(connected_sqlite, worker, "callback-body")
        reply = asked.answer(body)
        assert (reply.status, reply.json["code"]) == (400, "BAD_REQUEST")
        assert said in reply.json["detail"]
        assert asked.history() == ["callback.refused BAD_REQUEST"]
        assert asked.answer(DONE).json == {"applied": True}


OVER_LARGE = b'{"status": "completed", "output": "' + b"x" * 1_200_000 + b'"}'
"""A body over the limit of 1 MiB."""


def test_the_token_is_judged_before_the_body(connected_sqlite: Connected) -> None:
    stranger = Caller(connected_sqlite.url, None)
    for body in (b"{", b"", b'{"status": 7}', OVER_LARGE):
        assert stranger("POST", "/callbacks/nothing", body).status == 404
    for encoding in ("gzip", "br"):
        assert stranger("POST", "/callbacks/nothing", b"x", {"Content-Encoding": encoding}).status == 404
    assert stranger("POST", "/callbacks/nothing?x=1", DONE).status == 404


def test_a_body_that_cannot_be_read_is_refused_and_recorded(connected_sqlite: Connected) -> None:
    with Worker() as worker:
        asked = Asked(connected_sqlite, worker, "callback-unreadable")
        stranger = Caller(connected_sqlite.url, None)
        assert asked.answer(OVER_LARGE).status == 413
        assert stranger("POST", asked.path, b"x", {"Content-Encoding": "gzip"}).status == 400
        assert stranger("POST", asked.path, b"x", {"Content-Encoding": "br"}).status == 415
        assert stranger("POST", f"{asked.path}?x=1", DONE).status == 400
        assert asked.history() == ["callback.refused BAD_REQUEST"] * 4
        assert asked.answer(DONE).json == {"applied": True}


def test_every_token_that_is_good_for_nothing_gets_the_same_answer(connected: Connected) -> None:
    with Worker() as worker:
        token = Asked(connected, worker, "callback-tokens").message["callback_token"]
        claims, mac = token.split(".")
        wrong = [
            "x",
            ".",
            claims,
            f"{claims}.",
            f".{mac}",
            f"{claims}.{mac[:-1]}",
            f"{claims}.{'A' * len(mac)}",
            f"{claims[:-2]}.{mac}",
            f"{mac}.{claims}",
            token + "=",
            token + "A",
            token[1:],
            "é" * 40,
            "%00",
            "%ff%fe",
            "a" * 3_000,
            token.swapcase(),
        ]
        replies = [Caller(connected.url, None)("POST", f"/callbacks/{_encoded(text)}", DONE) for text in wrong]
        assert {reply.status for reply in replies} == {404}
        assert len({json.dumps({**reply.json, "request_id": ""}) for reply in replies}) == 1
        kept = ("content-type", "cache-control", "content-length")
        assert len({tuple(reply.headers[name] for name in kept) for reply in replies}) == 1


def _encoded(text: str) -> str:
    return text if "%" in text else "".join(f"%{byte:02X}" if byte > 127 else chr(byte) for byte in text.encode())


def test_forged_and_shortened_tokens_take_about_the_same_time(connected_sqlite: Connected) -> None:
    """Tokens of four kinds, in turns on one connection; the medians must not differ by more than the noise of a busy
    machine, which is measured by a second sample of the first kind."""
    with Worker() as worker:
        token = Asked(connected_sqlite, worker, "callback-timing").message["callback_token"]
    claims, mac = token.split(".")
    flipped = ("B" if mac[0] != "B" else "C") + mac[1:]
    kinds = {
        "forged at the front": f"{claims}.{flipped}",
        "forged at the end": token[:-2] + ("Aw" if token[-2:] != "Aw" else "BA"),
        "shortened": token[: len(claims) + 3],
        "unknown": "A" * len(token),
        "forged again": f"{claims}.{flipped}",
    }
    connection = HTTPConnection("127.0.0.1", connected_sqlite.port, timeout=30)
    body = json.dumps(DONE)
    times: dict[str, list[float]] = {name: [] for name in kinds}
    for _ in range(300):
        for name, text in kinds.items():
            began = time.perf_counter()
            connection.request("POST", f"/callbacks/{text}", body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            response.read()
            times[name].append(time.perf_counter() - began)
            assert response.status == 404
    connection.close()
    medians = {name: statistics.median(taken) for name, taken in times.items()}
    noise = abs(medians["forged at the front"] - medians["forged again"])
    spread = max(medians.values()) - min(medians.values())
    assert spread < max(0.000_15, 5 * noise), medians


def test_deploying_a_webhook_warns_only_where_no_address_is_set(
    connected_sqlite: Connected, served_sqlite: Any
) -> None:
    flow = FLOW.format(name="warned", url="https://worker.example/", timeout_ms=1, attempts=1)
    assert connected_sqlite.deploy(flow)["problems"] == []
    (problem,) = served_sqlite.deploy(flow)["problems"]
    assert (problem["code"], problem["severity"]) == ("NO_PUBLIC_URL", "warning")
