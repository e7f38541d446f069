"""Ownership of a database file: an OS lock beside it, held for the life of the owner's process.

Owns `<file>.lock`: a `flock` on it is the ownership, its content a note about the holder, for people and for processes
that want to wake it. Promises that the lock is free the moment the holder's process has ended, however it ended, and
that a waiting engine gets it at once: no heartbeat, no timeout, no writes while nothing happens. Must not touch the
database; the right to *write* is the lease in it, which the holder of this lock takes with `evict`.

Failure cases
    The note may be old or half written (read without the lock): it is only ever shown, or rung at.
    The file is never deleted: one process could hold a lock on the deleted file while another locks a new one.
    A forked child would keep the lock alive beyond its parent: it closes its copy. Executed programs never get one.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import socket
import threading
import time
import weakref
from contextlib import suppress
from pathlib import Path

import msgspec

from treadle.errors import StorePlaceError
from treadle.store.sqlite import private

LOCKS = Path("/proc/locks")
NOTE_TRIES = 100
LOCKS_TRIES = 10
"""The system's list of locks is read in pieces: while others lock and unlock, a line may be missing from it."""
ASKER_PAUSE_S, ASKERS_MAX_S = 0.001, 5.0
"""A process that asks for the owner shares the lock for some microseconds, longer on a busy machine. It must not be
taken for the owner, which holds the lock exclusively. Waiting for such processes ends after this time nevertheless."""


class Other(msgspec.Struct, frozen=True):
    """The holder of the lock, as it described itself."""

    pid: int = 0
    host: str = ""
    owner: str = ""
    since: int = 0
    wake: str | None = None

    @property
    def description(self) -> str:
        """The holder in words, for people."""
        if not self.pid:
            return "another process"
        if not self.since:
            return f"process {self.pid} ({self.owner}), which says nothing about itself"
        elsewhere = "" if self.host == socket.gethostname() else f" on {self.host}"
        clock = time.strftime("%H:%M:%S", time.localtime(self.since / 1000))
        return f"engine {self.owner} (pid {self.pid}{elsewhere}) since {clock}"


