"""Notices, with which processes on the same store wake each other instead of polling: a port beside `store.port`.

Owns the kinds of notices. A notice is only a hint: the truth is in the store, so a lost or repeated notice only delays
or repeats a look. A process that waits for something looks once more after it has begun to listen, and again every
second: everything is correct even if every notice is dropped.

    a process that                     sends                      and its receivers
    asks a run something               INBOX, the run's shard     the shard's owner looks into the inbox
    changes something beside runs      CHANGED                    every coordinator looks at workflows, schedules
    waits for news of a run            WANT, the run              the run's owner sends NEWS of it from then on
    waits for the end of a run         AWAIT, the run             the run's owner sends END of it
    has committed or answered          NEWS, the run              those that wait for it look at the store
    has ended a run                    END, the run               the same
    has offered work on a queue        WORK, the queue            its workers claim some
    joins or leaves                    NODES                      every coordinator looks at nodes and leases
    has lost the channel for a while   MISSED, to itself          its own waiters: any of the above may have been sent

Implementations: Unix datagram sockets beside a file (`runtime.cluster.file_notices`), LISTEN and NOTIFY on PostgreSQL
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
"""News are gathered: a process sends them fifty times a second at most, as often as a watcher redraws."""

Heard = Callable[[str], None]


class Notices(Protocol):
    """See the module's docstring."""

    names_runs: bool
    """Whether NEWS name their run. False: one NEWS without a name tells of all of them, and there is no END."""

    def say(self, kind: str, name: str = "") -> None:
        """Sends a notice soon. Never waits; the notice may get lost. NEWS and END are dropped if no process waits."""

    def hear(self, kind: str, heard: Heard) -> None:
        """Calls `heard` with the name when another process sends this kind; on the event loop. No name: any name."""

    async def close(self) -> None:
        """Stops sending and receiving."""


class Silence:
    """Notices of a store that no other process can reach, or whose processes only poll: none."""

    names_runs = False

    def say(self, kind: str, name: str = "") -> None:
        pass

    def hear(self, kind: str, heard: Heard) -> None:
        pass

    async def close(self) -> None:
        pass
