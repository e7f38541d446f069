"""5.6: names, origins, limits, proxies and headers at the door."""

from __future__ import annotations

import http.client
import json
import socket
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from tests.server.client import Served
from treadle.server.buckets import TokenBuckets


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "", "localhost.evil.example:80", "[::1].evil"]
)
def test_a_name_that_is_not_listed_is_not_answered(served_sqlite: Served, host: str) -> None:
    for path in ("/api/v1/me", "/", "/health/live"):
        assert served_sqlite.as_("admin")("GET", path, headers={"Host": host}).status == 400


def test_a_named_host_is_answered(tmp_path: Path) -> None:
    with Served(str(tmp_path / "treadle.db"), tmp_path, "--allow-host", "flows.example") as served:
        assert served.as_("viewer").api("GET", "/me", headers={"Host": "flows.example:443"}).status == 200
        assert served.as_("viewer").api("GET", "/me", headers={"Host": "FLOWS.example"}).status == 200


def test_the_address_that_it_listens_on_is_answered(tmp_path: Path) -> None:
    with Served(str(tmp_path / "treadle.db"), tmp_path, "--host", "127.0.0.2") as served:
        assert served.url.startswith("http://127.0.0.2:")
        assert served.as_("viewer").api("GET", "/me").status == 200
        assert served.as_("viewer").api("GET", "/me", headers={"Host": "127.0.0.3"}).status == 400


def test_without_named_origins_no_other_page_may_read(served_sqlite: Served) -> None:
    preflight = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}
    reply = served_sqlite.as_(None)("OPTIONS", "/api/v1/runs", headers=preflight)
    assert reply.status == 204
    assert not any(name.startswith("access-control") for name in reply.headers)
    reply = served_sqlite.as_("viewer").api("GET", "/me", headers={"Origin": "https://app.example"})
    assert not any(name.startswith("access-control") for name in reply.headers)


def test_a_named_origin_may_call_with_a_key_and_never_with_a_cookie(own_service: Served) -> None:
    own_service.environment["TREADLE_SERVER_ORIGINS"] = "https://app.example"
    with own_service as served:
        preflight = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}
        reply = served.as_(None)("OPTIONS", "/api/v1/runs", headers=preflight)
        assert reply.status == 204
        assert reply.headers["access-control-allow-origin"] == "https://app.example"
        assert "authorization" in reply.headers["access-control-allow-headers"]
        assert "access-control-allow-credentials" not in reply.headers
        answered = served.as_("viewer").api("GET", "/me", headers={"Origin": "https://app.example"})
        assert answered.headers["access-control-allow-origin"] == "https://app.example"
        assert "origin" in answered.headers["vary"]
        for origin in ("https://app.example.evil", "http://app.example", "null"):
            other = served.as_("viewer").api("GET", "/me", headers={"Origin": origin})
            assert "access-control-allow-origin" not in other.headers


def test_head_and_options_tell_what_there_is_and_change_nothing(served_sqlite: Served) -> None:
    head = served_sqlite.as_("viewer").api("HEAD", "/me")
    assert (head.status, head.raw) == (200, b"")
    assert served_sqlite.as_(None).api("HEAD", "/me").status == 401
    assert served_sqlite.as_(None).api("OPTIONS", "/me").headers["allow"] == "GET, HEAD, OPTIONS"
    assert served_sqlite.as_(None).api("OPTIONS", "/nothing").status == 404
    assert served_sqlite.as_("admin").api("TRACE", "/me").status in (400, 405)


def test_requests_are_limited_for_each_key_and_each_address(own_service: Served) -> None:
    own_service.environment |= {"TREADLE_SERVER_REQUESTS_PER_S": "1", "TREADLE_SERVER_REQUESTS_BURST": "10"}
    with own_service as served:
        replies = [served.as_("viewer").api("GET", "/me") for _ in range(14)]
        refused = [reply for reply in replies if reply.status == 429]
        assert refused
        assert refused[0].json["code"] == "RATE_LIMITED"
        assert int(refused[0].headers["retry-after"]) >= 1


def test_forwarded_addresses_count_only_behind_a_proxy(served_sqlite: Served, tmp_path: Path) -> None:
    def address(served: Served, forwarded: str) -> str:
        request = uuid4().hex
        headers = {"X-Forwarded-For": forwarded, "X-Request-Id": request}
        served.as_("viewer").api("POST", "/runs", {}, headers)
        found: str = served.as_("admin").get(f"/audit?request_id={request}")["items"][0]["address"]
        return found

    assert address(served_sqlite, "203.0.113.9") == "127.0.0.1"
    with Served(str(tmp_path / "treadle.db"), tmp_path, "--behind-tls") as behind:
        assert address(behind, "203.0.113.9") == "203.0.113.9"
        assert address(behind, "198.51.100.1, 203.0.113.9") == "203.0.113.9"
        assert address(behind, "nonsense") == "127.0.0.1"
        assert address(behind, "203.0.113.9:4711") == "203.0.113.9"


