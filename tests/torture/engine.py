"""`python -m tests.torture.engine DIRECTORY [--wait]`: an engine on DIRECTORY/treadle.db until it is told to stop.

Owns one engine process. Says `ready` on its standard output when it coordinates, `owned` when somebody else does and it
was not told to wait. SIGTERM closes it properly; everything else is SIGKILL's business.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import msgspec

from tests.torture import tasks
from tests.torture.workflows import workflows
from treadle.errors import OwnedElsewhere
from treadle.runtime.engine import Engine

DATABASE, WORK, CLIENT, KILLS = "treadle.db", "work.jsonl", "client.jsonl", "kills.jsonl"


events = 1
"""The descriptor events go to; standard output is for logs where somebody else reads them."""


def tell(**event: object) -> None:
    """One line, in one write: several processes share the pipe."""
    os.write(events, msgspec.json.encode({"pid": os.getpid(), **event}) + b"\n")


async def serve(place: Path, wait: bool) -> int:
    """Until SIGTERM."""
    name = f"{os.getpid()}-{time.monotonic_ns()}"
    tasks.begin(place / WORK, name)
    asked_to_stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asked_to_stop.set)
    try:
        async with Engine(place / DATABASE, name=name, wait_for_ownership=wait) as engine:
            if not await engine.workflows():
                for workflow in workflows():
                    await engine.deploy(workflow)
            tell(event="ready", engine=name)
            await asked_to_stop.wait()
    except OwnedElsewhere as other:
        tell(event="owned", by=other.owner)
        return 3
    return 0


def main(arguments: list[str]) -> int:
    return asyncio.run(serve(Path(arguments[0]), "--wait" in arguments))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
