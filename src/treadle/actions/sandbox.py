"""Bubblewrap around a program: its own namespaces, a read-only system, one writable directory, no network.

Owns the command line of `bwrap` and the question whether it works here. Promises that a sandbox which is required and
cannot be had is a refusal with the remedy, never a quiet run without one. The environment is handed over as an
environment, never as arguments: other users can read those.
"""

from __future__ import annotations

import asyncio
import shutil

from treadle.actions.failure import TaskFailure

READABLE = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64"),
    *("/etc/alternatives", "/etc/ld.so.cache", "/etc/ssl", "/etc/ca-certificates", "/etc/localtime"),
)
"""Of the system, what programs need to start. Not the engine's database, not anybody's home."""
PROBE_S = 10.0

_REMEDY = (
    "Install bubblewrap (Debian, Fedora: `bubblewrap`) where user namespaces are allowed, "
    "or have the operator choose ShellPolicy(sandbox='none') knowingly."
)


def wrapped(
    bwrap: str, argv: list[str], *, work: str, chdir: str, readable: tuple[str, ...], network: bool
) -> list[str]:
    """The command line of a program inside its sandbox."""
    command = [bwrap, "--unshare-all", "--die-with-parent", "--cap-drop", "ALL"]
    command += ["--share-net"] if network else []
    for path in readable:
        command += ["--ro-bind-try", path, path]
    if network:
        command += ["--ro-bind-try", "/etc/resolv.conf", "/etc/resolv.conf"]
    command += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    return [*command, "--bind", work, work, "--chdir", chdir, "--", *argv]


class Bubblewrap:
    """Finds bwrap and tries it once."""

    def __init__(self, program: str = "bwrap") -> None:
        self._program = program
        self._found: str | None = None

    async def path(self) -> str:
        """Where bwrap is, proven to work; raises TaskFailure with the remedy."""
        if self._found is None:
            found = shutil.which(self._program)
            if found is None:
                raise TaskFailure(
                    f"the shell policy requires a sandbox and there is no {self._program!r} here. {_REMEDY}"
                )
            await _probe(found)
            self._found = found
        return self._found


async def _probe(bwrap: str) -> None:
    command = wrapped(bwrap, ["/bin/true"], work="/tmp", chdir="/tmp", readable=READABLE, network=False)
    process = await asyncio.create_subprocess_exec(
        *command,
        env={},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        _, said = await asyncio.wait_for(process.communicate(), PROBE_S)
    except BaseException:
        process.kill()
        await process.wait()
        raise
    if process.returncode != 0:
        why = said.decode(errors="replace").strip()[:300]
        raise TaskFailure(f"the shell policy requires a sandbox and bubblewrap cannot start one here: {why}. {_REMEDY}")
