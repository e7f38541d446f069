"""Subscriptions: every event that matches is sent, in order per run, until it is accepted; an endpoint that fails for
an hour is paused; replays begin again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.runtime.cores import FaultyStore, running
from tests.runtime.executing import VirtualClock, on_loop, turns
from treadle.actions.net import AddressGate, NetPolicy
from treadle.errors import CommandRefused
from treadle.language import load_value
from treadle.runtime.access.sealing import Sealing
from treadle.runtime.service.subscription_sender import SubscriptionSender
from treadle.runtime.service.subscriptions import SubscriptionRecord, Subscriptions

URL = "https://orders.example/events"
SECRET = "whsec_" + "b2xk" * 8
FLOW = {"workflow": "w", "nodes": {"a": {"action": {"kind": "emit", "type": "news", "data": {"n": 1}}}, "b": {}}}


class Endpoint:
    """Remembers what it accepted, or refuses as told."""

    def __init__(self, clock: VirtualClock) -> None:
        self.got: list[tuple[str, str]] = []
        self.bodies: list[Any] = []
        self.secrets: set[str | None] = set()
        self.refuses: Callable[[str], bool] = lambda _id: False
        self.tries = 0
        self.takes_ms = 0
        self._clock = clock

    async def post(self, url: str, secret: str | None, id: str, body: Any) -> None:
        assert url == URL
        self.tries += 1
        await turns(1)
        if self.takes_ms:
            is_over = asyncio.Event()
            self._clock.call_at(self._clock.now() + self.takes_ms, is_over.set)
            await is_over.wait()
        if self.refuses(id):
            raise OSError("503")
        self.secrets.add(secret)
        self.got.append((id.rpartition(":")[0], body["type"]))
        self.bodies.append(body)

    def of(self, run: str) -> list[str]:
        return [type for one, type in self.got if one == run]


class World:
    """A core, its subscriptions and one sender, on a clock that stands still."""

    def __init__(self, here: Any, clock: VirtualClock) -> None:
        self.here, self.clock = here, clock
        self.endpoint = Endpoint(clock)
        self.seals = Sealing(b"k" * 32)
        client = here.client
        client.address_gate, client.sealing = AddressGate(NetPolicy()), self.sealing
        self.subscriptions = Subscriptions(client)
        self.sender = self.new_sender()

    async def sealing(self) -> Sealing:
        return self.seals

    def new_sender(self) -> SubscriptionSender:
        core = self.here.core
        sender = SubscriptionSender(core.coordinator, self.endpoint, self.sealing, lambda _run: True)
        self.here.client.on_subscribed = sender.attached(core.delivery)
        return sender

    async def subscribe(self, *types: str, secret: str | None = None, **fields: Any) -> None:
        await self.subscriptions.put(SubscriptionRecord(name="s", url=URL, types=types, **fields), secret)
        await turns(20)

    async def run(self, name: str = "w") -> str:
        started = await self.here.client.start(load_value({**FLOW, "workflow": name}).require())
        await started.wait(5)
        await turns(60)
        return str(started.id)


@asynccontextmanager
async def world() -> AsyncIterator[World]:
    clock = VirtualClock()
    async with running(FaultyStore(), {}, clock) as here:
        made = World(here, clock)
        try:
            yield made
        finally:
            await made.sender.close()


@on_loop
async def test_events_that_match_are_sent_in_order_from_the_subscription_on() -> None:
    async with world() as w:
        before = await w.run()
        await w.subscribe("run.*", "custom.*", secret=SECRET)
        runs = [await w.run() for _ in range(3)]
        assert w.endpoint.of(before) == []
        for run in runs:
            assert w.endpoint.of(run) == ["run.started", "custom.news", "run.completed"]
        assert w.endpoint.secrets == {SECRET}
        body = w.endpoint.bodies[1]
        assert (body["type"], body["data"]["workflow"], body["data"]["run_id"]) == ("custom.news", "w", runs[0])
        log = await w.subscriptions.deliveries("s")
        assert [entry.body["result"] for entry in log] == ["sent"] * 9
        assert SECRET not in str(await w.here.client.records.all("_subscription"))


@on_loop
async def test_only_the_workflows_it_names_are_sent() -> None:
    async with world() as w:
        await w.subscribe("run.started", workflows=("orders/*",))
        await w.run("other")
        wanted = await w.run("orders/new")
        assert w.endpoint.got == [(wanted, "run.started")]


@on_loop
async def test_an_endpoint_that_fails_gets_the_event_again_and_nothing_of_that_run_before() -> None:
    async with world() as w:
        await w.subscribe("run.*")
        first: list[str] = []
        w.endpoint.refuses = lambda id: bool(first) and id.startswith(first[0]) and w.endpoint.tries < 4
        started = await w.here.client.start(load_value(FLOW).require())
        first.append(str(started.id))
        other = await w.run()
        assert w.endpoint.of(first[0]) == []
        assert w.endpoint.of(other) == ["run.started", "run.completed"], "the other run does not wait"
        await w.clock.advance(120_000)
        assert w.endpoint.of(first[0]) == ["run.started", "run.completed"]
        assert w.endpoint.of(other) == ["run.started", "run.completed"], "and is not sent twice"
        state = await w.subscriptions.find("s")
        assert (state.progress.failing_since, state.progress.error) == (None, None)


@on_loop
async def test_an_endpoint_that_fails_for_an_hour_is_paused_until_somebody_puts_it_again() -> None:
    async with world() as w:
        await w.subscribe("run.*")
        w.endpoint.refuses = lambda _id: True
        run = await w.run()
        await w.clock.advance(3_500_000)
        assert (await w.subscriptions.find("s")).progress.paused is None
        await w.clock.advance(200_000)
        state = await w.subscriptions.find("s")
        assert state.progress.paused is not None and state.progress.error == "503"
        assert (await w.subscriptions.deliveries("s"))[0].body["result"] == "paused"
        tries = w.endpoint.tries
        await w.clock.advance(7_200_000)
        assert w.endpoint.tries == tries, "a paused endpoint is left alone"
        w.endpoint.refuses = lambda _id: False
        await w.subscribe("run.*")
        await turns(60)
        assert w.endpoint.of(run) == ["run.started", "run.completed"], "nothing was lost"


@on_loop
async def test_an_event_that_failed_late_is_sent_after_a_pause_too() -> None:
    async with world() as w:
        await w.subscribe("run.*")
        w.endpoint.takes_ms, w.endpoint.refuses = 10_000, lambda _id: True
        run = await w.run()
        await w.clock.advance(3_900_000)
        assert (await w.subscriptions.find("s")).progress.paused is not None
        w.endpoint.takes_ms, w.endpoint.refuses = 0, lambda _id: False
        await w.subscribe("run.*")
        await turns(60)
        assert w.endpoint.of(run) == ["run.started", "run.completed"]


@on_loop
async def test_how_long_an_endpoint_has_failed_outlasts_its_sender() -> None:
    async with world() as w:
        await w.subscribe("run.*")
        w.endpoint.refuses = lambda _id: True
        await w.run()
        since = (await w.subscriptions.find("s")).progress.failing_since
        assert since is not None
        for advance, is_paused in ((1_800_000, False), (1_900_000, True)):
            await w.sender.close()
            w.sender = w.new_sender()
            await w.sender.refresh()
            await w.here.core.recover()
            await w.clock.advance(advance)
            progress = (await w.subscriptions.find("s")).progress
            assert (progress.failing_since, progress.paused is not None) == (since, is_paused)


@on_loop
async def test_an_endpoint_that_works_again_is_said_so_by_the_next_sender() -> None:
    async with world() as w:
        await w.subscribe("run.*")
        w.endpoint.refuses = lambda _id: True
        run = await w.run()
        await w.sender.close()
        w.endpoint.refuses = lambda _id: False
        w.sender = w.new_sender()
        await w.sender.refresh()
        await w.here.core.recover()
        await turns(60)
        assert w.endpoint.of(run) == ["run.started", "run.completed"]
        progress = (await w.subscriptions.find("s")).progress
        assert (progress.failing_since, progress.error) == (None, None)


@on_loop
async def test_a_sender_that_dies_is_followed_by_one_that_goes_on() -> None:
    async with world() as w:
        await w.subscribe("run.*")
        await w.run()
        await w.sender.close()
        run = await w.run()
        assert w.endpoint.of(run) == []
        w.sender = w.new_sender()
        await w.sender.refresh()
        await w.here.core.recover()  # as the next owner does
        await turns(60)
        assert w.endpoint.of(run) == ["run.started", "run.completed"]


@on_loop
async def test_a_replay_sends_again_from_an_instant_or_a_position() -> None:
    async with world() as w:
        first = await w.run()
        await w.subscribe("run.completed")
        await w.clock.advance(60_000)
        since = w.clock.now()
        second = await w.run()
        assert w.endpoint.got == [(second, "run.completed")]
        await w.subscriptions.replay("s", since)
        await turns(60)
        assert w.endpoint.got == [(second, "run.completed")] * 2
        await w.subscriptions.replay("s", f"0:{first}:1")
        await turns(60)
        assert w.endpoint.got[2:] == [(first, "run.completed"), (second, "run.completed")]
        with pytest.raises(CommandRefused, match="position"):
            await w.subscriptions.replay("s", "yesterday")


@on_loop
async def test_a_removed_subscription_gets_nothing_more() -> None:
    async with world() as w:
        await w.subscribe("run.*")
        await w.subscriptions.remove("s")
        await turns(20)
        await w.run()
        assert w.endpoint.got == []
        with pytest.raises(CommandRefused):
            await w.subscriptions.find("s")


@on_loop
@pytest.mark.parametrize(
    "url", ["http://127.0.0.1/", "http://169.254.169.254/latest", "ftp://x.example/", "http://0x7f.1/", "nothing"]
)
async def test_an_address_inside_cannot_be_subscribed(url: str) -> None:
    async with world() as w:
        with pytest.raises(CommandRefused, match="url"):
            await w.subscriptions.put(SubscriptionRecord(name="s", url=url, types=("*",)))
