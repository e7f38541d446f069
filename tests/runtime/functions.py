"""What the tests run in worker processes: they must be importable there."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from treadle.actions.current import current_attempt
from treadle.actions.protocol import AttemptFacts, Done


def pid(input: Any) -> int:
    return os.getpid()


def about(input: Any, facts: AttemptFacts) -> Any:
    return {"order": input, "key": facts.key, "same": current_attempt().facts == facts, "artifacts": facts.artifacts}


def die(input: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def leave(input: Any) -> None:
    os._exit(3)


def exits(input: Any) -> None:
    raise SystemExit(4)


def broken(input: Any) -> None:
    raise ValueError("no such colour")


def die_once(input: str) -> str:
    if not Path(input).exists():
        Path(input).touch()
        os._exit(1)
    return "alive"


def spin(input: str) -> None:
    """Says who it is through a fifo and computes for ever."""
    Path(input).write_text(str(os.getpid()))
    while True:
        pass


def spin_deaf(input: str) -> None:
    """The same, and deaf to SIGTERM."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    spin(input)


def unsendable() -> Done:
    return Done(lambda: None)


def open_files(input: Any) -> list[str]:
    return [str(entry.readlink()) for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink()]


def large(input: Any) -> str:
    return "x" * 3_000_000


def stops() -> None:
    raise KeyboardInterrupt("told to")
