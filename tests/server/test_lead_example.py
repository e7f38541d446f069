"""The example of a lead's journey, end to end: a form reaches the hook, a person calls, the lead is won."""

from __future__ import annotations

import hashlib
import hmac
import json
from pathlib import Path
from time import monotonic
from typing import Any

from tests.server.client import Reply, Served

EXAMPLES = Path(__file__).parents[2] / "examples"


def delivered(served: Served, hook: dict[str, Any], body: dict[str, Any]) -> Reply:
    """A signed delivery, as the website would send it."""
    raw = json.dumps(body).encode()
    proof = hmac.new(hook["secret"].encode(), raw, hashlib.sha256).hexdigest()
    sent = {"Content-Type": "application/json", "X-Signature-256": f"sha256={proof}"}
    return served.as_(None)("POST", "/hooks/leads", raw, sent)


def gate_of(served: Served, run: str) -> Any:
    deadline = monotonic() + 30
    while not (found := served.as_("viewer").get(f"/gates?run={run}")["items"]):
        assert monotonic() < deadline, "no gate was opened"
    return found[0]


def test_a_form_becomes_a_lead_and_the_lead_a_customer(served: Served) -> None:
    admin = served.as_("admin")
    text = (EXAMPLES / "lead.yaml").read_bytes()
    assert admin.api("POST", "/workflows", text, {"Content-Type": "application/yaml"}).status in (200, 201)
    hook = json.loads((EXAMPLES / "lead.hook.json").read_text())
    assert admin.api("PUT", "/hooks/leads", hook).status in (200, 201)
    form = {"form_id": "f-1", "company": "Loom/works", "employees": 120, "page": "/pricing"}
    first = delivered(served, hook, form)
    assert first.status == 202, first
    run = first.json["run"]
    assert delivered(served, hook, form).json["run"] == run, "the same form again is the same run"
    lead = admin.get("/entities/lead/Loom%2Fworks")
    assert (lead["name"], lead["attributes"]) == ("Loom/works", {"employees": 120, "page": "/pricing"})
    gate = gate_of(served, run)
    assert admin.get("/entities?workflow=lead&text=loom")["items"][0]["positions"][0]["node"] == "call"
    done = admin.api("POST", f"/gates/{run}/{gate['visit']}/answer", {"data": {"won": True}})
    assert done.status == 200, done
    moved = admin.api("GET", "/entities/lead/Loom%2Fworks")
    deadline = monotonic() + 30
    while moved.status != 308:
        assert monotonic() < deadline, moved
        moved = admin.api("GET", "/entities/lead/Loom%2Fworks")
    assert moved.headers["location"] == "/api/v1/entities/customer/Loom%2Fworks"
    (leg,) = admin.get("/entities/customer/Loom%2Fworks/journey")["items"]
    assert [move.get("node") for move in leg["moves"] if move.get("node")] == ["score", "call", "win", "win"]
    small = delivered(served, hook, {"form_id": "f-2", "company": "Loom/works", "employees": 3, "page": "/jobs"})
    second = small.json["run"]
    deadline = monotonic() + 30
    while admin.get(f"/runs/{second}")["ended"] is None:
        assert monotonic() < deadline
    customer = admin.get("/entities/customer/Loom%2Fworks")
    assert customer["attributes"] == {"employees": 3, "page": "/jobs"}
    assert customer["positions"][0]["section"] == "newsletter", "the old address led to the same entity"
    assert [one["run"] for one in admin.get("/entities/customer/Loom%2Fworks/journey")["items"]] == [second, run]
    flow = admin.get("/workflows/lead/conversion")
    assert {one["edge"]: (one["entered"], one["converted"]) for one in flow["edges"]}["call->win"] == (1, 1)
