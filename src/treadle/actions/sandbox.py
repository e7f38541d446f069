"""Bubblewrap around a program: its own namespaces, a read-only system, one writable directory, no network, limits.

Owns the command line of `bwrap` and the question whether it works here. Promises:
 1. A sandbox which is required and cannot be had is a refusal with the remedy, never a quiet run without one.
 2. No program runs as the machine's root, also when the engine does: bubblewrap is then started as another user. A user
    namespace alone would not do: in it root still is the kernel's root, who owns what lies below `/proc/sys`.
 3. Nothing of the kernel's can be written (`/proc` is read-only), every capability is dropped, and no further user
    namespace can be made inside, which would give some of them back.
 4. Processes, memory, size of files and, in a directory of the sandbox's own, disk are limited.

The environment is handed over as an environment, never as arguments: other users can read those. Not used:
`--new-session`. The program already leads a session without a terminal (`shell_process.py`); a second one would keep
SIGTERM from it. Confessions: memory is limited for each process, not for all together; what is written into an
operator's directory (`ShellPolicy.cwd`) is limited by the size of each file only; before Linux 5.14 the limit of
processes counts all processes of the user.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from typing import Any

from msgspec import Struct

from treadle.actions.failure import TaskFailure

READABLE = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64"),
    *("/etc/alternatives", "/etc/ld.so.cache", "/etc/ssl", "/etc/ca-certificates", "/etc/localtime"),
)
"""The folders of the system that programs need to start. Not the engine's database, no home folders."""
PROBE_S = 10.0
OWN = "/tmp/work"
"""Working directory of a program that was given none: on the sandbox's own file system."""
NOBODY = 65_534
"""User id of programs if the engine is root and the policy names none: `nobody`, who owns no files."""
SPACE = 4
"""Address space of a process, as a multiple of its memory: runtimes reserve far more than they use."""

_PRLIMIT = shutil.which("prlimit", path="/usr/bin:/bin:/usr/local/bin") or "/usr/bin/prlimit"
"""By its full name: an action may set the PATH."""
_REMEDY = (
    "Install bubblewrap 0.8 or newer (Debian, Fedora: `bubblewrap`) and prlimit (`util-linux`) where user namespaces "
    "are allowed, or have the operator choose ShellPolicy(sandbox='none') knowingly."
)


class SandboxLimits(Struct, frozen=True, kw_only=True):
    """Limits of the programs in a sandbox."""

    processes: int
    memory: int
    """Bytes each process may have for data."""
    file: int
    """Bytes each file may have."""
    disk: int
    """Bytes of the sandbox's own file system."""


def wrapped(
    bwrap: str,
    argv: list[str],
    *,
    work: str | None,
    chdir: str,
    readable: tuple[str, ...],
    network: bool,
    limits: SandboxLimits,
) -> list[str]:
    """The command line of a program inside its sandbox. `work`: the one directory outside that it may write to."""
    command = [bwrap, "--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--cap-drop", "ALL"]
    command += ["--share-net"] if network else []
    for path in readable:
        command += ["--ro-bind-try", path, path]
    if network:
        command += ["--ro-bind-try", "/etc/resolv.conf", "/etc/resolv.conf"]
    own = ["--size", str(limits.disk), "--tmpfs"]
    command += ["--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev", "--remount-ro", "/dev"]
    command += [*own, "/dev/shm", *own, "/tmp", "--dir", OWN]
    command += ["--bind", work, work] if work is not None else []
    return [*command, "--remount-ro", "/", "--chdir", chdir, "--", *_limited(limits), *argv]


def _limited(limits: SandboxLimits) -> list[str]:
    """Set inside, where the limit of processes counts those of the sandbox alone."""
    return [
        _PRLIMIT,
        f"--nproc={limits.processes}",
        f"--data={limits.memory}",
        f"--as={limits.memory * SPACE}",
        f"--fsize={limits.file}",
        "--core=0",
        "--",
    ]


def other_user(user: int | None) -> int | None:
    """The user that bubblewrap is started as; None: the user of the engine, which is not root."""
    if os.geteuid() != 0:
        return None
    if user == 0:
        raise TaskFailure("a sandbox does not run programs as root: choose another ShellPolicy(user=…)")
    return NOBODY if user is None else user


class Bubblewrap:
    """Finds bwrap and tests it once."""

    def __init__(self, program: str, limits: SandboxLimits, user: int | None = None) -> None:
        self._program = program
        self._limits = limits
        self._user = user
        self._found: str | None = None

    async def path(self) -> str:
        """The path of bwrap, which was tested. Raises TaskFailure with the remedy."""
        if self._found is None:
            found = shutil.which(self._program)
            if found is None:
                raise TaskFailure(
                    f"the shell policy requires a sandbox and there is no {self._program!r} here. {_REMEDY}"
                )
            await self._probe(found)
            self._found = found
        return self._found

    async def _probe(self, bwrap: str) -> None:
        """Starts a sandbox, and checks from inside that the kernel's settings cannot be written."""
        proof = ["/bin/sh", "-c", "test ! -w /proc/sys/kernel/core_pattern || echo /proc/sys can be written >&2"]
        command = wrapped(bwrap, proof, work=None, chdir=OWN, readable=READABLE, network=False, limits=self._limits)
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                env={},
                cwd="/",
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                **as_user(other_user(self._user)),
            )
        except OSError as problem:
            raise self._refused(str(problem)) from problem
        try:
            _, said = await asyncio.wait_for(process.communicate(), PROBE_S)
        except BaseException:
            process.kill()
            await process.wait()
            raise
        if process.returncode != 0 or said:
            raise self._refused(said.decode(errors="replace").strip()[:300])

    def _refused(self, why: str) -> TaskFailure:
        user = other_user(self._user)
        whom = f" as user {user} (the engine is root, programs never are)" if user is not None else ""
        text = f"the shell policy requires a sandbox and bubblewrap cannot start one here{whom}"
        return TaskFailure(f"{text}: {why}. {_REMEDY}")


def as_user(user: int | None) -> dict[str, Any]:
    """Arguments that start a process as another user, without any group of the engine."""
    return {} if user is None else {"user": user, "group": user, "extra_groups": []}
