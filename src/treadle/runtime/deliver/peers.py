"""Receivers by host and port: how many messages are under way to each, and a breaker for one that does not answer.

Owns the turn of every message. Promises that a dead receiver costs its neighbours nothing: at most `ROOM` messages are
under way to one receiver, and after five failures in a row the breaker opens. Nothing is sent to that receiver then,
but for one probe after 10 s; each probe that fails doubles the pause, up to 5 minutes; one success closes the breaker.
Waiting for a turn is no try. Must not send, and must not know what a message means.

    closed ──five failures in a row──► open ──pause over──► one probe ──success──► closed
                                        ▲                       │
                                        └──────── failure ──────┘  (the pause doubles)
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec import Struct, field

from treadle.runtime.surroundings.logs import logger
from treadle.runtime.surroundings.ports import Alarm, SteadyClock, Undeliverable

FAILURES_MAX = 5
"""Failures in a row that open a breaker: a restart of a receiver loses two or three messages, an outage all of them."""
FIRST_PAUSE_MS, LAST_PAUSE_MS = 10_000, 300_000
"""Ten seconds outlast a restart; five minutes are how long a receiver waits at most after it has come back."""
ROOM = 16
"""Messages under way to one receiver: a receiver that hangs must not use up the sockets of all others."""

log = logger("treadle.peers")


class Breaker(Struct):
    """The breaker of one receiver, on a clock of milliseconds that never goes back."""

    failures: int = 0
    pause_ms: int = 0
    """0: closed."""
    until: int = 0
    probing: bool = False

    def delay_ms(self, now: int) -> int | None:
        """How long until a message may go; 0: now. None: a probe is under way, and its outcome decides."""
        if not self.pause_ms:
            return 0
        return None if self.probing else max(self.until - now, 0)

    def begin(self) -> bool:
        """A message goes now. Returns whether it is the probe."""
        self.probing = bool(self.pause_ms)
        return self.probing

    def succeed(self) -> None:
        """A message was answered, whichever way: the receiver is alive."""
        self.failures = self.pause_ms = self.until = 0
        self.probing = False

    def fail(self, now: int, is_probe: bool) -> None:
        """A message failed. One that went before the breaker opened says nothing new."""
        if self.pause_ms and not is_probe:
            return
        self.failures += 1
        if is_probe:
            self.pause_ms = min(self.pause_ms * 2, LAST_PAUSE_MS)
        elif self.failures >= FAILURES_MAX:
            self.pause_ms = FIRST_PAUSE_MS
        self.until = now + self.pause_ms
        self.probing = False

    def withdraw(self) -> None:
        """The probe was not made after all: another message may probe at once."""
        self.probing = False


class _Peer(Struct):
    breaker: Breaker = field(default_factory=Breaker)
    under_way: int = 0
    line: deque[asyncio.Future[bool]] = field(default_factory=deque)
    alarm: Alarm | None = None

    @property
    def is_idle(self) -> bool:
        return not (self.under_way or self.line or self.breaker.failures)


class Peers:
    """See the module's docstring."""

    def __init__(self, clock: SteadyClock) -> None:
        self._clock = clock
        self._peers: dict[str, _Peer] = {}

    @asynccontextmanager
    async def turn(self, name: str) -> AsyncIterator[None]:
        """Waits until a message to this receiver may go; the body sends it. Its exception tells what became of it:
        `Undeliverable` with `answered` or none at all is a success, `Undeliverable` without it tells nothing, and any
        other exception is a failure."""
        peer = self._peers.setdefault(name, _Peer())
        is_probe = await self._enter(peer)
        try:
            yield
        except Undeliverable as refused:
            if refused.answered:
                peer.breaker.succeed()
            raise
        except Exception:
            was_closed = not peer.breaker.pause_ms
            peer.breaker.fail(self._clock.elapsed(), is_probe)
            if was_closed and peer.breaker.pause_ms:
                log.warning("a receiver does not answer; it is left alone for a while", receiver=name)
            raise
        else:
            peer.breaker.succeed()
        finally:
            if is_probe and peer.breaker.probing:
                peer.breaker.withdraw()
            peer.under_way -= 1
            self._admit(peer)
            if peer.is_idle:
                self._peers.pop(name, None)

    def is_open(self, name: str) -> bool:
        """Whether the breaker of this receiver is open."""
        peer = self._peers.get(name)
        return peer is not None and bool(peer.breaker.pause_ms)

    def close(self) -> None:
        """Stops all alarms."""
        for peer in self._peers.values():
            if peer.alarm is not None:
                peer.alarm.cancel()

    async def _enter(self, peer: _Peer) -> bool:
        turn: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        peer.line.append(turn)
        self._admit(peer)
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # it had its turn in the same moment: the next one gets it
                if turn.result():
                    peer.breaker.withdraw()
                peer.under_way -= 1
                self._admit(peer)
            raise

    def _admit(self, peer: _Peer) -> None:
        """Gives turns to those in line, in order, as far as room and breaker allow."""
        while peer.line and peer.under_way < ROOM:
            if peer.line[0].done():  # cancelled while it waited
                peer.line.popleft()
                continue
            delay = peer.breaker.delay_ms(self._clock.elapsed())
            if delay is None:
                return
            if delay:
                self._look_again(peer, delay)
                return
            peer.under_way += 1
            peer.line.popleft().set_result(peer.breaker.begin())

    def _look_again(self, peer: _Peer, delay_ms: int) -> None:
        if peer.alarm is not None:
            peer.alarm.cancel()
        peer.alarm = self._clock.call_after(delay_ms, lambda: self._admit(peer))