class Ownership:
    """One contender for a file. See the module's docstring."""

    def __init__(self, place: str | Path, owner: str, wake: str | None = None) -> None:
        self._path = lock_path(place)
        self._owner = owner
        self._wake = wake
        self._held: int | None = None
        self.left_behind: str | None = None
        """The address at which the previous owner listened, if it ended without removing it."""
        _contenders.add(self)

    @property
    def held(self) -> bool:
        return self._held is not None

    def try_take(self) -> Other | None:
        """Tries to take the lock. Returns None if this process has it now, else the holder."""
        if self._held is not None:
            return None
        lock = _open(self._path)
        until = time.monotonic() + ASKERS_MAX_S
        while not _lock(lock, fcntl.LOCK_EX):
            if not _lock(lock, fcntl.LOCK_SH) or time.monotonic() > until:
                os.close(lock)
                return _holder(self._path)
            fcntl.flock(lock, fcntl.LOCK_UN)
            time.sleep(ASKER_PAUSE_S)
        self._keep(lock)
        return None

    async def wait_gone(self) -> None:
        """Returns when the holder is gone and this process has the lock. Cancelling it leaves the lock to others."""
        if self._held is not None:
            return
        loop = asyncio.get_running_loop()
        taken: asyncio.Future[int] = loop.create_future()
        waiting = _Waiting(self._path, loop, taken)
        threading.Thread(target=waiting.wait, name="treadle-ownership", daemon=True).start()
        try:
            self._keep(await taken)
        except asyncio.CancelledError:
            waiting.give_up()
            raise

    def release(self) -> None:
        """Releases the lock; harmless if it is not held."""
        if self._held is not None:
            lock, self._held = self._held, None
            os.ftruncate(lock, 0)
            os.close(lock)

    @classmethod
    def who(cls, place: str | Path) -> Other | None:
        """The holder of the lock at this moment; None if it is free."""
        path = lock_path(place)
        try:
            probe = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            return None
        try:
            # Shared: two processes that only ask do not take each other for the owner.
            fcntl.flock(probe, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            other = _read(path)
            return other if other.pid else _stranger(path)
        finally:
            os.close(probe)
        return None

    @classmethod
    def wake_of(cls, place: str | Path) -> str | None:
        """The address at which the living owner can be woken."""
        other = cls.who(place)
        return other.wake if other is not None else None

    def _keep(self, lock: int) -> None:
        self._held = lock
        self.left_behind = _read(self._path).wake
        note = Other(os.getpid(), socket.gethostname(), self._owner, time.time_ns() // 1_000_000, self._wake)
        os.ftruncate(lock, 0)
        os.pwrite(lock, msgspec.json.encode(note), 0)

    def forked(self) -> None:
        """In a forked child: closes its copy, so that the lock ends with the parent."""
        if self._held is not None:
            os.close(self._held)  # not unlocked: that would take it from the parent
            self._held = None


class _Waiting:
    """A thread in a blocking `flock`. It cannot be interrupted: a thread that is given up releases the lock as soon as
    it gets it."""

    def __init__(self, path: Path, loop: asyncio.AbstractEventLoop, taken: asyncio.Future[int]) -> None:
        self._lock = _open(path)
        self._loop = loop
        self._taken = taken
        self._given_up = False
        _contenders.add(self)

    def wait(self) -> None:
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        try:
            self._loop.call_soon_threadsafe(self._hand_over)
        except RuntimeError:  # the loop is closed
            os.close(self._lock)

    def _hand_over(self) -> None:
        if self._given_up or self._taken.done():
            os.close(self._lock)
        else:
            self._taken.set_result(self._lock)

    def forked(self) -> None:
        """In a forked child, where the thread does not exist: closes the copy of the lock."""
        with suppress(OSError):
            os.close(self._lock)

    def give_up(self) -> None:
        """On the loop: gives the wait up. The lock was handed over already, or will be released."""
        self._given_up = True
        if self._taken.done() and not self._taken.cancelled():
            os.close(self._taken.result())


def lock_path(place: str | Path) -> Path:
    """`treadle.db` → `treadle.db.lock`; the same for every name of the same file."""
    real = Path(os.path.realpath(place))
    return real.with_name(real.name + ".lock")


def _open(path: Path) -> int:
    """Opens the lock file with the store's permissions: a user who may not use the store must not hold its lock."""
    _check(path)
    mode = private.mode_beside(path.with_suffix(""))
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, mode)
    except OSError as problem:
        text = f"its lock {path.name} cannot be opened: {problem.strerror}"
        remedy = f"{_whose(path)}: use the store as that user, or give this one the right to write both"
        raise StorePlaceError(str(path.with_suffix("")), text, remedy) from problem
    with suppress(OSError):  # another user's file: its permissions stay
        if os.fstat(lock).st_mode & 0o777 & ~mode:
            os.fchmod(lock, mode)
    return lock


def _check(path: Path) -> None:
    place = path.with_suffix("")
    if not path.parent.is_dir():
        raise StorePlaceError(str(place), f"there is no directory {path.parent}", "create it first")
    if path.exists() and not path.is_file():
        raise StorePlaceError(str(place), f"its lock {path.name} is not a file", "remove it")


def _whose(path: Path) -> str:
    try:
        return f"it belongs to {path.owner()}"
    except (OSError, KeyError):
        return "it belongs to another user"


def _lock(lock: int, kind: int) -> bool:
    """Tries to take the lock without waiting. Returns whether it was free."""
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(path: Path) -> Other:
    """The process that has just been found to hold the lock. It may not have written its note yet: then there is none,
    or that of an owner that is gone."""
    for _ in range(NOTE_TRIES):
        other = _read(path)
        if other.pid and _is_alive(other):
            return other
        time.sleep(ASKER_PAUSE_S)
    return _stranger(path)


def _stranger(path: Path) -> Other:
    """The holder of the lock that has written no note, as far as the system tells."""
    try:
        file = path.stat()
        name = f"{os.major(file.st_dev):02x}:{os.minor(file.st_dev):02x}:{file.st_ino}"
        for _ in range(LOCKS_TRIES):
            for line in LOCKS.read_text().splitlines():
                fields = line.split()  # 1: FLOCK ADVISORY WRITE PID MAJOR:MINOR:INODE 0 EOF
                if fields[1] == "FLOCK" and fields[5] == name:
                    process = LOCKS.with_name(fields[4])
                    program, user = (process / "comm").read_text().strip(), process.owner()
                    return Other(int(fields[4]), socket.gethostname(), f"{program} of user {user}")
    except (OSError, LookupError, ValueError):
        pass
    return Other()


def _is_alive(other: Other) -> bool:
    if other.host != socket.gethostname():
        return True
    try:
        os.kill(other.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _read(path: Path) -> Other:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Other)
    except (OSError, msgspec.DecodeError):
        return Other()


_contenders: weakref.WeakSet[Ownership | _Waiting] = weakref.WeakSet()


def _after_fork() -> None:
    for contender in list(_contenders):
        contender.forked()


os.register_at_fork(after_in_child=_after_fork)
