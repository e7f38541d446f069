"""The torturer's hands: processes that are started, watched and ended by their number.

Owns the nursery's process and what it says. Promises that nothing it started outlives `close`. Must not decide when to
kill whom.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import msgspec

ROOT = Path(__file__).parents[2]
Event = dict[str, Any]
BORN_S = 120.0
"""The first child is born after the imports, which take long on a busy machine."""
SOCKET_HOME_MAX = 75
"""A socket's path has 104 bytes on some systems; `treadle-…/wake` needs 22."""


class Unexpected(AssertionError):
    """A process did something nobody told it to do."""


class Processes:
    """See the module's docstring. `log` gets what the processes complain about; `settings` go into their
    environment."""

    def __init__(self, log: Path, settings: Mapping[str, str] | None = None) -> None:
        self._log: IO[bytes] = log.open("ab")
        command = [sys.executable, "-m", "tests.torture.nursery"]
        self._nursery = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=ROOT,
            env={**_with_sockets_in(log.parent), **(settings or {})},
            bufsize=0,
        )
        self._rest = b""
        self._events: deque[Event] = deque()
        self.alive: set[int] = set()
        self._ready: set[int] = set()
        self.leaving: set[int] = set()
        """Who was asked to stop, and may be gone at any moment."""

    def start(self, role: str, *arguments: object) -> int:
        """A new process; its number."""
        assert self._nursery.stdin is not None
        asked = {"role": role, "arguments": [str(argument) for argument in arguments]}
        self._nursery.stdin.write(msgspec.json.encode(asked) + b"\n")
        born = self.wait("born", BORN_S)
        self.alive.add(born["pid"])
        return int(born["pid"])

    def signal(self, pid: int, number: signal.Signals) -> None:
        if pid in self.alive:
            os.kill(pid, number)

    def kill(self, pid: int) -> None:
        """SIGKILL, and it is really gone."""
        self.signal(pid, signal.SIGKILL)
        while pid in self.alive:
            self.wait("gone", 30, pid)

    def wait(self, event: str, timeout_s: float, pid: int | None = None) -> Event:
        """The next event of that kind, of that process; others are kept. Raises Unexpected when it does not come, or
        when the process is gone."""
        until = time.monotonic() + timeout_s
        passed = 0
        while True:
            while passed < len(self._events):
                found = self._events[passed]
                mine = pid is None or found["pid"] == pid
                if mine and found["event"] == event:
                    del self._events[passed]
                    return found
                if mine and pid is not None and found["event"] in ("gone", "owned"):
                    raise Unexpected(f"process {pid} should be {event}: {found}")
                passed += 1
            left = until - time.monotonic()
            if left <= 0 or not self._read(left):
                raise Unexpected(f"nobody ({pid or 'at all'}) was {event} in {timeout_s} s")

    def wait_ready(self, pid: int, timeout_s: float) -> None:
        """Until the engine coordinates."""
        if pid not in self._ready:
            self.wait("ready", timeout_s, pid)
            self._ready.add(pid)

    def rest(self, seconds: float) -> None:
        """Watches for that long. Raises Unexpected if a process ends by itself."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self._read(left)
            for event in self._events:
                if event["event"] == "gone" and event["pid"] not in self.leaving:
                    raise Unexpected(f"a process ended by itself: {event}")

    def close(self) -> None:
        """Ends everybody, by number."""
        if self._nursery.stdin is not None:
            self._nursery.stdin.close()  # the nursery takes its children with it
        try:
            self._nursery.wait(10)
        except subprocess.TimeoutExpired:
            self._nursery.kill()
            self._nursery.wait()
        assert self._nursery.stdout is not None
        self._nursery.stdout.close()
        self._log.close()

    def _read(self, timeout_s: float) -> bool:
        assert self._nursery.stdout is not None
        ready, _, _ = select.select([self._nursery.stdout], [], [], timeout_s)
        if not ready:
            return False
        read = os.read(self._nursery.stdout.fileno(), 65_536)
        if not read:
            raise Unexpected("the nursery is gone")
        *lines, self._rest = (self._rest + read).split(b"\n")
        for line in lines:
            event = msgspec.json.decode(line)
            if event["event"] == "gone":
                self.alive.discard(event["pid"])
            self._events.append(event)
        return True


def _with_sockets_in(place: Path) -> dict[str, str]:
    """Killed processes leave their sockets where the torture cleans up, if the path is not too long for a socket."""
    fits = len(str(place)) < SOCKET_HOME_MAX
    return {**os.environ, "TMPDIR": str(place)} if fits else dict(os.environ)
