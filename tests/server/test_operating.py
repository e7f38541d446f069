"""Operating over HTTP: schedules, dead letters, nodes."""

from __future__ import annotations

import base64
from itertools import count, pairwise
from time import monotonic
from typing import Any

import pytest

from tests.server.client import Served

_numbers = count(1)
DAY = 86_400_000


@pytest.fixture
def workflow(served: Served) -> str:
    name = f"nightly-{next(_numbers)}"
    served.deploy(f"workflow: {name}\nnodes: {{tidy: {{action: {{kind: set, values: {{done: true}}}}}}}}\n")
    return name


def test_a_schedule_from_its_beginning_to_its_end(served: Served, workflow: str) -> None:
    operator, viewer = served.as_("operator"), served.as_("viewer")
    body: dict[str, Any] = {"workflow": workflow, "cron": "0 6 * * *", "timezone": "Europe/Berlin"}
    made = operator.api("PUT", f"/schedules/{workflow}", body)
    assert (made.status, made.headers["location"]) == (201, f"/api/v1/schedules/{workflow}")
    assert operator.api("PUT", f"/schedules/{workflow}", {**body, "overlap": "queue"}).status == 200
    shown = viewer.get(f"/schedules/{workflow}")
    assert (shown["overlap"], shown["last"], shown["paused"]) == ("queue", [], False)
    first = viewer.get(f"/schedules/{workflow}/upcoming?limit=2")
    rest = viewer.get(f"/schedules/{workflow}/upcoming?limit=1&cursor={first['next']}")
    dues = [each["due"] for each in first["items"] + rest["items"]]
    assert dues[0] == shown["next"]
    assert [later - due for due, later in pairwise(dues)] == [DAY, DAY]
    assert workflow in [row["name"] for row in viewer.get("/schedules?limit=1000")["items"]]
    fired = operator.api("POST", f"/schedules/{workflow}/fire", {})
    assert (fired.status, fired.headers["location"]) == (201, f"/api/v1/runs/{fired.json['run']}")
    assert [run["run"] for run in viewer.get(f"/schedules/{workflow}")["last"]] == [fired.json["run"]]
    assert operator.post(f"/schedules/{workflow}/pause")["next"] is None
    assert operator.post(f"/schedules/{workflow}/pause")["paused"]
    assert viewer.get(f"/schedules/{workflow}/upcoming")["items"] == []
    assert operator.post(f"/schedules/{workflow}/resume")["next"] == shown["next"]
    assert operator.api("DELETE", f"/schedules/{workflow}").status == 204
    assert operator.api("DELETE", f"/schedules/{workflow}").status == 404
    assert viewer.api("GET", f"/schedules/{workflow}").json["code"] == "NOT_FOUND"


def test_a_schedule_that_cannot_be_is_refused_with_every_problem(served: Served, workflow: str) -> None:
    operator = served.as_("operator")
    both = operator.api("PUT", "/schedules/odd", {"workflow": workflow, "cron": "61 * * * *", "timezone": "Mars/Hill"})
    assert (both.status, both.json["code"]) == (422, "SCHEMA")
    assert {problem["place"] for problem in both.json["problems"]} == {"cron", "timezone"}
    assert operator.api("PUT", "/schedules/odd", {"workflow": "nothing", "cron": "@daily"}).status == 404
    unknown = operator.api("PUT", "/schedules/odd", {"workflow": workflow, "crom": "@daily"})
    assert (unknown.status, unknown.json["code"]) == (400, "BAD_REQUEST")
    assert served.as_("viewer").api("PUT", "/schedules/odd", {"workflow": workflow, "cron": "@daily"}).status == 403


def test_a_key_for_other_workflows_sees_no_schedule(served: Served, workflow: str) -> None:
    served.as_("operator").api("PUT", f"/schedules/{workflow}", {"workflow": workflow, "cron": "@daily"})
    other = served.with_key(served.new_key(f"other-{workflow}", "--role", "operator", "--workflow", "other/*"))
    assert other.get("/schedules?limit=1000")["items"] == []
    for method, path in (("GET", ""), ("GET", "/upcoming"), ("POST", "/fire"), ("POST", "/pause"), ("DELETE", "")):
        reply = other.api(method, f"/schedules/{workflow}{path}")
        assert (reply.status, reply.json["code"]) == (404, "NOT_FOUND"), (method, path)
    assert other.api("PUT", f"/schedules/{workflow}", {"workflow": "other/x", "cron": "@daily"}).status == 404
    assert other.api("GET", "/nodes").status == 403


def test_the_process_that_serves_is_a_node_that_coordinates(served: Served) -> None:
    rows = served.as_("viewer").get("/nodes")["items"]
    assert any(row["coordinates"] and row["shards"] for row in rows)


def test_there_is_no_such_dead_letter(served: Served) -> None:
    operator = served.as_("operator")
    assert served.as_("viewer").get("/dead-letters")["next"] is None
    assert operator.api("DELETE", "/dead-letters/99999999").json["code"] == "NOT_FOUND"
    assert operator.api("POST", "/dead-letters/99999999/requeue", {}).json["code"] == "NOT_FOUND"
    assert operator.api("DELETE", "/dead-letters/x").json["code"] == "NOT_FOUND"


def test_a_message_that_cannot_be_delivered_is_requeued_and_given_up(own_service: Served) -> None:
    settings = '[webhooks]\nsigning_secret = "S"\nsubscriptions = [{url = "http://127.0.0.1:9/"}]\n'
    (own_service.folder / "treadle.toml").write_text(settings)
    own_service.environment["TREADLE_SECRET_S"] = "whsec_" + base64.b64encode(bytes(24)).decode()
    with own_service as served:
        served.deploy("workflow: emitting\nnodes:\n  say: {action: {kind: emit, type: hello}}\n")
        operator = served.as_("operator")
        run = operator.post("/runs?wait_ms=20000", {"workflow": "emitting"})["run"]
        letter = until_letter(served)
        assert letter["run"] == run and letter["reason"] and letter["what"]
        other = served.with_key(served.new_key("other", "--role", "operator", "--workflow", "other/*"))
        assert other.get("/dead-letters")["items"] == []
        assert other.api("DELETE", f"/dead-letters/{letter['id']}").status == 404
        assert operator.post(f"/dead-letters/{letter['id']}/requeue")["reason"] is None
        again = until_letter(served)
        assert operator.api("DELETE", f"/dead-letters/{again['id']}").status == 204
        assert operator.get("/dead-letters")["items"] == []
        assert operator.api("DELETE", f"/dead-letters/{again['id']}").status == 404


def until_letter(served: Served) -> Any:
    deadline = monotonic() + 60
    while monotonic() < deadline:
        for letter in served.as_("viewer").get("/dead-letters")["items"]:
            return letter
    raise AssertionError("nothing was given up")
