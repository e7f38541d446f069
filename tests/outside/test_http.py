"""`http` against a real server on loopback."""

from __future__ import annotations

import asyncio
import base64
import gzip
import socket
import zlib
from typing import Any

import pytest
from aiohttp import web

from tests.outside.peers import LOOPBACK, Answer, answering, ask, error, exchange, output, peer, run
from treadle.actions.net import NetPolicy


def test_a_get_gives_status_headers_and_parsed_json() -> None:
    reply, server = exchange(answering(text='{"n": 1}', content_type="application/json"), {"url": "/things"})
    result = output(reply)
    assert (result["status"], result["body"]) == (200, {"n": 1})
    assert result["headers"]["content-type"].startswith("application/json")
    assert (server.seen[0].method, server.seen[0].path) == ("GET", "/things")


@pytest.mark.parametrize(
    ("body", "content_type", "seen"),
    [
        (b'{"a": [1]}', "application/problem+json", {"a": [1]}),
        (b"", "application/json", None),
        (b"hello", "text/plain", "hello"),
        ("grün".encode("latin-1"), "text/plain; charset=latin-1", "grün"),
        (b"<a/>", "application/xml", "<a/>"),
        (b"\xff\x00\x01", "application/octet-stream", base64.b64encode(b"\xff\x00\x01").decode()),
        (b"\xff\xfe", "text/plain; charset=nonsense", "\ufffd\ufffd"),
    ],
)
def test_the_content_type_decides_what_a_body_becomes(body: bytes, content_type: str, seen: Any) -> None:
    reply, _ = exchange(answering(body=body, headers={"Content-Type": content_type}), {})
    assert output(reply)["body"] == seen


def test_an_answer_that_lies_about_being_json_is_a_failure() -> None:
    reply, _ = exchange(answering(text="{oops", content_type="application/json"), {})
    assert "says it is JSON and is not" in error(reply).message


def test_config_values_are_sources_and_the_input_fills_what_is_missing() -> None:
    config = {
        "method": "post",
        "url": "/orders",
        "headers": {"X-Order": "$.input.id", "X-Twice": {"cel": "input.n * 2"}, "X-None": "$.input.nothing"},
        "query": {"tag": ["a", "b c"], "deep": "$.input.deep", "n": "$.input.n"},
    }
    reply, server = exchange(answering(201), config, {"id": "o-7", "n": 4, "deep": True, "body": {"sku": "x"}})
    seen = server.seen[0]
    assert output(reply)["status"] == 201
    assert (seen.method, seen.path) == ("POST", "/orders?tag=a&tag=b+c&deep=true&n=4")
    assert (seen.headers["x-order"], seen.headers["x-twice"]) == ("o-7", "8")
    assert "x-none" not in seen.headers
    assert (seen.body, seen.headers["content-type"]) == (b'{"sku":"x"}', "application/json")


def test_a_text_body_is_sent_as_text_and_no_body_as_nothing() -> None:
    _, server = exchange(answering(), {"method": "PUT", "body": "plain"})
    assert server.seen[0].body == b"plain"
    assert server.seen[0].headers["content-type"].startswith("text/plain")
    _, server = exchange(answering(), {"method": "POST"})
    assert (server.seen[0].body, server.seen[0].headers.get("content-type")) == (b"", None)
    _, server = exchange(answering(), {"method": "POST", "body": None})
    assert server.seen[0].body == b"null"


def test_the_idempotency_key_is_the_steps_unless_the_author_sets_one() -> None:
    _, server = exchange(answering(), {})
    assert server.seen[0].headers["idempotency-key"] == "r1:7:1:only"
    assert server.seen[0].headers["treadle-attempt"] == "2", "the attempt is told beside it"
    _, server = exchange(answering(), {"headers": {"idempotency-key": "mine"}})
    assert server.seen[0].headers["idempotency-key"] == "mine"


@pytest.mark.parametrize(
    ("status", "retryable"),
    [
        (400, False),
        (401, False),
        (404, False),
        (409, False),
        (408, True),
        (425, True),
        (429, True),
        (500, True),
        (503, True),
    ],
)
def test_a_refusing_status_fails_by_class(status: int, retryable: bool) -> None:
    reply, server = exchange(answering(status, text="because"), {"url": "/x?token=abc"})
    problem = error(reply)
    assert (problem.retryable, problem.details["status"]) == (retryable, status)
    assert problem.details["body"] == "because"
    assert f"GET {server.url}/x answered {status}" in problem.message
    assert "token" not in problem.message


def test_expect_status_replaces_the_usual_success() -> None:
    assert output(exchange(answering(404), {"expect_status": [200, 404]})[0])["status"] == 404
    assert output(exchange(answering(302, headers={"Location": "/x"}), {"expect_status": 302})[0])["status"] == 302
    assert error(exchange(answering(200), {"expect_status": 204})[0]).details["status"] == 200


