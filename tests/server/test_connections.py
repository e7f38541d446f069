"""Peers that hold connections without giving anything, below HTTP and in bodies: each is told, and cut off in time.

The service runs in this process, on a real socket, with waits that are short enough to see them end.
"""

from __future__ import annotations

import asyncio
import gzip
import socket
from contextlib import suppress
from pathlib import Path
from time import monotonic

import pytest

from tests.server.lines import DEADLINE_S, Impatient, Serving, played
from treadle.server.connection import CROWD


def test_headers_that_come_too_slowly_are_told_so_and_cut_off(tmp_path: Path) -> None:
    async def play(service: Serving) -> None:
        line = await service.line()
        await line.send(b"GET /api/v1/me HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        answer = await line.answer()
        assert (answer.status, answer.problem["code"]) == (408, "BAD_REQUEST")
        assert await line.closed() == b""

    played(tmp_path, play)


def test_headers_that_come_bit_by_bit_without_end_are_cut_off(tmp_path: Path) -> None:
    async def play(service: Serving) -> None:
        line = await service.line()
        await line.send(b"GET /api/v1/me HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        ended = asyncio.ensure_future(line.closed())
        with suppress(ConnectionError):
            while not ended.done():
                await line.send(b"X")
                await asyncio.wait({ended}, timeout=0.02)
        assert b" 408 " in await ended or await ended == b""

    played(tmp_path, play)


def test_a_connection_on_which_nothing_is_asked_is_closed(tmp_path: Path) -> None:
    async def play(service: Serving) -> None:
        lines = [await service.line() for _ in range(10)]
        assert [await line.closed() for line in lines] == [b""] * 10

    played(tmp_path, play)


def test_a_second_request_that_never_ends_is_cut_off_too(tmp_path: Path) -> None:
    async def play(service: Serving) -> None:
        line = await service.line()
        await line.send(service.head("GET", "/api/v1/me"))
        assert (await line.answer()).status == 200
        await line.send(b"GET /api/v1/me HTTP/1.1\r\n")
        assert (await line.answer()).status == 408
        assert await line.closed() == b""

    played(tmp_path, play)


def test_a_body_that_comes_too_slowly_is_refused_and_its_connection_ends(tmp_path: Path) -> None:
    async def play(service: Serving) -> None:
        line = await service.line()
        await line.send(service.head("POST", "/api/v1/runs", "Content-Type: application/json", "Content-Length: 1000"))
        await line.send(b'{"workflow"')
        answer = await line.answer()
        assert (answer.status, answer.problem["code"]) == (408, "BAD_REQUEST")
        assert await line.closed() == b""

    played(tmp_path, play)


def test_a_refused_sender_that_goes_on_without_end_is_cut_off(tmp_path: Path) -> None:
    async def play(service: Serving) -> None:
        line = await service.line()
        head = ["POST /api/v1/runs HTTP/1.1", "Host: 127.0.0.1", "Content-Length: 100000000", "", ""]
        await line.send("\r\n".join(head).encode())
        assert (await line.answer()).status == 401, "who asks is judged before the body is read"
        began = monotonic()
        with suppress(ConnectionError):
            while monotonic() - began < DEADLINE_S:
                await line.send(b"x" * 100)
        assert monotonic() - began < DEADLINE_S

    played(tmp_path, play)


def test_a_half_closed_request_is_given_up_without_a_trace(tmp_path: Path) -> None:
    async def play(service: Serving) -> None:
        for path, length in (("/api/v1/runs", 1_000), ("/api/v1/workflows", 10)):
            line = await service.line()
            head = service.head("POST", path, "Content-Type: application/json", f"Content-Length: {length}")
            await line.send(head + b"{")
            line.writer.write_eof()
            said = await line.closed()
            assert said == b"" or said.split()[1] in (b"400", b"408"), said
        gone = await service.line()
        await gone.send(service.head("GET", "/api/v1/stream"))
        assert (await gone.reader.readline()).split()[1] == b"200"
        gone.writer.write_eof()
        await gone.closed()

    played(tmp_path, play)


def test_a_reader_that_takes_nothing_of_its_answer_is_cut_off(tmp_path: Path) -> None:
    async def play(service: Serving) -> None:
        with socket.create_connection(("127.0.0.1", service.port)) as line:
            line.setblocking(False)
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            loop = asyncio.get_running_loop()
            began = monotonic()
            with suppress(ConnectionError):
                while monotonic() - began < DEADLINE_S:
                    async with asyncio.timeout(DEADLINE_S):
                        await loop.sock_sendall(line, service.head("GET", "/api/v1/openapi.json") * 20)
            assert monotonic() - began < DEADLINE_S, "the service has closed the connection"

    played(tmp_path, play)


def test_one_connection_too_many_is_refused_politely_and_room_comes_back(tmp_path: Path) -> None:
    async def play(service: Serving) -> None:
        busy = []
        for _ in range(Impatient.connections_max):
            busy.append(line := await service.line())
            await line.send(service.head("GET", "/api/v1/stream"))
            assert (await line.reader.readline()).split()[1] == b"200"
        answer = await service.get()
        assert (answer.status, answer.problem["code"]) == (429, "RATE_LIMITED")
        assert int(answer.headers["retry-after"]) >= 1
        for line in busy:
            await line.close()
        deadline = monotonic() + DEADLINE_S
        while (await service.get()).status != 200:
            assert monotonic() < deadline

    played(tmp_path, play)


def test_thousands_of_idle_connections_leave_the_service_alone(tmp_path: Path) -> None:
    async def play(service: Serving) -> None:
        for _ in range(10):
            crowd = await asyncio.gather(*(service.line() for _ in range(Impatient.connections_max + CROWD)))
            for line in crowd:
                await line.close()
        deadline = monotonic() + DEADLINE_S
        while (await service.get()).status != 200:
            assert monotonic() < deadline

    played(tmp_path, play)


SMUGGLED = {
    "both lengths": b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /x",
    "two lengths": b"Content-Length: 0\r\nContent-Length: 44\r\n\r\n",
    "a negative length": b"Content-Length: -1\r\n\r\n",
    "a length with a sign": b"Content-Length: +0\r\n\r\n",
    "a length in hex": b"Content-Length: 0x0\r\n\r\n",
    "an odd encoding": b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "a hidden encoding": b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "a folded header": b"X: a\r\n b\r\n\r\n",
    "a bare return": b"X: a\rEvil: b\r\n\r\n",
    "a zero byte": b"X: a\x00b\r\n\r\n",
    "an odd chunk": b"Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n",
    "a huge chunk": b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n\r\n",
}


@pytest.mark.parametrize("how", SMUGGLED)
def test_a_request_that_two_servers_could_read_differently_is_refused_and_the_connection_ends(
    tmp_path: Path, how: str
) -> None:
    async def play(service: Serving) -> None:
        line = await service.line()
        head = f"POST /api/v1/nothing HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {service.key}\r\n".encode()
        await line.send(head + SMUGGLED[how])
        said = await line.closed()
        statuses = [part.split()[0] for part in said.split(b"HTTP/1.1 ")[1:]]
        assert statuses in ([], [b"400"], [b"404"]), said
        assert b"application/problem+json" in said or not said

    played(tmp_path, play)


def test_many_first_requests_at_once_open_the_service_once(tmp_path: Path) -> None:
    async def play(service: Serving) -> None:
        answers = await asyncio.gather(*(service.get() for _ in range(15)))
        assert [answer.status for answer in answers] == [200] * 15

    played(tmp_path, play)


def test_an_upgrade_to_another_protocol_is_answered_and_not_made(tmp_path: Path) -> None:
    async def play(service: Serving) -> None:
        for words in ("websocket", "h2c", "TLS/1.0"):
            line = await service.line()
            key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
            await line.send(service.head("GET", "/api/v1/me", "Connection: Upgrade", f"Upgrade: {words}", key))
            assert (await line.answer()).status == 200
        await line.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        await line.closed()

    played(tmp_path, play)


def test_compressed_bodies_are_read_up_to_their_limit_and_no_further(tmp_path: Path) -> None:
    async def play(service: Serving) -> None:
        once = gzip.compress(b" " * (64 << 20), 9)
        for body, status in (
            (once, 413),
            (gzip.compress(once, 9), 400),  # compressed twice: what is inside is no JSON
            (once[: len(once) // 2], 413),
            (gzip.compress(b"{}") * 2, 400),
            (gzip.compress(b"{}")[:-4], 400),
            (b"\x1f\x8b" + b"\x00" * 40, 400),
        ):
            line = await service.line()
            length = f"Content-Length: {len(body)}"
            types = ("Content-Type: application/json", "Content-Encoding: gzip", length)
            await line.send(service.head("POST", "/api/v1/runs", *types) + body)
            assert (await line.answer()).status == status

    played(tmp_path, play)
