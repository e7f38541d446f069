"""A program that has a worker process compute for ever; a test kills it."""

from __future__ import annotations

import asyncio
import sys

from tests.runtime.executing import Bench, python


async def main(fifo: str) -> None:
    bench = Bench()
    bench.begin(python("tests.runtime.functions:spin", process=True), input=fifo)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
