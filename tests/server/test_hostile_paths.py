"""Paths, names and headers that a sender has made up to be read as something else."""

from __future__ import annotations

import http.client
import socket
from itertools import count
from typing import Any
from urllib.parse import quote

import pytest

from tests.server.browser import Browser
from tests.server.client import Reply, Served

_numbers = count(1)

TRICKS = [
    "/api/v1/../v1/info",
    "/api/v1/%2e%2e/v1/info",
    "/api/v1/..%2fv1/info",
    "/api/v1/./info",
    "/api/v1//info",
    "//api/v1/info",
    "/api/v1/info/",
    "/api/v1/info%00",
    "/api/v1/info%00.css",
    "/api/v1/info;x=1",
    "/api/v1/info.json",
    "/api/v1/info%2f",
    "/api/v1%2finfo",
    "/api%2fv1/info",
    "/API/V1/INFO",
    "/api/v1/info%20",
    "/api/v1/info%0a",
    "/api/v1/%69%6e%66%6f",
    "/api/v1/info%252e",
    "/api/v1/info\\..\\me",
    "/api/v1/runs/%2e%2e/info",
    "/api/v1/workflows/..%2f..%2fetc%2fpasswd",
    "/api/v1/workflows/%c0%ae%c0%ae%c0%af",
    "/api/v1/workflows/%ff%fe",
    "/api/v1/workflows/%ed%a0%80",
    "/api/v1/workflows/" + "a" * 3_000,
    "/api/v1/workflows/" + "%2F" * 500,
    "/api/v1/" + "a/" * 2_000,
    "/api/v1/runs/x/artifacts/..%2f..%2ftreadle.db",
    "/answer/..%2f..%2fapi%2fv1%2finfo",
    "/answer/x/files/..%2f..%2f..%2ftreadle.db.key",
    "/hooks/..%2fapi",
    "/callbacks/..%2f..%2fapi%2fv1%2fme",
    "/p/../api/v1/info",
    "/p/%2e%2e/api/v1/info",
    "/health/live/../../api/v1/info",
    "/api/v1/info/health/live",
    "/api/v1/info/ready",
    "/metrics/../api/v1/info",
    "/sign-in/style.css/../../api/v1/info",
    "/api/v1/docs/style.css%2f..%2f..%2finfo",
]


def raw(served: Served, target: str, *headers: str, method: str = "GET") -> Reply:
    """A request whose target is sent as it is."""
    with socket.create_connection(("127.0.0.1", served.port), timeout=30) as line:
        lines = [f"{method} {target} HTTP/1.1", *(headers or (f"Host: 127.0.0.1:{served.port}",)), "Connection: close"]
        line.sendall("\r\n".join([*lines, "", ""]).encode("latin-1"))
        response = http.client.HTTPResponse(line)
        response.begin()
        return Reply(response)


@pytest.mark.parametrize("path", TRICKS)
def test_no_spelling_of_a_path_goes_round_the_door(served_sqlite: Served, path: str) -> None:
    for method in ("GET", "POST", "DELETE"):
        reply = raw(served_sqlite, path, method=method)
        assert reply.status in (400, 401, 404, 405, 410), (method, reply)
        assert b"root:" not in reply.raw and b"SQLite format" not in reply.raw
    role = served_sqlite.as_("viewer")
    reply = role("GET", path) if path.isascii() and "\\" not in path else raw(served_sqlite, path)
    assert reply.status in (400, 401, 404, 405), (path, reply)


@pytest.mark.parametrize("name", ["health", "ready", "configs", "live/health", "metrics", "..", ".", "a/../b", "docs"])
def test_a_thing_with_the_name_of_an_open_route_is_as_closed_as_any(served_sqlite: Served, name: str) -> None:
    encoded = quote(name, safe="")
    for path in (f"/workflows/{encoded}", f"/workflows/{encoded}/graph", f"/hooks/{encoded}", f"/runs/{encoded}"):
        assert served_sqlite.as_(None).api("GET", path).status == 401, path
    for path in (f"/api/v1/secrets/{encoded}", f"/api/v1/keys/{encoded}"):
        assert served_sqlite.as_("viewer")("DELETE", path).status == 403


@pytest.mark.parametrize(
    "target",
    ["http://evil.example/api/v1/me", "http://evil.example:80/", "//evil.example/api/v1/me", "*", "evil.example:443"],
)
def test_a_target_that_names_another_host_is_nobodys(served_sqlite: Served, target: str) -> None:
    reply = raw(served_sqlite, target)
    assert reply.status in (400, 401, 404), reply
    assert b"evil" not in reply.headers.get("location", "").encode()


