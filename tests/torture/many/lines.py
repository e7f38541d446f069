"""The torturer's hand on the proxy: a process of its own, so that a busy torturer delays nobody."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import msgspec

from tests.torture.processes import ROOT


class Lines:
    """See `proxy` for what can be asked of it."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.torture.many.proxy"]
        self._of: dict[str, list[str]] = {}
        self._proxy = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)

    def open(self, name: str, server: int) -> int:
        """A line for one process to one server; the port it begins at."""
        line = f"{name}@{server}"
        self._of.setdefault(name, []).append(line)
        return int(self._ask(open=line, server=server)["port"])

    def fail(self, fault: str, name: str, **how: int) -> None:
        """All lines of a process."""
        for line in self._of[name]:
            self._ask(fault=fault, on=line, **how)

    def heal(self, name: str) -> None:
        for line in self._of[name]:
            self._ask(heal=line)

    def close(self) -> None:
        assert self._proxy.stdin is not None and self._proxy.stdout is not None
        self._proxy.stdin.close()
        self._proxy.wait(10)
        self._proxy.stdout.close()

    def _ask(self, **order: Any) -> dict[str, Any]:
        assert self._proxy.stdin is not None and self._proxy.stdout is not None
        self._proxy.stdin.write(msgspec.json.encode(order) + b"\n")
        self._proxy.stdin.flush()
        answer = self._proxy.stdout.readline()
        if not answer:
            raise AssertionError(f"the proxy is gone: {self._proxy.wait(10)}")
        found: dict[str, Any] = msgspec.json.decode(answer)
        return found
