"""5.6: browser sessions: the start-up link, signing in with a key, CSRF, fixation, cookies, signing out."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.server.browser import Browser, start_up_path
from tests.server.client import Served

NEW_KEY = {"name": "by-session", "roles": ["viewer"]}


@pytest.fixture
def browser(served: Served) -> Browser:
    return Browser(served)


def test_the_start_up_link_signs_in_one_browser_once(own_service: Served) -> None:
    with own_service as served:
        path = start_up_path(served)
        assert Browser(served)("HEAD", path).status == 200
        first, second = Browser(served), Browser(served)
        reply = first("GET", path)
        assert (reply.status, reply.headers["location"]) == (303, "/")
        assert first("GET", "/api/v1/me").json["roles"] == ["admin"]
        assert b"signed in as" in first("GET", "/sign-in").raw
        assert second("GET", path).status == 401
        assert second("GET", "/api/v1/me").status == 401
        assert Browser(served)("GET", "/?token=guess").status == 401


def test_somebody_signs_in_with_a_key_by_a_plain_form_and_out_again(served: Served, browser: Browser) -> None:
    assert b'<form method="post" action="/sign-in">' in browser("GET", "/sign-in").raw
    assert browser.sign_in("tdl_aaaaaaaaaa_" + "x" * 43).status == 401
    assert browser("GET", "/api/v1/me").status == 401
    reply = browser.sign_in(served.keys["approver"])
    assert (reply.status, reply.headers["location"]) == (303, "/")
    me = browser("GET", "/api/v1/me").json
    assert (me["user"], me["roles"]) == ("approver", ["approver"])
    cookie = dict(browser.cookies)
    out = browser.send_form("/sign-out", {"csrf": browser.csrf()})
    assert out.status == 303
    assert browser.cookies == {}
    browser.cookies = cookie
    assert browser("GET", "/api/v1/me").status == 401


def test_a_page_of_the_web_application_signs_in_with_json(served: Served, browser: Browser) -> None:
    reply = browser("POST", "/api/v1/session", {"key": served.keys["operator"]}, {"Origin": browser.origin})
    assert reply.status == 201
    assert reply.json["roles"] == ["operator"]
    assert reply.json["csrf"] == browser.csrf()
    assert browser.write("DELETE", "/session").status == 204
    assert browser("GET", "/api/v1/session").status == 401
    assert browser("POST", "/api/v1/session", {"key": "x"}, {"Origin": browser.origin}).status == 401


def test_a_cookie_is_http_only_lax_and_bound_to_host_and_path(served: Served, browser: Browser) -> None:
    parts = browser.sign_in(served.keys["viewer"]).headers["set-cookie"].split("; ")
    assert {"HttpOnly", "SameSite=Lax", "Path=/"} <= set(parts)
    assert not any(part.startswith("Domain") for part in parts)
    assert parts[0].startswith(f"treadle-{served.port}=")


def test_behind_tls_a_cookie_is_secure_and_its_name_cannot_be_planted(tmp_path: Path) -> None:
    service = Served(str(tmp_path / "treadle.db"), tmp_path, "--behind-tls", "--allow-host", "flows.example")
    with service as served:
        browser = Browser(served, forwarded_host="flows.example")
        reply = browser.sign_in(served.keys["admin"])
        assert reply.status == 303, reply
        parts = reply.headers["set-cookie"].split("; ")
        assert parts[0].startswith("__Host-treadle=")
        assert "Secure" in parts
        assert browser.write("POST", "/keys", NEW_KEY).status == 201
        assert browser.write("POST", "/keys", NEW_KEY, Origin="http://flows.example").status == 403


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"X-CSRF-Token": ""}, "CSRF token"),
        ({"X-CSRF-Token": "0" * 64}, "CSRF token"),
        ({"Origin": ""}, "Origin"),
        ({"Origin": "null"}, "page"),
        ({"Origin": "https://evil.example"}, "page"),
        ({"Origin": "http://127.0.0.1"}, "page"),
        ({"Origin": "http://127.0.0.1:1"}, "page"),
        ({"Sec-Fetch-Site": "cross-site"}, "page"),
        ({"Sec-Fetch-Site": "same-site"}, "page"),
    ],
)
def test_a_write_by_a_session_that_another_page_could_have_sent_is_refused(
    served_sqlite: Served, changed: dict[str, str], says: str
) -> None:
    browser = Browser(served_sqlite)
    browser.sign_in(served_sqlite.keys["admin"])
    before = len(served_sqlite.as_("admin").get("/keys")["items"])
    reply = browser.write("POST", "/keys", NEW_KEY, **{name.replace("-", "_"): text for name, text in changed.items()})
    assert (reply.status, reply.json["code"]) == (403, "FORBIDDEN")
    assert says in reply.json["detail"]
    assert len(served_sqlite.as_("admin").get("/keys")["items"]) == before
    assert browser.write("POST", "/keys", NEW_KEY).status == 201


def test_the_token_of_one_session_does_not_serve_another(served_sqlite: Served) -> None:
    one, other = Browser(served_sqlite), Browser(served_sqlite)
    one.sign_in(served_sqlite.keys["admin"])
    other.sign_in(served_sqlite.keys["admin"])
    assert one.write("POST", "/keys", NEW_KEY, X_CSRF_Token=other.csrf()).status == 403


def test_another_page_can_neither_sign_somebody_in_nor_out(served_sqlite: Served) -> None:
    browser = Browser(served_sqlite)
    for headers in ({"Origin": "https://evil.example"}, {"Sec_Fetch_Site": "cross-site"}, {"Origin": "null"}):
        reply = browser.send_form("/sign-in", {"key": served_sqlite.keys["viewer"]}, **headers)
        assert reply.status == 403
        assert browser.cookies == {}
    browser.sign_in(served_sqlite.keys["viewer"])
    assert browser.send_form("/sign-out", {"csrf": "0" * 64}).status == 403
    assert browser.send_form("/sign-out", {"csrf": browser.csrf()}, Origin="https://evil.example").status == 403
    assert browser("GET", "/api/v1/me").status == 200


def test_a_planted_cookie_never_becomes_a_session(served_sqlite: Served) -> None:
    browser = Browser(served_sqlite)
    name = f"treadle-{served_sqlite.port}"
    planted = "p" * 43
    browser.cookies = {name: planted}
    browser.sign_in(served_sqlite.keys["viewer"])
    assert browser.cookies[name] != planted
    attacker = Browser(served_sqlite)
    attacker.cookies = {name: planted}
    assert attacker("GET", "/api/v1/me").status == 401
    first = dict(browser.cookies)
    browser.sign_in(served_sqlite.keys["operator"])
    attacker.cookies = first
    assert attacker("GET", "/api/v1/me").status == 401


def test_two_cookies_of_one_name_are_believed_neither(served_sqlite: Served) -> None:
    browser = Browser(served_sqlite)
    browser.sign_in(served_sqlite.keys["viewer"])
    ((name, value),) = browser.cookies.items()
    assert browser("GET", "/api/v1/me", headers={"Cookie": f"{name}={value}; {name}={'p' * 43}"}).status == 401


def test_a_session_ends_with_its_key_within_five_seconds(served: Served) -> None:
    made = served.as_("admin").post("/keys", {"name": "short", "roles": ["viewer"]})
    browser = Browser(served)
    browser.sign_in(made["key"])
    assert browser("GET", "/api/v1/me").status == 200
    assert served.run("keys", "revoke", made["id"]).returncode == 0
    revoked = time.monotonic()
    while browser("GET", "/api/v1/me").status == 200:
        assert time.monotonic() - revoked < 5


def test_a_session_ends_when_it_is_not_used_and_after_its_longest_time(own_service: Served) -> None:
    own_service.environment["TREADLE_SERVER_SESSION_IDLE_MS"] = "1500"
    own_service.environment["TREADLE_SERVER_SESSION_MAX_MS"] = "4000"
    with own_service as served:
        idle, busy = Browser(served), Browser(served)
        idle.sign_in(served.keys["viewer"])
        began = time.monotonic()
        busy.sign_in(served.keys["viewer"])
        while busy("GET", "/api/v1/me").status == 200:
            assert time.monotonic() - began < 20
        assert time.monotonic() - began > 3
        assert idle("GET", "/api/v1/me").status == 401


def test_a_session_survives_a_restart_and_the_store_does_not_tell_its_cookie(own_service: Served) -> None:
    with own_service as served:
        browser = Browser(served)
        browser.sign_in(served.keys["viewer"])
        port = served.port
        assert served.stop() == 0
        served.start(port)
        assert browser("GET", "/api/v1/me").status == 200
        (value,) = browser.cookies.values()
        for file in Path(served.folder).glob("treadle.db*"):
            assert value.encode() not in file.read_bytes()


@pytest.mark.parametrize("path", ["/?next=https://evil.example", "/?next=//evil.example", "/sign-in?to=//evil.example"])
def test_no_request_can_send_a_browser_elsewhere(served_sqlite: Served, path: str) -> None:
    browser = Browser(served_sqlite)
    method = "GET" if path.startswith("/?") else "POST"
    body = b"key=" + served_sqlite.keys["viewer"].encode() if method == "POST" else None
    headers = {"Content-Type": "application/x-www-form-urlencoded"} if body else {}
    reply = browser(method, path, body, headers)
    assert reply.status == 400
    assert "evil" not in reply.headers.get("location", "")


def test_the_pages_have_no_script_and_cannot_be_framed(served_sqlite: Served) -> None:
    reply = Browser(served_sqlite)("GET", "/sign-in")
    assert b"<script" not in reply.raw
    policy = reply.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert reply.headers["referrer-policy"] == "same-origin"
    assert reply.headers["cache-control"] == "no-store"


def test_a_name_with_markup_is_shown_as_text(served_sqlite: Served) -> None:
    made = served_sqlite.as_("admin").post(
        "/keys", {"name": "x", "user": "<img src=x onerror=alert(1)>", "roles": ["viewer"]}
    )
    browser = Browser(served_sqlite)
    browser.sign_in(made["key"])
    page = browser("GET", "/sign-in").raw
    assert b"<img" not in page
    assert b"&lt;img" in page
