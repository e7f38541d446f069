"""Names that are markup, in every answer that a browser may show as more than text; and in lines of the log."""

from __future__ import annotations

import json
import re
from itertools import count
from xml.etree import ElementTree

import pytest

from tests.server.client import Served
from tests.server.test_links import ATTACKS, Names

_numbers = count(1)
HARMFUL = {"script", "foreignObject", "iframe", "image", "a", "use", "animate", "set", "handler", "object", "embed"}


@pytest.mark.parametrize("attack", [text for text in ATTACKS if text.isprintable()])  # others name no node
def test_a_picture_of_a_graph_is_nothing_but_a_picture(served_sqlite: Served, attack: str) -> None:
    name = f"drawn-{next(_numbers)}"
    nodes = {attack: {"action": {"kind": "human", "title": attack}}, "b": {}}
    ways = [{"from": attack, "to": "b", "condition": f"input.x == {json.dumps(attack)}"}]
    deployed = served_sqlite.as_("author").api(
        "POST", "/workflows", {"workflow": name, "description": attack, "nodes": nodes, "transitions": ways}
    )
    assert deployed.status == 201, deployed
    reply = served_sqlite.as_("viewer").api("GET", f"/workflows/{name}/graph?format=svg")
    assert reply.headers["content-type"] == "image/svg+xml"
    assert "script-src 'self'" in reply.headers["content-security-policy"]
    elements = list(ElementTree.fromstring(reply.raw).iter())
    assert any(attack[:4] in (element.text or "") for element in elements), "the name is in the picture"
    for element in elements:
        assert element.tag.rpartition("}")[2] not in HARMFUL, element.tag
        for attribute, value in element.attrib.items():
            assert not attribute.startswith("on"), attribute
            assert "script:" not in value.lower()
    shown = served_sqlite.as_("viewer").api("GET", f"/workflows/{name}/graph?format=mermaid")
    assert b"click " not in shown.raw, "a diagram that others draw has no links"


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_refusal_that_names_the_culprit_is_no_page(served_sqlite: Served, attack: str) -> None:
    viewer = served_sqlite.as_("viewer")
    encoded = "".join(f"%{byte:02X}" for byte in attack.encode())
    for path in (f"/runs/{encoded}", f"/info?{encoded}=1", f"/runs?cursor={encoded}", f"/runs?status={encoded}"):
        reply = viewer.api("GET", path, headers={"Accept": "text/html"})
        assert reply.status in (400, 404)
        assert reply.headers["content-type"] == "application/problem+json"
        assert reply.headers["x-content-type-options"] == "nosniff"
    wrong = served_sqlite.as_(None)("GET", f"/?token={encoded}")
    assert wrong.status == 401
    assert not Names(wrong.raw).tags & {"script", "iframe", "img", "object"}
    gone = served_sqlite.as_(None)("GET", f"/answer/{encoded}")
    assert gone.status == 404
    assert not Names(gone.raw).tags & {"script", "iframe", "img", "object"}


FORGED = "2026-01-01T00:00:00.000000Z [error    ] forged line"
LINES = [
    f"x\n{FORGED}",
    f"x\r\n{FORGED}",
    f"x\u2028{FORGED}",
    f"x\x1b[2K\x1b[1G{FORGED}",
    f"x\x85{FORGED}",
    f"x\x00{FORGED}",
]


@pytest.mark.parametrize("text", LINES)
def test_nothing_a_caller_or_a_run_says_becomes_a_line_of_the_log(served_sqlite: Served, text: str) -> None:
    before = len(served_sqlite.said())
    admin = served_sqlite.as_("admin")
    name = f"logged-{next(_numbers)}"
    failing = {"workflow": name, "nodes": {"a": {"action": {"kind": "assert", "conditions": [], "message": text}}}}
    webhook = {
        "workflow": f"{name}-w",
        "nodes": {"a": {"action": {"kind": "webhook", "url": f"http://x.invalid/{text}"}}},
    }
    for definition in (failing, webhook):
        if admin.api("POST", "/workflows", definition).status in (200, 201):
            run = admin.post("/runs", {"workflow": definition["workflow"], "input": {text: text}})["run"]
            admin.api("POST", f"/runs/{run}/cancel", {"reason": text})
    admin.api("POST", "/runs", {"workflow": text, "key": text})
    admin.api("POST", "/signals", {"name": text})
    admin.api("POST", "/tasks/claim", {"queues": [text], "worker": text, "limit": 1, "lease_ms": 1_000})
    admin.api("POST", "/keys", {"name": text, "roles": ["viewer"]})
    admin.api("PUT", "/schedules/logged", {"workflow": text, "cron": text})
    encoded = "".join(f"%{byte:02X}" for byte in text.encode())
    for path in (
        f"/hooks/{encoded}",
        f"/callbacks/{encoded}",
        f"/sign-in/oidc/callback?error={encoded}",
        f"/{encoded}",
    ):
        served_sqlite.as_(None)("POST" if path.startswith(("/hooks", "/callbacks")) else "GET", path, b"{}")
    odd = text.encode("ascii", "ignore").decode().replace("\n", "").replace("\r", "")
    served_sqlite.as_(None)(
        "GET", "/api/v1/me", headers={"User-Agent": odd, "X-Request-Id": odd, "X-Forwarded-For": odd}
    )
    said = served_sqlite.said()[before:]
    assert not re.search(rf"^\W*{re.escape(FORGED)}", said, re.MULTILINE), said
    assert "\x1b" not in said and "\x00" not in said
    for entry in admin.get("/audit?limit=50")["items"]:
        assert json.dumps(entry["path"]).isascii() or entry["path"].isprintable()
