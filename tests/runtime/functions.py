"""What the tests run in worker processes: they must be importable there."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from treadle.actions.current import current_attempt
from treadle.actions.protocol import AttemptFacts, Done


def pid(order: Any) -> int:
    return os.getpid()


def about(order: Any, facts: AttemptFacts) -> Any:
    return {"order": order, "key": facts.key, "same": current_attempt().facts == facts, "artifacts": facts.artifacts}


def die(order: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def leave(order: Any) -> None:
    os._exit(3)


def exits(order: Any) -> None:
    raise SystemExit(4)


def broken(order: Any) -> None:
    raise ValueError("no such colour")


def die_once(path: str) -> str:
    if not Path(path).exists():
        Path(path).touch()
        os._exit(1)
    return "alive"


def spin(path: str) -> None:
    """Says who it is through a fifo and computes for ever."""
    Path(path).write_text(str(os.getpid()))
    while True:
        pass


def spin_deaf(path: str) -> None:
    """The same, and deaf to SIGTERM."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    spin(path)


def unsendable() -> Done:
    return Done(lambda: None)


def open_files(order: Any) -> list[str]:
    return [str(entry.readlink()) for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink()]


def large(order: Any) -> str:
    return "x" * 3_000_000
