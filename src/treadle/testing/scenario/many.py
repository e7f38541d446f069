"""Many scenarios, on several cores where that is worth it.

Owns the processes. Promises results in the order of the scenarios, each as it is there. Must not know how a scenario is
played.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Iterator, Sequence
from functools import partial

from treadle.testing.scenario.documents import Document
from treadle.testing.scenario.runner import ScenarioResult, run_document
from treadle.testing.world.store_names import NoPostgres, StoreName

WORTH_IT = 40
"""Scenarios per process: a second of playing on a real store, as long as a process takes to begin."""
CHUNK = 4
"""Scenarios a process takes at a time: they differ in length."""


def run_documents(documents: Sequence[Document], store: StoreName, jobs: int = 0) -> Iterator[ScenarioResult]:
    """Plays them all; `jobs` 0: as many processes as it is worth. Raises NoPostgres."""
    where = _found(store)
    processes = jobs or (1 if store == "memory" else min(os.cpu_count() or 1, len(documents) // WORTH_IT))
    if processes <= 1:
        yield from (run_document(document, store) for document in documents)
        return
    with multiprocessing.get_context("spawn").Pool(processes, _begin, (sys.path, where)) as pool:
        yield from pool.imap(partial(run_document, store=store), documents, CHUNK)
        pool.close()
        pool.join()  # each of them leaves its schema before the server goes


def _found(store: StoreName) -> dict[str, str]:
    """What a process has to know to find the store of this one."""
    if store != "postgres":
        return {}
    try:
        from treadle.testing.world.postgres import NAMED, server
    except ImportError as missing:
        raise NoPostgres(f"{missing}: `pip install 'treadle[postgres]'`") from missing
    return {NAMED: server()}


def _begin(path: list[str], where: dict[str, str]) -> None:
    sys.path[:] = path
    os.environ.update(where)
