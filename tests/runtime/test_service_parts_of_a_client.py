"""Hooks, subscriptions, secrets and work of queues by a client: the same on an engine and over HTTP (5.8)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runtime.executing import on_loop
from tests.runtime.reaching import reached
from treadle import CommandRefused, Engine
from treadle.language import load_text
from treadle.model.errors import Error
from treadle.runtime.queue.wanted_work import WorkWanted
from treadle.runtime.service.deliveries import Delivered
from treadle.runtime.service.hook_rules import Hook
from treadle.runtime.service.subscriptions import SubscriptionRecord

PLAIN = load_text("workflow: plain\nnodes: {a: {action: {kind: wait, ms: 3600000}}}\n")
WORKS = load_text("workflow: works\nnodes: {a: {queue: q, action: {kind: work, name: w}}}\n")
SECRET = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="

both = pytest.mark.parametrize("way", ["itself", "server"])


@both
@on_loop
async def test_a_hook_is_kept_changed_replayed_and_removed(way: str) -> None:
    async with Engine(":memory:") as engine, reached(engine, way) as client:
        await engine.deploy(PLAIN)
        hook = Hook(slug="orders", source="none", workflow="plain", key="$.body.id")
        made, is_new = await client.hooks.put(hook)
        assert (made.slug, made.workflow, made.key, made.sealed, is_new) == ("orders", "plain", "$.body.id", None, True)
        secured, is_new = await client.hooks.put(Hook(slug="orders", source="generic", workflow="plain"), "s" * 32)
        assert secured.sealed is not None and not is_new
        assert [one.slug for one in await client.hooks.all()] == ["orders"]
        unsigned = await engine.hooks.receive("orders", Delivered(headers={}, query={}, body=b"{}"))
        assert unsigned.outcome.result == "signature"
        with pytest.raises(CommandRefused, match="signature") as refused:
            await client.hooks.replay("orders", unsigned.delivery)
        assert refused.value.kind == "INVALID_STATE"
        await client.hooks.put(hook)
        taken = await engine.hooks.receive("orders", Delivered(headers={}, query={}, body=b'{"id": "7"}'))
        again = await client.hooks.replay("orders", taken.delivery)
        assert (again.outcome.result, again.outcome.run) == ("seen", taken.outcome.run)
        odd = await engine.hooks.receive("orders", Delivered(headers={}, query={}, body=b"{", media_type="text/json"))
        refused_again = await client.hooks.replay("orders", odd.delivery)
        assert (refused_again.outcome.result, refused_again.outcome.code) == (odd.outcome.result, odd.outcome.code)
        entries = await client.hooks.deliveries("orders")
        assert [entry.id for entry in entries] == sorted((entry.id for entry in entries), reverse=True)
        assert (await client.hooks.delivery("orders", taken.delivery)).body["outcome"]["run"] == taken.outcome.run
        earlier = await client.hooks.deliveries("orders", before=taken.delivery, limit=1)
        assert [entry.id for entry in earlier] == [unsigned.delivery]
        await client.hooks.remove("orders")
        with pytest.raises(CommandRefused, match="orders"):
            await client.hooks.find("orders")


@both
@on_loop
async def test_a_subscription_is_kept_changed_replayed_and_removed(way: str) -> None:
    async with Engine(":memory:") as engine, reached(engine, way) as client:
        record = SubscriptionRecord(name="crm", url="https://crm.example/events", types=("run.*",), workflows=("p*",))
        made, is_new = await client.subscriptions.put(record, SECRET)
        assert is_new and made.record.sealed is not None
        assert (made.record.url, made.record.types, made.record.workflows) == (record.url, record.types, ("p*",))
        _, is_new = await client.subscriptions.put(SubscriptionRecord(name="crm", url=record.url, types=("*",)))
        assert not is_new
        assert [one.record.types for one in await client.subscriptions.all()] == [("*",)]
        replayed = await client.subscriptions.replay("crm", 1_000)
        assert replayed.progress.replay is not None and replayed.progress.replay.since == 1_000
        assert await client.subscriptions.deliveries("crm", before=1) == []
        with pytest.raises(CommandRefused, match="url"):
            await client.subscriptions.put(SubscriptionRecord(name="in", url="http://127.0.0.1/", types=("*",)))
        await client.subscriptions.remove("crm")
        with pytest.raises(CommandRefused, match="crm"):
            await client.subscriptions.find("crm")


@both
@on_loop
async def test_a_secret_is_written_listed_and_removed(way: str) -> None:
    async with Engine(":memory:") as engine, reached(engine, way) as client:
        kept, is_new = await client.secrets.put("token", "s3cr3t-value", ["api.example.com"])
        assert (kept.name, kept.hosts, is_new) == ("token", ("api.example.com",), True)
        assert "s3cr3t" not in kept.sealed
        assert not (await client.secrets.put("token", "another-value"))[1]
        await engine.secrets.note_used("token")
        assert [one.name for one in await client.secrets.list()] == [*await client.secrets.last_used()] == ["token"]
        await client.secrets.remove("token")
        assert await client.secrets.list() == []


@both
@on_loop
async def test_work_is_claimed_renewed_reported_on_and_answered(way: str, tmp_path: Path) -> None:
    async with Engine(tmp_path / "store.db") as engine, reached(engine, way) as client:
        await engine.deploy(WORKS)
        wanted = WorkWanted(queues=("q",), worker="tests", wait_ms=5_000)
        run = await client.start("works", {"n": 1})
        (task,) = await client.tasks.claim(wanted)
        assert (task.run, task.kind, task.node) == (run.id, "work", "a")
        assert await client.tasks.heartbeat(task.task, 20_000) is not None
        await client.tasks.progress(task.task, "half", {"done": 0.5})
        assert await client.tasks.workflow(task.task) == "works"
        await client.tasks.complete(task.task, {"ok": True}, {"cost": 0.25})
        assert (await run.wait(10)).status == "completed"
        with pytest.raises(CommandRefused) as late:
            await client.tasks.complete(task.task, {"ok": False})
        assert late.value.kind == "LATE_RESULT"
        other = await client.start("works", {"n": 2})
        (failing,) = await client.tasks.claim(wanted)
        await client.tasks.fail(failing.task, Error("OUT_OF_PAPER", "the tray is empty"))
        ended = await other.wait(10)
        assert ended.error is not None and (ended.status, ended.error.kind) == ("failed", "OUT_OF_PAPER")


@on_loop
async def test_the_value_of_a_secret_and_the_delivering_itself_stay_with_the_service() -> None:
    async with Engine(":memory:") as engine, reached(engine, "server") as client:
        for refused in (
            client.secrets.find("token"),
            client.secrets.note_used("token"),
            client.hooks.receive("orders", Delivered(headers={}, query={}, body=b"")),
        ):
            with pytest.raises(CommandRefused, match="service"):
                await refused
