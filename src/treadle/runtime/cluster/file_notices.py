"""Notices between the processes on one file, sent over Unix datagram sockets.

Owns both ends. The owner of a store listens on a socket. Other processes send to it after they have put something into
the inbox, and may leave an address of their own to be told when something was committed. `store.notices` has the kinds.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path

from treadle.store.notices import AWAIT, EVERY_S, NEWS, WANT, Heard

HOME_MAX = 90
"""The address of a Unix socket has at most some hundred bytes; a temporary directory may be deeper."""
SUBSCRIBERS_MAX = 256


class FileNotices:
    """Notices between the processes on a file. They send to its owner, and leave an address of their own to be told of
    news. News do not name the run: one machine has few watchers. `owner` gives the current address of the owner; None
    for the owner itself."""

    names_runs = False

    def __init__(self, owner: Callable[[], str | None] | None = None) -> None:
        self._owner = owner
        self._bell = NoticeSocket(self._rung)
        self._subscribers = Subscribers(self._bell)
        self._heard: dict[str, list[Heard]] = {}
        self.address = self._bell.address

    def say(self, kind: str, name: str = "") -> None:
        if self._owner is None:
            if kind == NEWS:
                self._subscribers.tell()
            return
        address = self._owner()
        if address is not None:
            self._bell.send(address, f"{kind} {self.address if kind in (WANT, AWAIT) else name}".encode())

    def hear(self, kind: str, heard: Heard) -> None:
        self._heard.setdefault(kind, []).append(heard)

    async def close(self) -> None:
        self._bell.close()

    def _rung(self, message: bytes) -> None:
        kind, _, name = message.decode("utf-8", "replace").partition(" ")
        if kind in (WANT, AWAIT):
            self._subscribers.add(name)
            return
        for heard in self._heard.get(kind, ()):
            heard(name)


class NoticeSocket:
    """One listening socket. `rung` is called on the event loop with each datagram."""

    def __init__(self, rung: Callable[[bytes], None]) -> None:
        self._rung = rung
        self._loop = asyncio.get_running_loop()
        self._home = Path(tempfile.mkdtemp(prefix="treadle-"))  # only this user may enter
        if len(bytes(self._home)) > HOME_MAX:
            self._home.rmdir()
            self._home = Path(tempfile.mkdtemp(prefix="treadle-", dir="/tmp"))
        self.address = str(self._home / "wake")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.bind(self.address)
        self._loop.add_reader(self._socket, self._read)

    def send(self, address: str, message: bytes) -> bool:
        """Whether the message may have been heard. A full buffer means that the receiver has not read the last one
        yet."""
        try:
            self._socket.sendto(message, address)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return True

    def close(self) -> None:
        self._loop.remove_reader(self._socket)
        self._socket.close()
        clear_away(self.address)

    def _read(self) -> None:
        messages = set()
        with contextlib.suppress(BlockingIOError):
            while True:
                messages.add(self._socket.recv(1_024))
        for message in messages:
            self._rung(message)


def clear_away(address: str) -> None:
    """Removes the socket file that a killed process has left behind."""
    with contextlib.suppress(OSError):
        Path(address).unlink()
        Path(address).parent.rmdir()


class Subscribers:
    """Other processes that want to know when something was committed."""

    def __init__(self, bell: NoticeSocket) -> None:
        self._bell = bell
        self._addresses: dict[str, None] = {}
        self._loop = asyncio.get_running_loop()
        self._pending = False

    def add(self, address: str) -> None:
        """Adds a subscriber; the oldest is dropped if there are too many. A new subscriber is told at once, because
        news before now may have been missed."""
        if address in self._addresses:
            return
        if len(self._addresses) >= SUBSCRIBERS_MAX:
            del self._addresses[next(iter(self._addresses))]
        self._addresses[address] = None
        self._bell.send(address, NEWS.encode())

    def tell(self) -> None:
        """Tells the subscribers that there are news. Costs nothing while there are none."""
        if self._addresses and not self._pending:
            self._pending = True
            self._loop.call_later(EVERY_S, self._send)

    def _send(self) -> None:
        self._pending = False
        for address in list(self._addresses):
            if not self._bell.send(address, NEWS.encode()):
                del self._addresses[address]
