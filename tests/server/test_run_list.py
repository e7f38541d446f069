"""The list of runs over HTTP: filters, pages, and what a key with patterns sees."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from tests.server.client import Served

QUICK = """
workflow: {name}
nodes:
  only: {{action: {{kind: human}}}}
"""


@pytest.fixture
def runs(served: Served) -> list[str]:
    """Five runs: of two workflows, with tags, keys, entities and a time."""
    for name in ("listed/a", "listed/b"):
        served.deploy(QUICK.format(name=name))
    made = []
    for number in range(5):
        given = {
            "workflow": "listed/a" if number % 2 == 0 else "listed/b",
            "tags": ["every", f"t{number % 2}"],
            "entity": {"type": "order", "id": f"list-{number}"},
            "key": f"list-key-{number}",
        }
        known = served.as_("operator").api("POST", "/runs", given)
        assert known.status in (200, 201), known
        made.append(known.json["run"])
    return made


def listed(served: Served, query: str) -> list[str]:
    return [row["run"] for row in served.as_("viewer").get(f"/runs?{query}")["items"]]


def test_every_filter_holds(served: Served, runs: list[str]) -> None:
    a, b = [runs[4], runs[2], runs[0]], [runs[3], runs[1]]
    assert listed(served, "workflow=listed%2Fa&limit=3") == a
    assert listed(served, "workflow=listed%2Fa&tag=every&tag=t0") == a
    assert listed(served, "workflow=listed%2Fa&tag=every&tag=t1") == []
    assert listed(served, "workflow=listed%2Fb&status=running&status=paused") == b
    assert listed(served, "workflow=listed%2Fb&status=failed") == []
    assert listed(served, "entity=order/list-3") == [runs[3]]
    assert listed(served, "entity=person/list-3") == []
    assert listed(served, "key=list-key-1") == [runs[1]]
    assert listed(served, f"text={quote(runs[2][-12:])}") == [runs[2]]
    assert listed(served, "workflow=listed%2Fa&version=1&text=LIST-KEY-4") == [runs[4]]
    assert listed(served, "workflow=listed%2Fa&version=2") == []
    started = {row["run"]: row["started"] for row in served.as_("viewer").get("/runs?workflow=listed%2Fa")["items"]}
    assert runs[2] in listed(served, f"workflow=listed%2Fa&started_from={started[runs[2]]}")
    assert runs[2] not in listed(served, f"workflow=listed%2Fa&started_until={started[runs[2]]}")


def test_pages_hold_everything_once(served: Served, runs: list[str]) -> None:
    viewer, found, cursor = served.as_("viewer"), [], ""
    while True:
        page = viewer.get(f"/runs?tag=every&limit=2{cursor}")
        found += [row["run"] for row in page["items"]]
        if page["next"] is None:
            break
        cursor = f"&cursor={quote(page['next'])}"
    assert found == runs[::-1]
    assert viewer.api("GET", f"/runs?tag=t1&limit=2{cursor}").status == 400, "a cursor is for its filters"


def test_what_cannot_be_is_refused(served: Served) -> None:
    for query in ("status=odd", "limit=0", "limit=1001", "version=x", "entity=order", "nothing=1", "cursor=x"):
        assert served.as_("viewer").api("GET", f"/runs?{query}").status == 400, query


def test_a_key_with_patterns_sees_its_own_runs(served: Served, runs: list[str]) -> None:
    key = served.new_key("patterned", "--role", "viewer", "--workflow", "listed/b")
    rows = served.with_key(key).get("/runs?tag=every&limit=1")
    assert [row["run"] for row in rows["items"]] == [runs[3]]
    more = served.with_key(key).get(f"/runs?tag=every&limit=1&cursor={quote(rows['next'])}")
    assert [row["run"] for row in more["items"]] == [runs[1]]


LATER = """
workflow: listed/later
nodes:
  ask: {action: {kind: human}}
  check: {queue: listed, action: {kind: work, name: check}, retry: {max_attempts: 9, initial_delay_ms: 3600000}}
start: [ask, check]
"""


def test_runs_are_found_by_what_they_wait_for(served: Served, runs: list[str]) -> None:
    served.deploy(LATER)
    retrying = served.as_("operator").api("POST", "/runs", {"workflow": "listed/later"}).json["run"]
    worker = served.as_("worker")
    claimed = {"queues": ["listed"], "worker": "w", "limit": 1, "lease_ms": 60_000, "wait_ms": 20_000}
    [task] = worker.api("POST", "/tasks/claim", claimed).json["tasks"]
    failure = {"error": {"kind": "BUSY", "message": "not now", "retryable": True}}
    assert worker.api("POST", f"/tasks/{task['task']}/fail", failure).status == 200
    assert listed(served, "waiting=retry&workflow=listed%2Flater") == [retrying]
    assert set(listed(served, "waiting=human&limit=1000")) >= {*runs, retrying}
    assert listed(served, "waiting=signal&waiting=retry&workflow=listed%2Flater") == [retrying]
    assert listed(served, "waiting=signal&workflow=listed%2Flater") == []
    assert listed(served, "waiting=human&status=failed") == []
    found: list[str] = []
    page = served.as_("viewer").get("/runs?waiting=human&workflow=listed%2Fa&limit=2")
    while True:
        found += [row["run"] for row in page["items"]]
        if page["next"] is None:
            break
        page = served.as_("viewer").get(f"/runs?waiting=human&workflow=listed%2Fa&limit=2&cursor={page['next']}")
    assert found == [runs[4], runs[2], runs[0]]
    assert served.as_("viewer").api("GET", "/runs?waiting=godot").status == 400


def test_a_list_gives_values_of_inputs_along(served: Served) -> None:
    served.deploy(QUICK.format(name="listed/c"))
    given = {"order": {"id": 7, "lines": ["a"]}, "note": "x" * 500, "nothing": None}
    served.as_("operator").api("POST", "/runs", {"workflow": "listed/c", "input": given})
    asked = "&".join(
        f"field=input.{name}" for name in ("order.id", "order.lines.0", "order", "note", "nothing", "no.where")
    )
    [row] = served.as_("viewer").get(f"/runs?workflow=listed%2Fc&{asked}")["items"]
    assert row["fields"] == {
        "input.order.id": 7,
        "input.order.lines.0": "a",
        "input.order": '{"id":7,"lines":["a"]}',
        "input.note": "x" * 199 + "…",
    }
    assert served.as_("viewer").api("GET", "/runs?field=secrets.x").status == 400
    [plain] = served.as_("viewer").get("/runs?workflow=listed%2Fc")["items"]
    assert set(plain) <= set(served.as_("viewer").get(f"/runs/{plain['run']}")), "one run is its row with more fields"
