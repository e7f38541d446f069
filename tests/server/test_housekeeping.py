"""What a service drops by itself, and limits that an operator sets: old answers, old links, large artifacts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import msgspec
import pytest

from tests.server.client import Served
from treadle import connect
from treadle.runtime.client import Client
from treadle.runtime.service.records import Changes, Note
from treadle.server.links import KIND, LinkNote

MIB = 1024 * 1024
DAY_MS = 24 * 3_600_000
ASKS = {"workflow": "asks", "nodes": {"ask": {"action": {"kind": "human"}}}}


def on_store(served: Served, act: Callable[[Client], Awaitable[Any]]) -> Any:
    async def opened() -> Any:
        async with connect(served.store) as client:
            return await act(client)

    return asyncio.run(opened())


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service on a store with things of long ago, which takes artifacts of 70 MiB."""
    folder = tmp_path_factory.mktemp("kept")
    served = Served(str(folder / "treadle.db"), folder)
    served.environment["TREADLE_SERVER_ARTIFACT_MAX"] = str(70 * MIB)
    now = time.time_ns() // 1_000_000

    async def age(client: Client) -> None:
        for name, days in (("long over", 31), ("just over", 1)):
            link = LinkNote(run="r", visit=1, opened=1, answers_as=None, made_by="ann", expires=now - days * DAY_MS)
            await client.records.put(KIND, name, msgspec.to_builtins(link))
        notes = [Note("post:old", {}, now - 2 * DAY_MS), Note("post:new", {}, now - DAY_MS // 2)]
        await client.records.write(Changes(notes=notes))

    on_store(served, age)
    with served:
        served.as_("author").post("/workflows", ASKS)
        yield served


def test_an_answer_is_kept_for_a_day_and_dropped_later(kept: Served) -> None:
    reply = kept.as_("operator").api("POST", "/runs", {"workflow": "asks"}, {"Idempotency-Key": "one"})
    assert reply.status == 201, reply

    async def notes(client: Client) -> list[bool]:
        return [await client.records.note(name) is not None for name in ("post:old", "post:new")]

    assert on_store(kept, notes) == [False, True]


def test_a_link_that_expired_a_month_ago_is_dropped_when_another_is_made(kept: Served) -> None:
    run = kept.as_("operator").post("/runs", {"workflow": "asks"})["run"]
    (gate,) = kept.as_("viewer").get(f"/gates?run={run}")["items"]
    kept.as_("approver").post(f"/gates/{run}/{gate['visit']}/link", {"expires_ms": 60_000}, status=201)

    async def links(client: Client) -> list[str]:
        return [document.name for document in await client.records.all(KIND)]

    names = on_store(kept, links)
    assert "long over" not in names and "just over" in names and len(names) == 2


def test_the_limit_of_artifacts_is_the_operators(kept: Served) -> None:
    run = kept.as_("operator").post("/runs", {"workflow": "asks"})["run"]
    sent = {"Content-Type": "application/octet-stream"}
    large = kept.as_("approver").api("PUT", f"/runs/{run}/artifacts/large", bytes(66 * MIB), sent)
    assert (large.status, large.json["size"]) == (201, 66 * MIB)
    larger = kept.as_("approver").api("PUT", f"/runs/{run}/artifacts/larger", bytes(71 * MIB), sent)
    assert (larger.status, larger.json["code"]) == (413, "TOO_LARGE")
    assert kept.as_("operator").api("POST", "/runs", b" " * (2 * MIB)).status == 413, "other bodies have their own"
