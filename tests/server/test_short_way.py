"""Requests that arrive whole take a short way through the service: those that do not are answered alike, in order."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from tests.server.lines import Line, Serving, played
from treadle.server.request import RequestHeaders

BODY = json.dumps({"workflow": "w", "nodes": {"a": {}}, "transitions": []}).encode()


def asked(service: Serving, body: bytes = BODY, *more: str) -> bytes:
    length = f"Content-Length: {len(body)}"
    return service.head("POST", "/api/v1/workflows/validate", "Content-Type: application/json", length, *more)


async def valid(line: Line) -> Any:
    answer = await line.answer()
    assert answer.status == 200, answer
    return json.loads(answer.body)


def test_a_body_that_comes_in_pieces_is_read_as_one_that_comes_whole(tmp_path: Path) -> None:
    async def play(service: Serving) -> None:
        line = await service.line()
        await line.send(asked(service) + BODY)
        whole = await valid(line)
        await line.send(asked(service))
        heard = asyncio.ensure_future(valid(line))
        for place in range(0, len(BODY), 20):
            await asyncio.wait({heard}, timeout=0.005)
            await line.send(BODY[place : place + 20])
        assert await heard == whole

    played(tmp_path, play)


def test_requests_that_are_sent_together_are_answered_in_order(tmp_path: Path) -> None:
    async def play(service: Serving) -> None:
        line = await service.line()
        ids = [f"request-{number}" for number in range(5)]
        await line.send(b"".join(asked(service, BODY, f"X-Request-Id: {id}") + BODY for id in ids))
        assert [(await line.answer()).headers["x-request-id"] for _ in ids] == ids

    played(tmp_path, play)


def test_a_sender_that_waits_to_be_asked_for_its_body_is_asked(tmp_path: Path) -> None:
    async def play(service: Serving) -> None:
        line = await service.line()
        await line.send(asked(service, BODY, "Expect: 100-continue"))
        assert (await line.answer()).status == 100
        await line.send(BODY)
        await valid(line)

    played(tmp_path, play)


def test_an_answer_has_the_headers_of_every_answer_once(tmp_path: Path) -> None:
    async def play(service: Serving) -> None:
        line = await service.line()
        await line.send(service.head("GET", "/api/v1/me", "Connection: close"))
        head = (await line.closed()).partition(b"\r\n\r\n")[0].decode().lower().split("\r\n")
        names = [one.partition(":")[0] for one in head[1:]]
        assert len(names) == len(set(names)), names
        assert {"date", "content-length", "content-security-policy", "x-content-type-options"} <= set(names)
        assert "connection: close" in head

    played(tmp_path, play)


def test_of_a_header_that_is_there_twice_the_first_counts_and_all_are_listed() -> None:
    headers = RequestHeaders([(b"a", b"1"), (b"b", b"2"), (b"a", b"3")])
    assert (headers["a"], headers.get("b"), "c" in headers) == ("1", "2", False)
    assert headers.getlist("a") == ["1", "3"]
    assert list(headers.items()) == [("a", "1"), ("b", "2"), ("a", "3")]
