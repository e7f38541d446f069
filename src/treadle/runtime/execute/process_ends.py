"""Turns the end of a worker process into the failure of the action it was running."""

from __future__ import annotations

import signal

from treadle.actions.protocol import Failed, failed


def lost(code: int | None) -> Failed:
    hint = " (out of memory?)" if code == -signal.SIGKILL else ""
    text = f"the process that ran the action {_end(code)} without an answer{hint}"
    return failed(text, "WORKER_LOST", retryable=True, details={"exit_code": code})


def stillborn(code: int | None) -> Failed:
    text = f"a worker process {_end(code)} before it was ready; its standard error says why. "
    guard = "A script that starts an engine begins it under `if __name__ == '__main__':`."
    return failed(text + guard, "WORKER_LOST", retryable=True, details={"exit_code": code})


def _end(code: int | None) -> str:
    if code is None:
        return "ended"
    return f"was killed by {_signal(-code)}" if code < 0 else f"exited with code {code}"


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
