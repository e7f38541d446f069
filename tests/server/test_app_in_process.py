"""The application inside a user's own server: a store that is away, and a history that was trimmed under a stream."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from treadle.errors import EngineStopped, StoreUnavailable
from treadle.language import load_value
from treadle.runtime.engine import Engine
from treadle.server import app
from treadle.store.memory import MemoryStore

FLOW = load_value({"workflow": "w", "nodes": {"a": {}, "b": {}}, "transitions": [{"from": "a", "to": "b"}]}).require()


async def asked(application: Any, path: str, key: str = "", body: Any = None, **headers: str) -> tuple[int, bytes]:
    """The status and body of the answer to one GET, or to a POST of a body."""
    given = json.dumps(body).encode() if body is not None else b""
    headers |= {"content_type": "application/json", "content_length": str(len(given))} if given else {}
    sent = [(b"host", b"localhost"), (b"authorization", f"Bearer {key}".encode())]
    sent += [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    path, _, query = path.partition("?")
    scope = {
        "type": "http",
        "method": "POST" if given else "GET",
        "scheme": "http",
        "http_version": "1.1",
        "path": path,
        "query_string": query.encode(),
        "headers": sent,
        "client": ("127.0.0.1", 1),
    }
    arriving = [{"type": "http.request", "body": given, "more_body": False}] if given else []
    status: list[int] = []
    parts: list[bytes] = []

    async def receive() -> Any:
        return arriving.pop() if arriving else await asyncio.Event().wait()

    async def send(message: Any) -> None:
        status.extend([message["status"]] if "status" in message else [])
        parts.append(message.get("body", b""))

    await application(scope, receive, send)
    return status[0], b"".join(parts)


def test_a_store_that_is_away_at_the_first_request_is_a_503_and_the_probe_answers() -> None:
    async def test() -> None:
        async with Engine(MemoryStore()) as engine:
            _, key = await engine.keys.create("v", ["viewer"])
            application = app(engine)
            really: Callable[[], Any] = engine.secret_root
            fails = [True]

            async def secret_root() -> bytes:
                if fails[0]:
                    raise StoreUnavailable("the store is away")
                found: bytes = await really()
                return found

            engine.secret_root = secret_root  # type: ignore[method-assign]
            status, body = await asked(application, "/api/v1/me", key)
            assert (status, json.loads(body)["code"]) == (503, "STORE_UNAVAILABLE")
            assert (await asked(application, "/health/live"))[0] == 200
            fails[0] = False
            assert (await asked(application, "/api/v1/me", key))[0] == 200

    asyncio.run(test())


def test_a_stream_of_a_trimmed_history_is_gone_but_for_its_beginning() -> None:
    async def test() -> None:
        store = MemoryStore()
        async with Engine(store) as engine:
            _, key = await engine.keys.create("v", ["viewer"])
            await engine.deploy(FLOW)
            run = await engine.start("w")
            await run.wait()
            last = (await run.history())[-1].seq
            assert last > 3
            application = app(engine)
            path = f"/api/v1/runs/{run.id}/stream"
            await store.forget([run.id], history=False)
            status, body = await asked(application, path, key, last_event_id="2")
            assert (status, json.loads(body)["code"]) == (410, "GONE")
            assert (await asked(application, f"/api/v1/runs/{run.id}/history?after=1", key))[0] == 200

    asyncio.run(test())


def test_a_migration_that_no_engine_has_answered_is_a_503_and_is_answered_when_it_is_sent_again() -> None:
    async def test() -> None:
        async with Engine(MemoryStore()) as engine:
            _, key = await engine.keys.create("o", ["operator"])
            waiting = {"workflow": "asks", "nodes": {"a": {"action": {"kind": "human"}}}}
            run = await engine.start(load_value(waiting).require())
            await engine.deploy(load_value({**waiting, "output": {"x": 1}}).require())
            application, commander = app(engine), engine._commander
            really = commander.ask

            async def ask(*given: Any, **named: Any) -> Any:
                commander.ask = really  # type: ignore[method-assign]
                raise EngineStopped("no engine runs, the request is kept")

            commander.ask = ask  # type: ignore[method-assign]
            for wanted in (503, 200):
                body = {"runs": [run.id], "to": 2}
                status, told = await asked(application, "/api/v1/migrations", key, body, idempotency_key="once")
                assert status == wanted, told
            assert [one["outcome"] for one in json.loads(told)["results"]] == ["migrated"]

    asyncio.run(test())
