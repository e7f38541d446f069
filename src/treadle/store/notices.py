"""Waking other processes on the same store without their polling for it: the port beside `store.port`.

Owns the kinds of notices. A notice carries no truth: the store has it all, so a lost or repeated one only delays or
repeats a look. Whoever waits for something looks once more after it has begun to listen, and again every second:
everything is correct when every notice is dropped.

    who                                says                       who hears it
    asks a run something               INBOX, the run's shard     whoever owns the shard: look into the inbox
    changes something beside runs      CHANGED                    every coordinator: look at workflows, schedules
    waits for news of a run            WANT, the run              whoever owns it says NEWS of it from then on
    waits for the end of a run         AWAIT, the run             whoever owns it says END of it
    has committed or answered          NEWS, the run              whoever waits for it: look at the store
    has ended a run                    END, the run               the same
    has offered work on a queue        WORK, the queue            who executes for it: claim some
    joins or leaves                    NODES                      every coordinator: look who has which shards
    the channel, when it was broken    MISSED                     everybody here: any of the above may have been said

Implementations: Unix datagram sockets beside a file (`runtime.wake`), LISTEN and NOTIFY on PostgreSQL
(`store.postgres.notices`), silence where no other process can be.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

INBOX = "inbox"
CHANGED = "changed"
WANT = "want"
NEWS = "news"
AWAIT = "await"
END = "end"
NODES = "nodes"
MISSED = "missed"
WORK = "work"

EVERY_S = 0.02
"""News are coalesced: a process tells them fifty times a second at most, and a watcher redraws as often."""

Heard = Callable[[str], None]


class Notices(Protocol):
    """See the module's docstring."""

    def say(self, kind: str, name: str = "") -> None:
        """To whom it concerns, soon; never waits, may get lost. NEWS and ENDs nobody waits for are dropped here."""

    def hear(self, kind: str, heard: Heard) -> None:
        """Calls `heard` with the name whenever somebody else says this; on the event loop. No name: any of them."""

    async def close(self) -> None:
        """Neither says nor hears anything any more."""


class Silence:
    """Of a store that no other process can reach, or whose processes only poll."""

    def say(self, kind: str, name: str = "") -> None:
        pass

    def hear(self, kind: str, heard: Heard) -> None:
        pass

    async def close(self) -> None:
        pass
