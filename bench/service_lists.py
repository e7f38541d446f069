"""`GET /runs` over a million finished runs, filter by filter, on SQLite and on PostgreSQL: milliseconds, p95.

The runs are made through the store's own commit (`many_runs`), which takes some minutes on each store. The service is
asked over HTTP by one client; `TREADLE_BENCH_RUNS` sets another number of runs.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path
from urllib.parse import quote

from bench.many_runs import BEGIN, EVERY_MS, fill
from bench.postgres_server import running_server
from bench.report import Report
from bench.served import served
from bench.settings import AS_SERVED
from treadle.runtime.engine import Engine
from treadle.store.port import Fence, Store
from treadle.store.postgres import PostgresStore
from treadle.store.sqlite import SqliteStore

RUNS = int(os.environ.get("TREADLE_BENCH_RUNS", "1000000"))
ASKED, BAR_MS = 40, 30.0


def measure(report: Report) -> None:
    with tempfile.TemporaryDirectory(prefix="treadle-bench-") as home:
        place = Path(home) / "treadle.db"
        asyncio.run(_filled_file(place))
        asyncio.run(_asked(report, "SQLite", place))
    with running_server() as server:
        address = server.database("lists")
        asyncio.run(_filled_database(address))
        asyncio.run(_asked(report, "PostgreSQL", address))
        server.drop("lists")


def _filters() -> dict[str, str]:
    """Name → query: for each filter a value of many runs, of few, and of none or at the far end."""

    def at(number: int) -> int:
        return BEGIN + number * EVERY_MS

    return {
        "none": "",
        "workflow, many": f"workflow={quote('orders/flow-3', safe='')}",
        "workflow, few": "workflow=rare",
        "version, few": "version=2",
        "status, many": "status=completed",
        "status, few": "status=cancelled",
        "status, several": "status=cancelled&status=failed",
        "tag, many": "tag=daily",
        "tag, few": "tag=rare-tag",
        "tags, both": "tag=rare-tag&tag=daily",
        "key": "key=order-777",
        "entity": f"entity={quote('customer/customer-70', safe='')}",
        "parent": "parent=the-parent",
        "started_from, new": f"started_from={at(RUNS - 10)}",
        "started_until, old": f"started_until={at(200)}",
        "started_until, half": f"started_until={at(RUNS // 2)}",
        "started within, old": f"started_from={at(1_000)}&started_until={at(1_050)}",
        "text, few": "text=order-7771",
        "text, none": "text=nothinglikeit",
    }


async def _filled_file(place: Path) -> None:
    store = await SqliteStore.open(place)
    await _fill(store)
    await store.close()


async def _filled_database(address: str) -> None:
    store = await PostgresStore.open(address)
    await _fill(store)
    await store.close()


async def _fill(store: Store) -> None:
    fences: list[Fence] = []
    for shard in range(store.shards):
        fence = await store.lease(shard, "bench", None, 1 << 40)
        assert fence is not None
        fences.append(fence)
    await fill(store, fences, RUNS)
    for fence in fences:
        await store.release(fence)


async def _asked(report: Report, kind: str, place: str | Path) -> None:
    async with Engine(place, settings=AS_SERVED) as engine, served(engine) as service:
        for name, query in _filters().items():
            report.doing(f"GET /runs on {kind}, {name}")
            request = service.request("GET", f"/api/v1/runs?{query}")
            asked = await service.load([request] * ASKED, 1, " 200 ")
            report.figure(f"GET /runs of {RUNS:,} on {kind}, {name}, p95", asked.percentile(0.95), "ms", BAR_MS)
            report.figure("    p50", asked.percentile(0.5), "ms")
