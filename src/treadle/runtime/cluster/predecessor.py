"""Proof that a process is dead: a node describes its own process, and another node on the same machine checks it.

Owns the text in `Member.process`: host, boot, pid namespace, pid and start time, which tell a process from every other
that this machine has run. Promises to call a process dead only when the operating system says so. For another machine,
after another boot, in another namespace or without /proc nothing is proved, and the lease has to run out. A wrong proof
(two machines restored from one snapshot, under one host name) breaks nothing: every write is fenced. Must not know
leases.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

PROC = Path("/proc")
ENDED = "ZX"
"""States of a process that has ended and that its parent has not waited for yet."""


def this_process() -> str:
    """The text for `Member.process`; empty if the operating system does not tell."""
    try:
        return " ".join((*_machine(), str(os.getpid()), _start(os.getpid())))
    except (OSError, ValueError):
        return ""


def is_dead(process: str) -> bool:
    """Whether the process described by this text is known to be gone."""
    try:
        *machine, number, start = process.split(" ")
        if tuple(machine) != _machine():
            return False
        pid = int(number)
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass  # the pid is in use, by another user: its start time tells which process
    except (OSError, ValueError):
        return False
    try:
        return _start(pid) != start or _has_ended(pid)
    except (OSError, ValueError):
        return False  # hidden, or just gone: the next look tells


def _machine() -> tuple[str, str, str]:
    """Host, boot and pid namespace: the scope in which a pid is unique. The number of a namespace may be reused after
    all its processes are gone; then they are not found here, which is true."""
    boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
    return socket.gethostname().replace(" ", "-"), boot, str((PROC / "self/ns/pid").readlink())


def _start(pid: int) -> str:
    """The start time of a process in clock ticks since the boot."""
    return _stat(pid)[19]


def _has_ended(pid: int) -> bool:
    """Whether the process has ended. If only its first thread has, others may still be at work."""
    return _stat(pid)[0] in ENDED and len(list((PROC / str(pid) / "task").iterdir())) <= 1


def _stat(pid: int) -> list[str]:
    """The fields of `/proc/PID/stat` after the name, which may hold anything."""
    fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    if len(fields) < 20:
        raise ValueError(f"/proc/{pid}/stat is too short")
    return fields
