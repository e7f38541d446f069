"""One program, run to its end or stopped for good, together with everything it started.

Owns the process group. Promises:
 1. The program leads a session and group of its own; when it ends, or the attempt is cancelled, the rest of the
    group is ended too: SIGTERM, a grace period, SIGKILL. Ignoring SIGTERM helps nobody.
 2. Output beyond the limit is read and dropped, so that the program neither blocks nor fills memory.
 3. The end is noticed when the *program* ends, also if a stray child still holds its output open.
Confession: without a sandbox a program can leave its group (`setsid`) and so escape; inside bubblewrap it cannot.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from treadle.actions.sandbox import as_user

POLL_S = 0.01
"""How often a group that was told to end is checked: the system does not tell when its last process has ended."""
DRAIN_S = 1.0
"""How long output may still arrive after the group has ended."""


@dataclass(frozen=True, slots=True)
class ProcessEnd:
    """How a program ended. A negative exit code is the signal that killed it."""

    exit_code: int
    stdout: bytes
    stderr: bytes
    dropped: dict[str, int] = field(default_factory=dict)
    """Bytes beyond the limit, by stream."""


@dataclass(frozen=True, slots=True, repr=False)
class Program:
    """The program to run. Its environment and input may hold secrets, so its repr shows nothing."""

    argv: list[str]
    env: dict[str, str]
    cwd: str
    stdin: bytes = b""
    output_max: int = 1024 * 1024
    grace_s: float = 2.0
    user: int | None = None
    """The user it runs as; None: the engine's."""


class _Watch(asyncio.SubprocessProtocol):
    def __init__(self, limit: int) -> None:
        loop = asyncio.get_running_loop()
        self.limit = limit
        self.kept = {1: bytearray(), 2: bytearray()}
        self.dropped = {1: 0, 2: 0}
        self.exited: asyncio.Future[None] = loop.create_future()
        self.closed: asyncio.Future[None] = loop.create_future()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        room = self.limit - len(self.kept[fd])
        self.kept[fd] += data[:room]
        self.dropped[fd] += max(0, len(data) - room)

    def process_exited(self) -> None:
        if not self.exited.done():
            self.exited.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        if not self.closed.done():
            self.closed.set_result(None)


async def run_program(program: Program) -> ProcessEnd:
    """Runs it. Cancelling ends the whole group before the cancellation goes on."""
    loop = asyncio.get_running_loop()
    transport, watch = await loop.subprocess_exec(
        lambda: _Watch(program.output_max),
        *program.argv,
        env=program.env,
        cwd=program.cwd,
        start_new_session=True,
        close_fds=True,
        **as_user(program.user),
    )
    group = transport.get_pid()
    try:
        _feed(transport, program.stdin)
        await watch.exited
    except BaseException:
        # Shielded: a second cancellation must not leave half a group behind.
        await _uninterrupted(_end_group(group, watch, program.grace_s))
        raise
    else:
        await _uninterrupted(_end_group(group, watch, program.grace_s))
        await asyncio.wait([watch.closed], timeout=DRAIN_S)
    finally:
        transport.close()
    code = transport.get_returncode()
    names = {1: "stdout", 2: "stderr"}
    dropped = {names[fd]: count for fd, count in watch.dropped.items() if count}
    return ProcessEnd(code if code is not None else -1, bytes(watch.kept[1]), bytes(watch.kept[2]), dropped)


def _feed(transport: asyncio.SubprocessTransport, stdin: bytes) -> None:
    pipe = transport.get_pipe_transport(0)
    assert isinstance(pipe, asyncio.WriteTransport)
    if stdin:
        pipe.write(stdin)
    pipe.close()  # after what is buffered


async def _uninterrupted(work: Coroutine[Any, Any, None]) -> None:
    task = asyncio.create_task(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


async def _end_group(group: int, watch: _Watch, grace_s: float) -> None:
    """SIGTERM, the grace period, SIGKILL. Returns when the leader has been reaped and no process of the group runs."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + grace_s
    if _signalled(group, signal.SIGTERM):
        while _runs(group) and loop.time() < deadline:
            await asyncio.sleep(POLL_S)
        while _runs(group) and loop.time() < deadline + DRAIN_S:
            _signalled(group, signal.SIGKILL)
            await asyncio.sleep(POLL_S)
    await asyncio.wait([watch.exited], timeout=DRAIN_S)


def _signalled(group: int, number: int) -> bool:
    """Sends a signal. Returns whether the group had a process; zombies count until they are reaped."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
        return True
    return False


def _runs(group: int) -> bool:
    """Whether a process of the group still runs. A dead one that its new parent has not reaped does not count."""
    if not _signalled(group, 0):
        return False
    proc = Path("/proc")
    if not (proc / "self" / "stat").exists():
        return True
    return any(_is_member(entry, group) for entry in proc.iterdir() if entry.name.isdecimal())


def _is_member(process: Path, group: int) -> bool:
    try:
        state, _parent, its_group = (process / "stat").read_text().rpartition(")")[2].split()[:3]
    except OSError:
        return False  # it has ended meanwhile
    return int(its_group) == group and state not in "ZX"
