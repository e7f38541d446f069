"""Links: a gate answered without an account, on a page that needs no script (5.5)."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import pytest

from tests.server.client import Caller, Reply, Served
from tests.server.test_gates import asking

FORM = {
    "type": "object",
    "required": ["approve", "share"],
    "properties": {
        "note": {"type": "string", "x-widget": "textarea", "x-help": "The customer reads this", "x-order": 3},
        "share": {"type": "integer", "minimum": 1, "maximum": 100, "default": 100, "x-order": 2},
        "approve": {"type": "boolean", "title": "Approve?", "x-order": 1},
        "tags": {"type": "array", "items": {"enum": ["late", "broken"]}},
        "proof": {"type": "string", "x-widget": "file"},
    },
}
BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
POSTED = {"Content-Type": "application/x-www-form-urlencoded"}


def link(served: Served, run: str, visit: int, **wanted: Any) -> str:
    made = served.as_("admin").post(f"/gates/{run}/{visit}/link", {"expires_ms": 60_000, **wanted}, status=201)
    return str(urlsplit(made["url"]).path)


def opened(served: Served, path: str) -> Reply:
    return Caller(served.url, None)("GET", path, headers=BROWSER)


def posted(served: Served, path: str, **entries: Any) -> Reply:
    return Caller(served.url, None)("POST", path, urlencode(entries, doseq=True).encode(), {**POSTED, **BROWSER})


class Names(HTMLParser):
    """The names of a page's fields in order, its elements and attributes."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.fields: list[str] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.feed(page.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        given = dict(attrs)
        if tag in ("input", "textarea", "select") and (given.get("name") or "") not in self.fields:
            self.fields.append(given.get("name") or "")


def test_a_link_answers_once_as_the_person_it_is_for(served: Served) -> None:
    run, [visit] = asking(served, form=FORM, description="# Hello\n\n**Please** decide", assign=["mira"])
    path = link(served, run, visit, **{"for": "mira"})
    page = opened(served, path)
    assert (page.status, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "script" not in Names(page.raw).tags
    assert b"<strong>Please</strong>" in page.raw
    assert b"asks mira" in page.raw
    assert Names(page.raw).fields == ["approve", "share", "note", "tags", "proof", "_comment"]
    assert opened(served, path).status == 200, "opening it does not use it up"
    done = posted(served, path, approve="true", share="50", tags=["late", "broken"], note="", _comment="ok")
    assert done.status == 200
    assert b"Thank you" in done.raw
    gate = served.as_("viewer").get(f"/gates/{run}/{visit}")
    assert gate["answer"]["data"] == {"approve": True, "share": 50, "tags": ["late", "broken"]}
    assert (gate["answer"]["by"], gate["answer"]["comment"]) == ("mira", "ok")
    for again in (opened(served, path), posted(served, path, approve="true", share="50")):
        assert (again.status, b"has been used" in again.raw) == (410, True)
    (entry,) = served.as_("admin").get(f"/audit?about={run}/{visit}")["items"]
    assert (entry["action"], entry["user"], entry["outcome"]) == ("POST /answer/{token}", "mira", "done")
    assert entry["path"] == "/answer/***"


def test_every_wrong_entry_is_told_at_its_field_and_kept(served: Served) -> None:
    run, [visit] = asking(served, form=FORM)
    path = link(served, run, visit)
    wrong = posted(served, path, share="1000", note="my words", tags=["late"])
    assert wrong.status == 422
    text = wrong.raw.decode()
    assert "2 entries are not right yet" in text
    assert 'href="#f-approve"' in text and 'href="#f-share"' in text
    assert "my words" in text and 'value="1000"' in text
    assert re.search(r'value="late" checked', text)
    assert "Please enter a whole number." in posted(served, path, approve="true", share="many").raw.decode()
    assert posted(served, path, approve="false", share="1").status == 200
    assert served.as_("viewer").get(f"/runs/{run}")["status"] == "completed"


def test_a_link_expires_and_an_unknown_one_is_not_found(served: Served) -> None:
    run, [visit] = asking(served)
    path = link(served, run, visit, expires_ms=1)
    while opened(served, path).status == 200:
        pass  # a millisecond has hardly passed
    for reply in (opened(served, path), posted(served, path)):
        assert (reply.status, b"has expired" in reply.raw) == (410, True)
    for unknown in ("/answer/x", "/answer/" + "A" * 43, path[:-1], path + "A"):
        assert opened(served, unknown).status == posted(served, unknown).status == 404
    assert served.as_("viewer").get(f"/gates/{run}/{visit}")["status"] == "open"


def test_a_link_to_a_gate_that_somebody_else_has_answered_says_so(served: Served) -> None:
    run, [visit] = asking(served)
    path = link(served, run, visit)
    served.as_("approver").post(f"/gates/{run}/{visit}/answer", {"data": {"choice": "refund"}})
    for reply in (opened(served, path), posted(served, path)):
        assert reply.status == 410
        assert b"Already answered by approver" in reply.raw
        assert b"refund" in reply.raw
    refused = served.as_("approver").post(f"/gates/{run}/{visit}/link", {"expires_ms": 1000}, status=409)
    assert refused["code"] == "INVALID_STATE"


def test_a_claimed_gate_stays_its_holders(served: Served) -> None:
    run, [visit] = asking(served)
    path = link(served, run, visit, **{"for": "mira"})
    served.as_("approver").post(f"/gates/{run}/{visit}/claim")
    reply = posted(served, path, note="kept")
    assert (reply.status, b"approver has taken this on" in reply.raw) == (409, True)
    served.as_("approver").post(f"/gates/{run}/{visit}/release")
    assert posted(served, path).status == 200, "the refusal has not used it up"


def test_a_link_without_a_person_answers_as_one_of_those_asked(served: Served) -> None:
    quorum = {"of": 2, "accept": 2}
    run, [visit] = asking(served, assign={"users": ["ann", "bob"], "quorum": quorum})
    first, second = link(served, run, visit), link(served, run, visit)
    assert b'<option value="bob">' in opened(served, first).raw
    assert posted(served, first, _as="bob").status == 200
    assert b"asks ann" in opened(served, second).raw, "only ann is left"
    assert posted(served, second, _as="bob").status == 200
    answers = served.as_("viewer").get(f"/gates/{run}/{visit}")["answers"]
    assert [answer["by"] for answer in answers] == ["bob", "ann"]


def test_who_is_not_asked_makes_links_only_for_people_the_gate_names(served: Served) -> None:
    run, [visit] = asking(served, assign={"users": ["ann"], "groups": ["finance"]})
    approver = served.as_("approver")
    for wanted in ({}, {"for": "eve"}):
        assert approver.post(f"/gates/{run}/{visit}/link", {"expires_ms": 1000, **wanted}, status=403)["code"]
    approver.post(f"/gates/{run}/{visit}/link", {"expires_ms": 1000, "for": "ann"}, status=201)
    assert served.as_("viewer").post(f"/gates/{run}/{visit}/link", {"expires_ms": 1000}, status=403)
    assert approver.post(f"/gates/{run}/{visit}/link", {}, status=400)["code"] == "BAD_REQUEST"


def test_of_many_answers_by_one_link_at_once_one_counts(served: Served) -> None:
    people = [f"p{number}" for number in range(8)]
    run, [visit] = asking(served, assign={"users": people, "quorum": {"of": 8, "accept": 8}})
    path = link(served, run, visit)
    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda name: posted(served, path, _as=name).status, people))
    assert sorted(statuses) == [200] + [410] * 7
    assert served.as_("viewer").get(f"/gates/{run}/{visit}")["answered"] == 1


