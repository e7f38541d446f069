"""RunTask → Attempt: collects everything an executor has to know from the state of a run.

Owns the view that an attempt has of its artifacts: names as the run's own state binds them, bytes from the store. Must
not execute.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from random import Random
from typing import Any, TypeVar

from msgspec import Struct

from treadle.actions.protocol import AttemptFacts
from treadle.kernel.defined import defining
from treadle.kernel.identity import run_facts
from treadle.kernel.state import RunState
from treadle.kernel.view import branch_of
from treadle.model.effects import RunTask
from treadle.model.ids import RunId
from treadle.model.requests import WriteArtifact
from treadle.model.states import TokenState
from treadle.runtime.execute.artifacts import ReadState, lineage
from treadle.runtime.execute.progress import Progress
from treadle.runtime.surroundings.ports import Attempt, Tracing
from treadle.store.port import Store

T = TypeVar("T")

AT_WORK = (TokenState.DISPATCHED, TokenState.EXECUTING)
"""States in which the work of a visit may begin. A visit that has executed may keep its attempt number while it waits
for siblings: its work must not begin again."""


class AttemptMaker:
    """Makes attempts of `RunTask` effects."""

    def __init__(
        self,
        store: Store,
        read_state: ReadState,
        progress: Progress,
        random: Random | None,
        tracing: Tracing | None = None,
    ) -> None:
        self._tracing = tracing
        self._progress = progress
        self._store = store
        self._read_state = read_state
        self._jitter = None if random is None else lambda: random.uniform(-1.0, 1.0)
        self._loop = asyncio.get_running_loop()
        self._artifacts: RunArtifacts | None = None
        """Artifacts of the run asked for last: the branches of a fan-out share them."""
        self._about: Callable[[], Any] | None = None
        """Makes the `_run` value of the same run."""

    def attempt(self, state: RunState, effect: RunTask) -> Attempt | None:
        """The attempt that an effect asks for; None if the visit has moved on since."""
        token = state.tokens.get(effect.token)
        if token is None or token.attempt != effect.attempt or token.state not in AT_WORK:
            return None
        node = defining(state, token).definition
        undo = effect.record is not None
        task = (node.compensate.task if node.compensate else None) if undo else node.task
        assert task is not None, "only a node with a task is dispatched"
        branch = branch_of(state, token.frames) if token.frames else None
        artifacts = self._artifacts
        if artifacts is None or artifacts.state is not state:
            artifacts = self._artifacts = RunArtifacts(self._store, state.run, self._loop, self._read_state, state)
            self._about = partial(run_facts, state)
        facts = AttemptFacts(
            run=state.run,
            token=effect.token,
            attempt=effect.attempt,
            node=effect.node,
            workflow=state.graph.workflow_name,
            path=token.path,
            retries=token.retries,
            branch=branch,
            about=self._about,
            cel_bytes_max=state.graph.cel_bytes_max,
            artifacts=artifacts,
            jitter=self._jitter,
            emit=self._progress.teller((state.run, effect.token, effect.attempt)),
            trace=None
            if self._tracing is None
            else self._tracing.carried(state.run, state.trace, effect.token, effect.attempt),
        )
        return Attempt(
            state.run,
            effect.token,
            effect.attempt,
            effect.node,
            task,
            effect.input,
            facts=facts,
            queue=effect.queue,
            slot=effect.slot,
            record=effect.record,
        )


class StoredArtifacts(Struct, eq=False):
    """The artifacts one attempt sees: its run's names, then those of the ancestors it inherits from. Called from other
    threads only (see `actions.blobs.Artifacts`), because it blocks until the event loop answers."""

    store: Store
    run: RunId
    loop: asyncio.AbstractEventLoop
    read_state: ReadState

    def put(self, content: bytes) -> str:
        return self._wait(self.store.put_blob(self.run, content))

    def get(self, digest: str) -> bytes | None:
        return self._wait(self.store.get_blob(digest))

    def find(self, name: str) -> WriteArtifact | None:
        for bound in self._lineage():
            if name in bound:
                return WriteArtifact(name=name, **bound[name])
        return None

    def names(self) -> list[str]:
        return sorted({name for bound in self._lineage() for name in bound})

    def _lineage(self) -> list[dict[str, Any]]:
        """The names that each run binds, nearest run first."""
        raise NotImplementedError

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()


class RunArtifacts(StoredArtifacts, eq=False):
    """Artifacts of a run whose state is in memory."""

    state: RunState

    def _lineage(self) -> list[dict[str, Any]]:
        return [bound for _run, bound in self._wait(lineage(self.state, self.read_state))]
