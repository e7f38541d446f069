"""The process W6 kills: chains whose steps leave one byte each in a journal. With 0 runs it finishes what is there."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from bench.bench_engine import chain
from treadle.runtime.engine import Engine


def main(home: Path, runs: int, steps: int) -> None:
    journal = os.open(home / "journal", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    async def step(**_given: Any) -> dict[str, Any]:
        os.write(journal, b".")
        return {"ok": True, "n": 1}

    async def work() -> None:
        async with Engine(home / "treadle.db", functions={"step": step}) as engine:
            if runs:
                workflow = chain(steps)
                await engine.deploy(workflow)
                await asyncio.gather(*(engine.start(workflow.workflow) for _ in range(runs)))
            while live := await engine.runs(statuses=("running",), limit=10_000):
                await asyncio.gather(*(engine.run(row.run).wait() for row in live))

    asyncio.run(work())


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
