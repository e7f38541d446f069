"""Redirects: few, each through the gate, and no credentials to strangers."""

from __future__ import annotations

from typing import Any

import pytest
from aiohttp import web

from tests.outside.peers import FakeResolver, Handler, Peer, answering, ask, error, exchange, output, peer, run
from treadle.actions.net import NetPolicy


def redirecting(status: int, location: str) -> Handler:
    async def handler(request: web.BaseRequest) -> web.Response:
        if request.path == "/end":
            return web.Response(text="arrived")
        return web.Response(status=status, headers={"Location": location})

    return handler


@pytest.mark.parametrize(
    ("status", "method", "then"),
    [
        (301, "GET", "GET"),
        (301, "POST", "GET"),
        (302, "POST", "GET"),
        (302, "PUT", "PUT"),
        (303, "PUT", "GET"),
        (307, "POST", "POST"),
        (308, "PUT", "PUT"),
    ],
)
def test_a_redirect_is_followed_by_the_method_its_status_asks_for(status: int, method: str, then: str) -> None:
    reply, server = exchange(redirecting(status, "/end"), {"url": "/start", "method": method, "body": {"a": 1}})
    assert output(reply)["body"] == "arrived"
    assert [seen.method for seen in server.seen] == [method, then]
    assert server.seen[1].body == (b"" if then == "GET" and method != "GET" else b'{"a":1}')


def test_the_sixth_redirect_is_a_failure() -> None:
    reply, server = exchange(redirecting(302, "/again"), {"url": "/start"})
    assert "more than 5 redirects" in error(reply).message
    assert len(server.seen) == 6


@pytest.mark.parametrize(
    "location",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://[::ffff:169.254.169.254]/",
        "//10.0.0.1/",
        "http://2130706433/",
        "file:///etc/passwd",
        "http://user@example.com/",
        "http://inside.example/",
        "http://[",
    ],
)
def test_a_redirect_goes_through_the_gate(location: str) -> None:
    resolver = FakeResolver({"inside.example": [["10.0.0.1"]]})
    reply, server = exchange(redirecting(302, location), {"url": "/start"}, resolver=resolver)
    assert not error(reply).retryable
    assert len(server.seen) == 1


SENSITIVE = {"Authorization": "Bearer x", "Cookie": "a=b", "X-Key": {"secret": "KEY"}, "X-Plain": "kept"}


def abroad(status: int, **config: Any) -> tuple[Any, Peer, Peer]:
    """A peer that sends the caller on to another origin."""

    async def whole() -> tuple[Any, Peer, Peer]:
        async with peer(answering(text="arrived")) as second:
            async with peer(redirecting(status, f"{second.url}/other")) as first:
                full = {"url": f"{first.url}/start", "headers": SENSITIVE, **config}
                reply = await ask(full, secrets={"KEY": "s3cret-value"})
            return reply, first, second

    return run(whole())


def test_credentials_stay_with_the_origin_they_were_meant_for() -> None:
    reply, first, second = abroad(307)
    assert output(reply)["body"] == "arrived"
    assert first.seen[0].headers.items() >= {"authorization": "Bearer x", "x-key": "s3cret-value"}.items()
    received = second.seen[0].headers
    assert received["x-plain"] == "kept"
    assert not {"authorization", "cookie", "x-key"} & received.keys()


def test_a_body_with_a_secret_does_not_follow_to_another_origin() -> None:
    reply, _, second = abroad(307, method="POST", body={"token": {"secret": "KEY"}})
    assert "the body holds a secret: not followed" in error(reply).message
    assert second.seen == []


def test_credentials_go_along_on_the_same_origin() -> None:
    config = {"url": "/start", "headers": {"Authorization": "Bearer x"}}
    _, server = exchange(redirecting(302, "/end"), config)
    assert server.seen[1].headers["authorization"] == "Bearer x"


def test_the_operator_sets_how_many_redirects_there_may_be() -> None:
    policy = NetPolicy(allow=("127.0.0.1:*",), redirects_max=0)
    reply, server = exchange(redirecting(302, "/end"), {"url": "/start"}, policy=policy)
    assert "more than 0 redirects" in error(reply).message
    assert len(server.seen) == 1
