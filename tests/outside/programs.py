"""Shell actions in tests: real processes, and pipes to know how far they are."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from tests.outside.peers import run
from tests.unit.actions.calls import call
from treadle.actions.failure import TaskFailure
from treadle.actions.protocol import Done, Failed
from treadle.actions.sandbox import Bubblewrap, SandboxLimits
from treadle.actions.secrets import DictSecrets
from treadle.actions.shell import ShellKind, ShellPolicy

OPEN = ShellPolicy(enabled=True, sandbox="none", grace_ms=100)
"""For tests: any program, no sandbox, little patience."""
BOXED = ShellPolicy(enabled=True, grace_ms=100)
"""For tests: any program, in the sandbox, little patience."""


def _why_not() -> str | None:
    limits = SandboxLimits(processes=9, memory=1 << 30, file=1 << 20, disk=1 << 20)
    try:
        run(Bubblewrap("bwrap", limits).path())
    except TaskFailure as problem:
        return str(problem)
    return None


_reason = _why_not()
needs_bubblewrap = pytest.mark.skipif(_reason is not None, reason=f"no sandbox here: {_reason}")


async def execute(
    config: dict[str, Any], input: Any = None, policy: ShellPolicy = OPEN, secrets: dict[str, str] | None = None
) -> Done | Failed:
    """One `shell` action."""
    reply = ShellKind(policy, DictSecrets(secrets or {})).run(call(config, input))
    result = reply if isinstance(reply, Done | Failed) else await reply  # type: ignore[misc]
    assert isinstance(result, Done | Failed)
    return result


def shell(config: dict[str, Any], input: Any = None, **options: Any) -> Done | Failed:
    """The same from outside a loop."""
    return run(execute(config, input, **options))


async def told(fifo: Path) -> list[int]:
    """The numbers a program writes into a named pipe: it has come so far."""
    text = await asyncio.to_thread(fifo.read_text)
    return [int(word) for word in text.split()]


def is_gone(pid: int) -> bool:
    """Whether a process runs no more; one that nobody has reaped yet does not run either."""
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return True
    return stat.rpartition(")")[2].split()[0] in "ZX"
