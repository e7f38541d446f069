"""The process W6 kills: chains whose steps leave one byte each in a journal. With 0 runs it finishes what is there."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from bench.bench_engine import chain
from treadle.runtime.engine import Engine, EngineSettings


def main(home: Path, runs: int, steps: int, store: str, lease_ms: int) -> None:
    journal = os.open(home / "journal", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    async def step(**_given: Any) -> dict[str, Any]:
        os.write(journal, b".")
        return {"ok": True, "n": 1}

    async def work() -> None:
        settings = EngineSettings(lease_ms=lease_ms, spare_collector=True)
        async with Engine(store, functions={"step": step}, settings=settings) as engine:
            if runs:
                workflow = chain(steps)
                await engine.deploy(workflow)
                await asyncio.gather(*(engine.start(workflow.workflow) for _ in range(runs)))
            while live := await engine.runs(statuses=("running",), limit=10_000):
                await asyncio.gather(*(engine.run(row.run).wait() for row in live))

    asyncio.run(work())


if __name__ == "__main__":
    place = Path(sys.argv[1])
    store, lease = (sys.argv[4], int(sys.argv[5])) if len(sys.argv) > 4 else (str(place / "treadle.db"), 10_000)
    main(place, int(sys.argv[2]), int(sys.argv[3]), store, lease)
