"""`python -m tests.torture.nursery`: forks engines and clients from an interpreter that has imported everything.

Owns the children: a second of imports for each of a thousand engines would leave no time to kill them. Real processes
all the same: they share nothing but code. Asked in lines of JSON on standard input (`{"role", "arguments"}`), answers
on standard output: `born`, whatever the child says (`ready`), and `gone` with the exit code (−9 after SIGKILL); logs go
to standard error. When its standard input ends, so do all children, and it.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import traceback

import msgspec

import treadle.store.postgres
import treadle.store.sqlite  # noqa: F401  # an engine imports it when it opens: not in each child
from tests.torture import client, engine
from tests.torture.flow.roles import FLOW_ROLES
from tests.torture.many import roles
from tests.torture.workflows import workflows

ROLES = {
    "engine": engine.main,
    "client": client.main,
    "many-engine": roles.runs(roles.engine),
    "many-worker": roles.runs(roles.worker),
    "many-client": roles.runs(roles.client),
    **FLOW_ROLES,
}

SERVICE = "TREADLE_TORTURE_SERVICE"
"""Set: the children serve and speak HTTP, which takes more imports."""


def main() -> int:
    if os.environ.get(SERVICE):
        from tests.torture.service.roles import SERVICE_ROLES

        ROLES.update(SERVICE_ROLES)
    engine.events = os.dup(1)
    os.dup2(2, 1)  # what engines log
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    children: set[int] = set()
    workflows()  # read once, for all
    while True:
        ready, _, _ = select.select([0, reading], [], [])
        if reading in ready:
            os.read(reading, 1_024)
            _bury(children)
        if 0 in ready:
            asked = _line()
            if not asked:
                break
            children.add(_fork(msgspec.json.decode(asked)))
    for child in children:
        os.kill(child, signal.SIGKILL)
    return 0


def _line() -> bytes:
    """Read byte by byte: nothing of the next line may stay in a buffer of ours."""
    line = b""
    while (byte := os.read(0, 1)) not in (b"", b"\n"):
        line += byte
    return line


def _bury(children: set[int]) -> None:
    while children:
        child, status = os.waitpid(-1, os.WNOHANG)
        if child == 0:
            return
        children.discard(child)
        _say(event="gone", pid=child, code=os.waitstatus_to_exitcode(status))


def _fork(asked: dict[str, object]) -> int:
    child = os.fork()
    if child:
        _say(event="born", pid=child)
        return child
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        code = ROLES[str(asked["role"])](asked["arguments"])  # type: ignore[arg-type]
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _say(**event: object) -> None:
    os.write(engine.events, msgspec.json.encode(event) + b"\n")


if __name__ == "__main__":
    sys.exit(main())
