"""What a client does with a run of each kind, and how it writes down what it was told.

Owns the client's side of the bargain: every start has a key, every signal an id, whatever is not answered is asked
again, and only an answer that is in the journal, on the disk, counts as acknowledged. Must not look at what becomes of
a run except through the client's own face.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from tests.torture.expectations import ask
from tests.torture.journal import Journal
from treadle.errors import CommandRefused, EngineStopped, StoreUnavailable
from treadle.model.events import ChildStarted, GateOpened
from treadle.model.ids import TokenId
from treadle.runtime.client import Client
from treadle.runtime.run import Run

KINDS = (
    "chain", "panel", "quorum", "saga", "gate", "expiring", "ticks", "nap", "caller", "holder", "flaky", "queued",
)  # fmt: skip
MANY_KINDS = (*KINDS, "rest", "hauls", "long")
"""Where clocks differ and workers share queues."""
ALONE_KINDS = tuple(kind for kind in MANY_KINDS if kind not in ("ticks", "gate", "holder"))
"""Runs that come to their end though their client is killed."""
AGAIN_S = 0.02
"""Between two tries to reach an engine that is being started again."""

T = TypeVar("T")


class Journeys:
    """One client's runs."""

    def __init__(self, client: Client, journal: Journal, seed: int) -> None:
        self._client = client
        self._journal = journal
        self._random = random.Random(seed)
        self._name = f"{seed:x}"
        self._begun = 0

    async def go_on(self, is_over: Callable[[], bool], kinds: Sequence[str] = KINDS) -> None:
        """One run after the other."""
        while not is_over():
            await self.one(self._random.choice(kinds))

    async def one(self, kind: str) -> None:
        """A whole journey with one run."""
        self._begun += 1
        key = f"{self._name}-{self._begun}"
        asked = ask(kind, self._random)
        self._journal.say(op="intend", key=key, kind=kind, asked=asked)
        run = await surely(lambda: self._client.start(kind, asked["input"], key=key))
        self._journal.say(sure=True, op="started", key=key, run=run.id)
        if self._random.random() < 0.1:  # the same start again is the same run
            again = await surely(lambda: self._client.start(kind, asked["input"], key=key))
            self._journal.say(sure=True, op="started", key=key, run=again.id)
        if "ticks" in asked:
            await self._tick(run, asked["ticks"])
        if "answer" in asked:
            await self._meet_gate(run, kind, asked)
        if self._random.random() < 0.5:
            ended = await surely(run.wait)
            self._journal.say(sure=True, op="ended", run=run.id, status=ended.status, output=ended.output)

    async def _tick(self, run: Run, values: list[int]) -> None:
        for number, value in enumerate(values):
            for _ in range(2 if self._random.random() < 0.3 else 1):  # the same signal again counts once
                await surely(lambda n=number, v=value: run.signal("tick", {"n": v}, id=f"{run.id}/{n}"))  # type: ignore[misc]
            self._journal.say(sure=True, op="signalled", run=run.id, value=value)

    async def _meet_gate(self, run: Run, kind: str, asked: Any) -> None:
        if asked["cancel"] and self._random.random() < 0.5:
            await self._told(run, "cancelled", lambda: run.cancel("no longer wanted"))
            return
        holder = run if kind == "gate" else await surely(lambda: self._child(run))
        token = await surely(lambda: self._gate(holder))
        if asked["cancel"]:
            await self._told(run, "cancelled", lambda: run.cancel("no longer wanted"))
        else:
            answer = {"answer": asked["answer"]}
            await self._told(holder, "answered", lambda: holder.complete_gate(token, answer, by="torture"))

    async def _child(self, run: Run) -> Run:
        async for event in run.events():
            if isinstance(event, ChildStarted):
                return self._client.run(event.run)
        raise AssertionError(f"{run.id} has ended without a child")

    async def _gate(self, run: Run) -> TokenId:
        while True:
            try:
                async for event in run.events():
                    if isinstance(event, GateOpened):
                        return event.token
            except CommandRefused:  # a child that was announced and is not there yet
                await asyncio.sleep(AGAIN_S)
                continue
            raise AssertionError(f"{run.id} has ended without a gate")

    async def _told(self, run: Run, op: str, command: Callable[[], Awaitable[None]]) -> None:
        """A command that cannot be said twice: refused after an unknown outcome, it had happened."""
        unsure = False
        while True:
            try:
                await command()
            except (EngineStopped, StoreUnavailable):
                unsure = True
                await asyncio.sleep(AGAIN_S)
            except CommandRefused as refused:
                self._journal.say(sure=True, op=op, run=run.id, unsure=unsure, refused=str(refused))
                return
            else:
                self._journal.say(sure=True, op=op, run=run.id)
                return


async def surely(question: Callable[[], Awaitable[T]]) -> T:
    """Asks until somebody answers."""
    while True:
        try:
            return await question()
        except (EngineStopped, StoreUnavailable):
            await asyncio.sleep(AGAIN_S)
