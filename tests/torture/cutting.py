"""`python -m tests.torture.cutting [--cuts N] [--seed S]`: records an engine at work, cuts the power at any moment, and
looks whether every acknowledged commit is there and the file is whole.

Owns the workload, the cuts and what counts as a loss: a run whose history is shorter than its client was told, a
workflow that is gone, a damaged file, or anything `fsck` finds.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from pathlib import Path

from msgspec import Struct

from tests.torture.engine import DATABASE
from tests.torture.inside import play
from tests.torture.journeys import KINDS
from tests.torture.power import Disk, Op, Recorder
from treadle.model.ids import RunId
from treadle.runtime.operate.fsck import check_store
from treadle.store.port import Batch, Fence, Json, OutboxRow, RunQuery, StoredDocument
from treadle.store.sqlite import SqliteStore

CHECKPOINT_PAGES = 40
"""Checkpoints are the delicate part; with the usual thousand pages a short workload has none."""


class Cuts(Struct):
    """What a series of cuts has shown."""

    cuts: int = 0
    told: int = 0
    """Acknowledged commits, in the whole recording."""
    syncs: int = 0
    checked: int = 0
    """Acknowledgements looked for, over all cuts."""
    losses: list[str] = []


class TellingStore(SqliteStore):
    """Marks in the recording what it has promised."""

    recorder: Recorder

    async def commit(self, batch: Batch, fence: Fence) -> list[OutboxRow]:  # type: ignore[override]
        rows = await super().commit(batch, fence)
        self.recorder.told({commit.run: commit.events[-1].seq for commit in batch.commits if commit.events})
        return rows

    async def put_document(
        self, kind: str, name: str, hash: str, body: Json, expected: int | None = None
    ) -> StoredDocument:
        document = await super().put_document(kind, name, hash, body, expected)
        self.recorder.told({f"{kind} {name}": document.version})
        return document


def record(place: Path, seed: int, lies: bool = False) -> list[Op]:
    """An engine with a crowd of runs, on the recorder."""
    recorder = Recorder(lies)

    async def work() -> None:
        store = await TellingStore.open(place / DATABASE)
        assert isinstance(store, TellingStore) and store._writer is not None
        store.recorder = recorder
        await store._writer.do(lambda connection: connection.wal_autocheckpoint(CHECKPOINT_PAGES))
        await play(place, store, seed, actors=2, kinds=KINDS)

    try:
        asyncio.run(work())
    finally:
        recorder.unregister()
    return recorder.log


def cut_often(log: list[Op], count: int, seed: int, place: Path) -> Cuts:
    """`count` cuts of one recording, half of them right after something was promised."""
    chance = random.Random(seed)
    promises = [number + 1 for number, op in enumerate(log) if op.kind == "told"]
    moments = sorted(
        chance.choice(promises) if chance.random() < 0.5 else chance.randrange(1, len(log) + 1) for _ in range(count)
    )
    done = Cuts(told=len(promises), syncs=sum(op.kind == "sync" for op in log), losses=[])
    disk, promised, position = Disk(), dict[str, int](), 0
    for moment in moments:
        for op in log[position:moment]:
            promised |= op.told or {}
            disk.take(op)
        position = moment
        with tempfile.TemporaryDirectory(dir=place) as home:
            disk.cut(Path(home), chance)
            losses = asyncio.run(_losses(Path(home) / DATABASE, promised))
        done.cuts += 1
        done.checked += len(promised)
        done.losses += [f"cut at {moment} of {len(log)}: {loss}" for loss in losses]
    return done


async def _losses(database: Path, promised: dict[str, int]) -> list[str]:
    if not promised:
        return []
    if not database.exists():
        return ["there is no database"]
    try:
        store = await SqliteStore.open(database)
    except Exception as problem:  # whatever a damaged file makes of reading it is the loss
        return [f"cannot be opened: {problem!r}"]
    try:
        found = {row.run: row.seq for row in await store.find_runs(RunQuery(limit=100_000))}
        for kind in {what.partition(" ")[0] for what in promised if " " in what}:
            found |= {RunId(f"{kind} {document.name}"): document.version for document in await store.documents(kind)}
        losses = [
            f"{what} was promised up to {least}, there is {found.get(what)}"  # type: ignore[call-overload]
            for what, least in promised.items()
            if found.get(what, 0) < least  # type: ignore[call-overload]
        ]
        checked = await check_store(store)
        return losses + await store.integrity() + [f"fsck: {finding.message}" for finding in checked.findings]
    except Exception as problem:
        return [f"cannot be read: {problem!r}"]
    finally:
        await store.close()


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.torture.cutting")
    parser.add_argument("--cuts", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args(arguments)
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 31)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="treadle-power-") as temporary:
        log = record(Path(temporary), seed)
        done = cut_often(log, options.cuts, seed, Path(temporary))
    text = f"seed {seed}: {done.cuts} cuts, {done.told} promises, {done.syncs} syncs, {done.checked} looked for"
    sys.stdout.write(f"{text}, {len(done.losses)} losses, {time.monotonic() - began:.0f} s\n")
    sys.stdout.write("".join(f"✗ {loss}\n" for loss in done.losses[:20]))
    return 1 if done.losses else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