def test_headers_of_a_proxy_that_is_not_there_name_neither_host_nor_scheme(served_sqlite: Served) -> None:
    forged = {
        "X-Forwarded-Host": "evil.example",
        "X-Forwarded-Proto": "https",
        "Forwarded": "host=evil.example;proto=https",
        "X-Original-URL": "/health/live",
        "X-Rewrite-URL": "/health/live",
        "X-HTTP-Method-Override": "DELETE",
    }
    assert served_sqlite.as_(None).api("GET", "/info", headers=forged).status == 401
    browser = Browser(served_sqlite)
    reply = browser.send_form("/sign-in", {"key": served_sqlite.keys["viewer"]}, **{"X-Forwarded-Host": "evil.example"})
    assert reply.headers["location"] == "/"
    run = asking(served_sqlite)
    body = {"expires_ms": 60_000}
    made = served_sqlite.as_("approver").api("POST", f"/gates/{run}/1/link", body, forged)
    assert made.json["url"].startswith(f"http://127.0.0.1:{served_sqlite.port}/answer/"), made


def asking(served: Served) -> str:
    name = f"hostile-{next(_numbers)}"
    served.deploy(f"workflow: {name}\nnodes: {{ask: {{action: {{kind: human, title: Ask}}}}}}\n")
    run: str = served.as_("operator").post("/runs", {"workflow": name})["run"]
    while not served.as_("viewer").get(f"/gates?run={run}")["items"]:
        pass
    return run


NAMES = [
    'a"; filename="b.html',
    "a\tb",
    "ä😀.txt",
    "../../etc/passwd",
    "a%0d%0aSet-Cookie: x=1",
    "<script>.svg",
    "x" * 200,
    "a\u202egnp.exe",
    "nul\u2028line",
]


@pytest.mark.parametrize("name", NAMES)
def test_the_name_of_an_attachment_never_breaks_a_header(served_sqlite: Served, name: str) -> None:
    run = asking(served_sqlite)
    path = f"/runs/{run}/artifacts/{quote(name, safe='')}"
    put = served_sqlite.as_("approver").api("PUT", path, b"<script>alert(1)</script>", {"Content-Type": "text/html"})
    if put.status == 201:
        assert put.headers["location"].isascii()
        got = served_sqlite.as_("viewer").api("GET", path)
        assert got.headers["content-disposition"].startswith('attachment; filename="')
        assert got.headers["content-disposition"].count('"') == 2
        assert "set-cookie" not in got.headers
        assert "sandbox" in got.headers["content-security-policy"]
        assert got.headers["x-content-type-options"] == "nosniff"
    else:
        assert put.status in (400, 404, 422), put


@pytest.mark.parametrize(
    "kind",
    [
        "text/html",
        "text/html\x0b",
        "TEXT/HTML",
        "text/plain, text/html",
        "image/svg+xml",
        "text/xml",
        "multipart/mixed",
    ],
)
def test_no_media_type_of_an_attachment_makes_it_a_page(served_sqlite: Served, kind: str) -> None:
    run = asking(served_sqlite)
    path = f"/runs/{run}/artifacts/page"
    put = served_sqlite.as_("approver").api("PUT", path, b"<script>1</script>", {"Content-Type": kind})
    if put.status != 201:
        assert put.status == 400
        return
    got = served_sqlite.as_("viewer").api("GET", path)
    assert got.headers["content-disposition"].startswith("attachment")
    assert "," not in got.headers["content-type"]


@pytest.mark.parametrize("header", ["Authorization", "Idempotency-Key", "If-None-Match", "Range", "Cookie", "Origin"])
@pytest.mark.parametrize("text", ["", " ", "\xff\xfe", "a" * 5_000, "%00%0d%0a", "Bearer", "Bearer ", "Bearer tdl_é_x"])
def test_an_odd_header_is_refused_or_ignored(served_sqlite: Served, header: str, text: str) -> None:
    sent: dict[str, Any] = {"Authorization": f"Bearer {served_sqlite.keys['admin']}", header: text.encode("latin-1")}
    for method, path in (("GET", "/api/v1/me"), ("POST", "/api/v1/signals"), ("GET", "/api/v1/runs/x/artifacts/y")):
        body = {"name": "nobody"} if method == "POST" else None
        reply = served_sqlite.as_(None)(method, path, body, sent)
        assert reply.status in (200, 400, 401, 403, 404), (method, path, reply)