def test_named_proxies_are_skipped_from_the_nearest_on(own_service: Served) -> None:
    own_service.environment["TREADLE_SERVER_PROXIES"] = "127.0.0.0/8,10.0.0.0/8"
    with own_service as served:
        request = uuid4().hex
        headers = {"X-Forwarded-For": "198.51.100.1, 203.0.113.9, 10.0.0.7", "X-Request-Id": request}
        served.as_("viewer").api("POST", "/runs", {}, headers)
        assert served.as_("admin").get(f"/audit?request_id={request}")["items"][0]["address"] == "203.0.113.9"


def test_a_callers_text_never_becomes_a_header_or_a_line_of_the_log(served_sqlite: Served) -> None:
    before = served_sqlite.said()
    for text in ("a%0d%0aSet-Cookie:%20x=1", "a%0aERROR%20forged", "%1b[31mred"):
        reply = served_sqlite.as_("viewer").api("GET", f"/workflows/{text}")
        assert reply.status == 404
        assert "set-cookie" not in reply.headers
        assert served_sqlite.as_("admin").api("DELETE", f"/keys/{text}").status == 404
    reply = served_sqlite.as_("viewer").api("GET", "/me", headers={"X-Request-Id": "x" * 500})
    assert reply.headers["x-request-id"] != "x" * 500
    assert "forged" not in served_sqlite.said().removeprefix(before)
    entries = served_sqlite.as_("admin").get("/audit?limit=20")["items"]
    assert all(entry["path"].isprintable() for entry in entries)


def test_headers_have_a_limit(served_sqlite: Served) -> None:
    connection = http.client.HTTPConnection(urlsplit(served_sqlite.url).netloc, timeout=30)
    connection.request("GET", "/api/v1/me", headers={"X-Long": "x" * 200_000})
    try:
        assert connection.getresponse().status in (400, 413, 431)
    except (ConnectionError, http.client.HTTPException):
        pass  # the connection was closed without a word: as good
    finally:
        connection.close()
    assert served_sqlite.as_("viewer").api("GET", "/me").status == 200


def test_headers_that_never_end_are_cut_off(served_sqlite: Served) -> None:
    with socket.create_connection(("127.0.0.1", served_sqlite.port), timeout=30) as line:
        line.sendall(b"GET /api/v1/me HTTP/1.1\r\nHost: localhost\r\n")
        sent = 0
        try:
            while sent < 4_000_000:
                sent += line.send(b"X-More: " + b"x" * 1_000 + b"\r\n")
        except OSError:
            pass  # the server has closed the connection
        assert sent < 4_000_000, "the server read four million bytes of headers"
    assert served_sqlite.as_("viewer").api("GET", "/me").status == 200


def test_two_hosts_or_a_bare_newline_are_no_request(served_sqlite: Served) -> None:
    for lines in (b"Host: localhost\r\nHost: evil.example\r\n", b"Host: localhost\r\nX: a\nEvil: b\r\n"):
        with socket.create_connection(("127.0.0.1", served_sqlite.port), timeout=30) as line:
            line.sendall(b"GET /api/v1/me HTTP/1.1\r\n" + lines + b"Connection: close\r\n\r\n")
            answer = line.recv(4_096)
            assert answer == b"" or answer.split()[1] in (b"400", b"401"), answer


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_an_address_that_strangers_reach_needs_tls_in_front(own_service: Served, host: str) -> None:
    refused = own_service.run("serve", "--port", "0", "--host", host)
    assert refused.returncode in (2, 5)
    assert "--behind-tls" in refused.stderr or "cannot be listened on" in refused.stderr


def test_an_address_that_strangers_reach_needs_a_key(own_service: Served) -> None:
    for key in json.loads(own_service.run("keys", "list", "--output", "json").stdout):
        assert own_service.run("keys", "revoke", key["id"]).returncode == 0
    refused = own_service.run("serve", "--port", "0", "--host", "0.0.0.0", "--behind-tls")
    assert refused.returncode == 2
    assert "treadle keys create" in refused.stderr


def test_a_bucket_fills_again_and_forgets_names_it_need_not_keep() -> None:
    now = [0.0]
    buckets = TokenBuckets(2, 3, clock=lambda: now[0], names_max=10)
    assert [buckets.take("a") for _ in range(3)] == [0, 0, 0]
    assert buckets.take("a") == pytest.approx(0.5)
    now[0] = 0.5
    assert buckets.take("a") == 0
    for number in range(100):
        buckets.take(f"name {number}")
    assert len(buckets._kept) <= 10


def test_a_screen_of_the_canvas_takes_any_query(served_sqlite: Served) -> None:
    """The address of a screen says what is selected; the page reads it, the service does not."""
    reply = served_sqlite.as_(None)("GET", "/runs/some-run?view=history&visit=3")
    assert reply.status in (200, 404), reply.raw  # 404: the canvas is not built
    assert b"BAD_REQUEST" not in reply.raw
