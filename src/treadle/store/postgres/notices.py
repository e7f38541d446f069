"""Notices between the processes on one database: LISTEN and NOTIFY, on a connection of their own.

Owns that connection and its renewal. Promises that a process sends news fifty times a second at most, however much
happens; that no notice is sent inside a transaction that writes state (a NOTIFY there would serialise all commits of
the database); and that listeners get MISSED when a notice may have been lost. A notice that cannot be sent is dropped:
the truth is in the store, and every process looks there every second. Must not know what a notice means, except that
NEWS and END are for processes that wait for them.

Theory of operation
    Notices are gathered by kind and name and sent as one statement: at once, together with those that came while the
    last statement was under way; news wait until the last ones are long enough ago. Every process receives all of them;
    those of its own connection come back and are ignored. A wish is valid for WANTED_S and is sent again while a
    process waits, so that it never has to be withdrawn.

Failure cases
    server restarted     the connection ends; it is made again, after a pause that doubles; then MISSED
    network gone silent  a probe every PROBE_S finds it
    pooler in between    a pooler that hands out connections per transaction does not support LISTEN, and this process
                         cannot see how it hands them out: no notices are sent or received. Everything still happens, up
                         to a second late
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from treadle.errors import StorePlaceError, StoreUnavailable
from treadle.store.notices import AWAIT, END, EVERY_S, MISSED, NEWS, WANT, Heard
from treadle.store.postgres.connect import reach
from treadle.store.postgres.faults import LOST
from treadle.store.postgres.hosts import way_to

PAYLOAD_MAX = 7_900
"""Bytes; PostgreSQL takes less than 8,000."""
WANTED_S = 5.0
WANTED_MAX = 10_000
PROBE_S = 15.0
ANSWER_S = 5.0
"""A NOTIFY takes a millisecond. A server that does not answer for this long is gone."""
AGAIN_FIRST_S, AGAIN_LAST_S = 0.05, 2.0
POOLED_S = 60.0
"""Time between two checks for a pooler: usually it stays, but the address may lead elsewhere one day."""


_FOR = {NEWS: WANT, END: AWAIT}
"""Kinds that are sent only if a process waits for them → the kind of its wish."""


class Pooled(Exception):
    """Notices cannot be received: there is a pooler in between."""


class Channel:
    """See the module's docstring. Made on the event loop it lives on; connects in the background."""

    names_runs = True

    def __init__(self, dsn: str, troubled: Callable[[str], None] = lambda _problem: None) -> None:
        self._dsn = dsn
        self._troubled = troubled
        """Called with the exception that keeps it from connecting."""
        self._loop = asyncio.get_running_loop()
        self._heard: dict[str, list[Heard]] = {}
        self._pending: dict[str, dict[str, None]] = {}
        self._something = asyncio.Event()
        self._news_due = False
        self._last_news = 0.0
        self._elsewhere = {kind: Wishes() for kind in (WANT, AWAIT)}
        """Names that other processes wait for."""
        self._here = {kind: Wishes() for kind in (WANT, AWAIT)}
        """Names that this process waits for: the wish need not be sent again."""
        self._living = self._loop.create_task(self._live())
        self.connected = asyncio.Event()
        """Set while notices are sent and received."""

    def say(self, kind: str, name: str = "") -> None:
        if not self.connected.is_set():
            return
        if kind in _FOR:
            if not self._elsewhere[_FOR[kind]].has(name, self._loop.time()):
                return
        elif kind in self._here and not self._here[kind].add(name, self._loop.time(), WANTED_S / 2):
            return  # a watcher asks each time it waits: for a busy run fifty times a second
        self._pending.setdefault(kind, {})[name] = None
        if kind != NEWS:
            self._something.set()
        elif not self._news_due:
            self._news_due = True
            self._loop.call_at(self._last_news + EVERY_S, self._something.set)

    def hear(self, kind: str, heard: Heard) -> None:
        self._heard.setdefault(kind, []).append(heard)

    async def close(self) -> None:
        self._living.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._living

    # The connection

    async def _live(self) -> None:
        pause = AGAIN_FIRST_S
        while True:
            try:
                await self._serve()
            except Pooled as problem:
                self._troubled(str(problem))
                pause = POOLED_S
            except (*LOST, StorePlaceError, StoreUnavailable) as problem:
                was_up = self.connected.is_set()
                self.connected.clear()
                self._pending.clear()
                self._news_due = False
                self._here = {kind: Wishes() for kind in self._here}
                pause = AGAIN_FIRST_S if was_up else min(pause * 2, AGAIN_LAST_S)
                self._troubled(type(problem).__name__)
            await asyncio.sleep(pause)

    async def _serve(self) -> None:
        """Uses one connection until it ends."""
        connection = await reach(self._dsn, command_timeout=ANSWER_S)
        try:
            if connection.is_pooled:
                raise Pooled("a pooler is in between: no LISTEN")
            schema = await connection.fetchval("SELECT current_schema()")
            channel = f"treadle_{schema}"
            await connection.add_listener(channel, self._received)
            connection.add_termination_listener(lambda _connection: self._something.set())
            self.connected.set()
            self._tell(MISSED, "")
            while not connection.is_closed() and not connection.is_outdated(way_to(self._dsn).witness.timeline):
                await self._speak(connection, channel)
            raise ConnectionError("the server has closed the connection, or another has become the primary")
        finally:
            connection.terminate()

    async def _speak(self, connection: Any, channel: str) -> None:
        """Sends the gathered notices, or a probe of the connection."""
        try:
            async with asyncio.timeout(PROBE_S):  # `wait_for` of Python 3.11 may swallow the cancellation of `close`
                await self._something.wait()
        except TimeoutError:
            await connection.fetchval("SELECT 1")
            return
        self._something.clear()
        pending, self._pending = self._pending, {}
        if NEWS in pending:
            self._news_due, self._last_news = False, self._loop.time()
        if pending:
            payloads = list(packed(pending))
            await connection.execute("SELECT pg_notify($1, said) FROM unnest($2::text[]) AS said", channel, payloads)

    # What comes in

    def _received(self, connection: Any, sender: int, _channel: str, payload: Any) -> None:
        if connection.is_closed() or sender == connection.get_server_pid():
            return
        try:
            said = msgspec.json.decode(payload, type=dict[str, list[str]])
        except msgspec.DecodeError:
            return  # a notice of another program
        for kind, names in said.items():
            for name in names:
                wishes = self._elsewhere.get(kind)
                # A new wish makes the owner send once: the waiter looks then, and is sure of notices from now on. A
                # repeated wish is not passed on.
                if wishes is None or wishes.add(name, self._loop.time(), WANTED_S):
                    self._tell(kind, name)

    def _tell(self, kind: str, name: str) -> None:
        for heard in self._heard.get(kind, ()):
            heard(name)


class Wishes:
    """Names that processes wait for, each until a moment."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}

    def has(self, name: str, now: float) -> bool:
        return bool(self._until) and self._until.get(name, 0.0) > now

    def add(self, name: str, now: float, for_s: float) -> bool:
        """Notes a wish. Returns whether it is new."""
        is_new = not self.has(name, now)
        if len(self._until) >= WANTED_MAX and is_new:
            self._until = {one: until for one, until in self._until.items() if until > now}
        if len(self._until) < WANTED_MAX or not is_new:
            self._until[name] = now + for_s
        return is_new


def packed(pending: dict[str, dict[str, None]]) -> Iterator[str]:
    """Notices as payloads, as many as needed. A name that is too long for a payload is not sent."""
    for kind, names in pending.items():
        yield from (msgspec.json.encode({kind: part}).decode() for part in _parts(names))


def _parts(names: Iterable[str]) -> Iterator[list[str]]:
    part: list[str] = []
    size = 0
    for name in names:
        length = len(msgspec.json.encode(name)) + 1
        if length > PAYLOAD_MAX - 100:
            continue
        if size + length > PAYLOAD_MAX - 100:
            yield part
            part, size = [], 0
        part.append(name)
        size += length
    if part:
        yield part