def test_retry_after_is_handed_on_in_milliseconds() -> None:
    reply, _ = exchange(answering(429, headers={"Retry-After": "7"}), {})
    assert error(reply).details["retry_after_ms"] == 7000
    reply, _ = exchange(answering(503, headers={"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}), {})
    assert error(reply).details["retry_after_ms"] == 0
    reply, _ = exchange(answering(503, headers={"Retry-After": "soon"}), {})
    assert "retry_after_ms" not in error(reply).details


def test_a_peer_that_does_not_listen_is_a_retryable_failure() -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{reserved.getsockname()[1]}/"
        problem = error(run(ask({"url": url})))
    assert problem.retryable
    assert "127.0.0.1 could not be reached" in problem.message


def test_a_peer_that_hangs_up_is_a_retryable_failure() -> None:
    async def hang_up(request: web.BaseRequest) -> Answer:
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    assert error(exchange(hang_up, {})[0]).retryable


def test_a_peer_that_is_silent_runs_into_the_deadline_and_is_a_retryable_failure() -> None:
    async def whole() -> Any:
        release = asyncio.Event()

        async def silent(_request: web.BaseRequest) -> Answer:
            await release.wait()
            return web.Response()

        async with peer(silent) as server:
            try:
                return await ask({"url": server.url}, timeout_ms=50)
            finally:
                release.set()

    problem = error(run(whole()))
    assert (problem.kind, problem.retryable) == ("TASK_TIMEOUT", True)


def test_an_answer_beyond_max_bytes_is_refused_whether_its_length_was_announced_or_not() -> None:
    async def endless(request: web.BaseRequest) -> Answer:
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(b"x" * 65536)
        except (ConnectionError, OSError):
            return response

    for handler in (answering(body=b"x" * 1001), endless):
        problem = error(exchange(handler, {"max_bytes": 1000})[0])
        assert (problem.kind, problem.retryable) == ("LIMIT_EXCEEDED", False)
    assert len(output(exchange(answering(body=b"x" * 1000), {"max_bytes": 1000})[0])["body"]) > 0


def test_the_operators_ceiling_is_above_what_an_author_asks_for() -> None:
    policy = NetPolicy(allow=LOOPBACK.allow, max_bytes=100)
    problem = error(exchange(answering(body=b"x" * 101), {"max_bytes": 10**9}, policy=policy)[0])
    assert problem.details["max_bytes"] == 100


@pytest.mark.parametrize(("encoding", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress)])
def test_compressed_answers_are_read_and_bombs_are_not(encoding: str, pack: Any) -> None:
    headers = {"Content-Encoding": encoding, "Content-Type": "text/plain"}
    assert output(exchange(answering(body=pack(b"hello"), headers=headers), {})[0])["body"] == "hello"
    bomb = pack(b"\0" * 20_000_000)
    assert len(bomb) < 100_000
    problem = error(exchange(answering(body=bomb, headers=headers), {"max_bytes": 100_000})[0])
    assert problem.kind == "LIMIT_EXCEEDED"


def test_a_cut_or_damaged_compressed_answer_is_a_retryable_failure() -> None:
    headers = {"Content-Encoding": "gzip"}
    for body in (gzip.compress(b"hello" * 100)[:-9], b"not gzip at all"):
        assert error(exchange(answering(body=body, headers=headers), {})[0]).retryable
    assert not error(exchange(answering(body=b"?", headers={"Content-Encoding": "br"}), {})[0]).retryable


@pytest.mark.parametrize(
    "headers",
    [
        {"X-A": "a\r\nX-B: b"},
        {"X-A\r\nX-B": "b"},
        {"X-A": "a\x00"},
        {"Host": "other"},
        {"Content-Length": "3"},
        {"X": {"a": 1}},
    ],
)
def test_headers_cannot_smuggle(headers: dict[str, Any]) -> None:
    reply, server = exchange(answering(), {"headers": headers})
    assert not error(reply).retryable
    assert server.seen == []


def test_one_client_serves_many_calls_and_closes_with_the_registry() -> None:
    from tests.unit.actions.calls import call
    from treadle.actions.outside import OutsideSettings, install_outside
    from treadle.actions.registry import Registry

    async def whole() -> None:
        async with peer(answering()) as server:
            registry = Registry()
            outside = install_outside(registry, OutsideSettings(net=LOOPBACK))
            for _ in range(3):
                assert output(await registry.kind("http").run(call({"url": server.url})))["status"] == 200  # type: ignore[misc]
            session = outside.client.session()
            assert outside.client.session() is session
            await registry.close()
            assert session.closed

    run(whole())
