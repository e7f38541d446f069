"""5.6: every write, refusal of a right, sign-in and key is in the audit, without secrets, in a chain."""

from __future__ import annotations

import sqlite3
from uuid import uuid4

from tests.server.client import Served

FLOW = """
workflow: {name}
nodes:
  one:
    action: {{kind: set, values: {{a: input.a}}}}
"""


def _of(served: Served, **filters: str) -> list[dict[str, object]]:
    query = "&".join(f"{name}={value}" for name, value in filters.items())
    items: list[dict[str, object]] = served.as_("admin").get(f"/audit?{query}")["items"]
    return items


def test_a_write_is_written_down_once_with_who_what_from_where_and_outcome(served: Served) -> None:
    name = f"audit/{uuid4().hex[:8]}"
    served.deploy(FLOW.format(name=name))
    request = uuid4().hex
    reply = served.as_("operator").api(
        "POST", "/runs", {"workflow": name, "input": {"a": "canary-7f3"}}, {"X-Request-Id": request}
    )
    assert reply.status == 201
    (entry,) = _of(served, request_id=request)
    assert (entry["name"], entry["user"], entry["status"], entry["address"]) == (
        "operator",
        "operator",
        201,
        "127.0.0.1",
    )
    assert (entry["action"], entry["path"]) == ("POST /api/v1/runs", "/api/v1/runs")
    assert entry["outcome"] == "done"
    assert {one["outcome"] for one in _of(served, outcome="refused")} <= {"refused"}
    assert "canary-7f3" not in str(entry)


def test_what_only_asked_what_would_happen_is_written_down_as_a_dry_run(served: Served) -> None:
    name = f"audit/{uuid4().hex[:8]}"
    served.deploy(f"workflow: {name}\nnodes: {{one: {{action: {{kind: wait, ms: 600000}}}}}}")
    run = served.as_("operator").post("/runs", {"workflow": name})["run"]
    requests = [uuid4().hex for _ in range(2)]
    for request, is_dry in zip(requests, (True, False), strict=True):
        asked = {"output": {}, "dry_run": is_dry}
        reply = served.as_("operator").api("POST", f"/runs/{run}/visits/1/skip", asked, {"X-Request-Id": request})
        assert reply.status == 200, reply
    assert [_of(served, request_id=request)[0]["about"] for request in requests] == ["dry run", None]


def test_a_refused_right_is_written_down_and_a_read_is_not(served: Served) -> None:
    requests = [uuid4().hex for _ in range(3)]
    headers = [{"X-Request-Id": request} for request in requests]
    assert served.as_("viewer").api("POST", "/runs", {}, headers[0]).status == 403
    assert served.as_(None).api("GET", "/keys", headers=headers[1]).status == 401
    assert served.as_("viewer").api("GET", "/info", headers=headers[2]).status == 200
    assert [len(_of(served, request_id=request)) for request in requests] == [1, 1, 0]
    (entry,) = _of(served, request_id=requests[1])
    assert (entry["who"], entry["status"], entry["code"]) == ("", 401, "UNAUTHENTICATED")


def test_keys_made_on_the_store_and_over_http_are_written_down(served_sqlite: Served) -> None:
    served = served_sqlite
    text = served.new_key("audited", "--role", "viewer")
    made = served.as_("admin").post("/keys", {"name": "over-http", "roles": ["viewer"]})
    assert served.as_("admin").api("DELETE", f"/keys/{made['id']}").status == 204
    (by_verb,) = _of(served, about=text.split("_")[1])
    assert (by_verb["who"], by_verb["action"]) == ("store", "keys create")
    assert [entry["action"] for entry in _of(served, about=made["id"])] == [
        "DELETE /api/v1/keys/{id}",
        "POST /api/v1/keys",
    ]


def test_filters_and_cursors_walk_the_whole_log_without_repeats(served: Served) -> None:
    admin = served.as_("admin")
    for number in range(7):
        admin.api("POST", "/workflows/validate", b"{", {"Content-Type": "application/json"})
        admin.api("DELETE", f"/keys/none{number}")
    path = "/audit?action=DELETE%20/api/v1/keys/%7Bid%7D&outcome=refused&limit=3"
    seen: list[int] = []
    page = admin.get(path)
    while True:
        seen += [entry["id"] for entry in page["items"]]
        if page["next"] is None:
            break
        page = admin.get(f"{path}&cursor={page['next']}")
    assert len(seen) >= 7
    assert seen == sorted(set(seen), reverse=True)
    other = admin.api("GET", f"/audit?limit=3&cursor={admin.get('/audit?limit=1')['next']}&outcome=done")
    assert other.status == 400


def test_strangers_cannot_fill_the_log_and_what_is_left_out_is_counted(own_service: Served) -> None:
    with own_service as served:
        for _ in range(260):
            assert served.as_(None).api("GET", "/info").status == 401
        entries = _of(served, outcome="refused", limit="1000")
        assert 200 <= len(entries) < 260


def test_a_changed_or_shortened_audit_is_noticed(own_service: Served) -> None:
    with own_service as served:
        for _ in range(3):
            served.as_("viewer").api("POST", "/runs", {})
        assert served.as_("admin").get("/audit/verify")["ok"] is True
        assert served.stop() == 0
    file = sqlite3.connect(own_service.store)
    (table,) = [
        name
        for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        if {"log", "subject"} <= {column[1] for column in file.execute(f"PRAGMA table_info({name})")}
    ]
    file.execute(f"DELETE FROM {table} WHERE log = 'audit' AND id = (SELECT max(id) FROM {table} WHERE log = 'audit')")
    file.commit()
    file.close()
    with own_service as served:
        verdict = served.as_("admin").get("/audit/verify")
        assert verdict["ok"] is False
        assert verdict["problems"]


def test_entries_that_were_gathered_are_written_when_the_service_stops(own_service: Served) -> None:
    with own_service as served:
        served.as_("viewer").api("POST", "/runs", {}, {"X-Request-Id": "before-the-stop"})
        assert served.stop() == 0
        served.start()
        assert len(_of(served, request_id="before-the-stop")) == 1
