"""A text is looked for in pieces: pages may be short, and hold every run once."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from treadle.language import load_value
from treadle.runtime.engine import Engine
from treadle.server import run_list
from treadle.server.application import Application, app

WAITS = {"workflow": "waits", "nodes": {"a": {"action": {"kind": "human"}}}, "transitions": []}


async def get(application: Application, key: str, query: str) -> Any:
    """The answer to `GET /runs`, through the application itself."""
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "GET",
        "path": "/api/v1/runs",
        "raw_path": b"/api/v1/runs",
        "query_string": query.encode(),
        "headers": [(b"host", b"127.0.0.1"), (b"authorization", f"Bearer {key}".encode())],
        "client": ("127.0.0.1", 1),
    }
    await application(scope, receive, send)
    assert sent[0]["status"] == 200, sent
    return json.loads(sent[1]["body"])


def test_a_walk_in_pieces_finds_every_run_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_list, "LOOKED_AT", 2)
    monkeypatch.setattr(run_list, "LOOK_S", 0.0)

    async def play() -> None:
        async with Engine(tmp_path / "t.db") as engine:
            await engine.deploy(load_value(WAITS))
            made = [(await engine.start("waits", key=f"{'even' if n % 2 == 0 else 'odd'}-{n}")).id for n in range(9)]
            _, key = await engine.keys.create("viewer", roles=("viewer",))
            application = app(engine)
            found, cursor, pages = [], "", 0
            while True:
                page = await get(application, key, f"text=EVEN-&limit=1{cursor}")
                found += [row["run"] for row in page["items"]]
                assert len(page["items"]) <= 1
                pages += 1
                if page["next"] is None:
                    break
                cursor = f"&cursor={page['next']}"
            assert found == made[::-2]
            assert pages >= 5
            whole = await get(application, key, "text=even-8")
            assert [row["run"] for row in whole["items"]] == [made[8]]
            assert whole["next"] is not None, "only the newest two were looked at"
            await application.service.close()

    asyncio.run(play())