def test_a_file_is_uploaded_without_script(served: Served) -> None:
    run, [visit] = asking(served, form=FORM)
    path = link(served, run, visit)
    boundary = "b0undary"
    parts = [("approve", None, b"true"), ("share", None, b"7"), ("proof", "../a b<.png", b"\x89PNG\r\n\r\n--b0und")]
    body = b""
    for name, filename, content in parts:
        disposition = f'form-data; name="{name}"' + (f'; filename="{filename}"' if filename else "")
        kind = "Content-Type: image/png\r\n" if filename else ""
        body += f"--{boundary}\r\nContent-Disposition: {disposition}\r\n{kind}\r\n".encode() + content + b"\r\n"
    body += f"--{boundary}--\r\n".encode()
    headers = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
    assert Caller(served.url, None)("POST", path, body, headers).status == 200
    name = served.as_("viewer").get(f"/gates/{run}/{visit}")["answer"]["data"]["proof"]
    assert name == f"visit-{visit}-proof-a b_.png"
    reply = served.as_("viewer").api("GET", f"/runs/{run}/artifacts/{quote(name)}")
    assert (reply.raw, reply.headers["content-type"]) == (b"\x89PNG\r\n\r\n--b0und", "image/png")


ATTACKS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "<svg/onload=alert(1)>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "[x](vbscript:msgbox(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](//evil.example)",
    "![x](https://evil.example/pixel.png)",
    "![x](javascript:alert(1))",
    "<a href='javascript:alert(1)'>x</a>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "</style><script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    "</textarea><script>alert(1)</script>",
    "' autofocus onfocus='alert(1)",
    "\u202egnp.exe",
    "[a]: javascript:alert(1)\n\n[a]",
    "<javascript:alert(1)>",
    "| a | b |\n|---|---|\n| <script>1</script> | `</code><script>` |",
)


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_that_a_run_or_a_person_says_becomes_more_than_text(served: Served, attack: str) -> None:
    schema = {
        "type": "object",
        "required": [attack],
        "properties": {
            attack: {"type": "string", "title": attack, "description": attack, "x-help": attack, "default": attack},
            "pick": {"enum": [attack, "other"]},
            "long": {"type": "string", "x-widget": "textarea", "default": attack + "\n"},
        },
    }
    shown = {
        attack: f"\x01{attack}\x00",
        "text": f"{attack}\n",
        "rows": [{attack: attack}, {"n": 1}],
        "deep": [[attack]],
    }
    names: dict[str, Any] = {"title": attack, "description": attack, "assign": [attack]}
    run, [visit] = asking(served, form=schema, shown=shown, **names)
    served.as_("approver").api("POST", f"/gates/{run}/{visit}/comment", {"text": attack + "\n"})
    path = link(served, run, visit)
    wrong = posted(served, path, **{attack: "", "pick": attack, "_comment": attack})
    for page in (opened(served, path), wrong):
        found = Names(page.raw)
        allowed = {"html", "head", "meta", "title", "style", "body", "header", "main", "svg", "path", "circle", "h1"}
        assert not found.tags & {"script", "iframe", "object", "embed", "img", "base", "link", "a\x01"}, page
        assert found.tags >= allowed - {"circle"}
        for name, value in found.attributes:
            assert not name.startswith("on"), (name, value)
            if name in ("href", "src", "action"):
                assert value.startswith(("#", "https://", "http://", "mailto:", "/answer/")), (name, value)
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "script-src" not in policy
        assert page.headers["referrer-policy"] == "no-referrer"
        assert page.headers["cache-control"] == "no-store"


def test_pictures_and_files_of_the_run_are_shown_and_no_others(served: Served) -> None:
    definition = """
workflow: pictured
nodes:
  draw: {action: {kind: artifact_write, name: note.txt, content: "See <b>me</b>"}, output: {state.note: $}}
  hide: {action: {kind: artifact_write, name: secret.txt, content: hidden}}
  sign: {action: {kind: human}, input: {note: $.state.note, rows: $.input.rows, total: 95.5, paid: true, none: null}}
transitions: [{from: draw, to: hide}, {from: hide, to: sign}]
"""
    served.deploy(definition)
    rows = [{"item": "Lamp", "price": 95.0}, {"item": "Bulb", "price": 3}]
    run = served.as_("operator").post("/runs", {"workflow": "pictured", "input": {"rows": rows}})["run"]
    while not (items := served.as_("viewer").get(f"/gates?run={run}")["items"]):
        pass  # two artifacts are written first
    path = link(served, run, items[0]["visit"])
    page = opened(served, path).raw.decode()
    assert f'href="{path}/files/note.txt"' in page
    assert "<td>Lamp</td>" in page and '<td class="number">95.0</td>' in page
    assert '<dd class="value">Yes</dd>' in page
    reply = opened(served, f"{path}/files/note.txt")
    assert (reply.status, reply.raw) == (200, b"See <b>me</b>")
    assert reply.headers["content-type"] == "text/plain; charset=utf-8"
    assert opened(served, f"{path}/files/secret.txt").status == 404
    assert opened(served, f"{path}/files/nothing").status == 404
    posted(served, path)
    assert opened(served, f"{path}/files/note.txt").status == 410


def test_a_program_answers_by_a_link_in_json_and_is_refused_with_problem_documents(served: Served) -> None:
    run, [visit] = asking(served, form=FORM, assign=["mira"])
    path, program = link(served, run, visit), Caller(served.url, None)
    wrong = program("POST", path, {"data": {"share": 1_000}})
    assert (wrong.status, wrong.json["code"]) == (422, "SCHEMA")
    assert {line["place"] for line in wrong.json["problems"]} == {"$.approve", "$.share"}
    unknown = program("POST", path, {"data": {}, "dtaa": 1})
    assert (unknown.status, unknown.json["detail"]) == (400, "unknown field: dtaa")
    done = program("POST", path, {"data": {"approve": True, "share": 5}, "comment": "by a script"})
    assert (done.status, done.json) == (200, {"data": {"approve": True, "share": 5}, "by": "mira"})
    gate = served.as_("viewer").get(f"/gates/{run}/{visit}")
    assert (gate["answer"]["by"], gate["answer"]["comment"]) == ("mira", "by a script")
    for again in (program("GET", path), program("POST", path, {"data": {"approve": True, "share": 5}})):
        assert (again.status, again.json["code"]) == (410, "GONE")
        assert again.headers["content-type"] == "application/problem+json"
    absent = program("GET", path[:-1])
    assert (absent.status, absent.json["code"]) == (404, "NOT_FOUND")
