"""RunTask → Attempt: everything an executor has to know, out of a run's state.

Owns how an attempt sees its artifacts: names as the run's own state binds them, bytes from the store. Must not execute.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from random import Random
from typing import Any, TypeVar

from treadle.actions.protocol import AttemptFacts
from treadle.expression.paths import MISSING
from treadle.kernel.state import RunState
from treadle.kernel.view import branch_of
from treadle.model.effects import RunTask
from treadle.model.ids import RunId, dispatch_key
from treadle.model.requests import WriteArtifact
from treadle.runtime.ports import Attempt
from treadle.runtime.progress import Progress
from treadle.store.port import Store

T = TypeVar("T")
ReadState = Callable[[RunId], Awaitable[RunState | None]]


class Facts:
    """Makes attempts."""

    def __init__(self, store: Store, read_state: ReadState, progress: Progress, random: Random | None) -> None:
        self._progress = progress
        self._store = store
        self._read_state = read_state
        self._jitter = None if random is None else lambda: random.uniform(-1.0, 1.0)
        self._loop = asyncio.get_running_loop()

    def attempt(self, state: RunState, effect: RunTask) -> Attempt | None:
        """The attempt an effect asks for; None if the visit has moved on meanwhile."""
        token = state.tokens.get(effect.token)
        if token is None or token.attempt != effect.attempt:
            return None
        node = state.graph.definition.nodes[effect.node]
        undo = effect.record is not None
        task = (node.compensate.task if node.compensate else None) if undo else node.task
        assert task is not None, "only a node with a task is dispatched"
        branch = branch_of(state, token.frames)
        facts = AttemptFacts(
            run=state.run,
            token=effect.token,
            attempt=effect.attempt,
            node=effect.node,
            key=dispatch_key(state.run, effect.token, effect.attempt),
            workflow=state.graph.workflow_name,
            path=token.path,
            branch=None if branch is MISSING else branch,
            artifacts=RunArtifacts(self._store, state, self._read_state, self._loop),
            jitter=self._jitter,
            emit=self._progress.teller((state.run, effect.token, effect.attempt)),
        )
        return Attempt(
            state.run,
            effect.token,
            effect.attempt,
            effect.node,
            task,
            effect.input,
            facts,
            effect.queue,
            effect.slot,
            effect.record,
        )


class RunArtifacts:
    """What one attempt sees: its run's names, then those of the ancestors it inherits from. Called from other threads
    only (see `actions.blobs.Artifacts`): it waits for the loop."""

    def __init__(self, store: Store, state: RunState, read_state: ReadState, loop: asyncio.AbstractEventLoop) -> None:
        self._store = store
        self._state = state
        self._read_state = read_state
        self._loop = loop

    def put(self, content: bytes) -> str:
        return self._wait(self._store.put_blob(self._state.run, content))

    def get(self, digest: str) -> bytes | None:
        return self._wait(self._store.get_blob(digest))

    def find(self, name: str) -> WriteArtifact | None:
        for bound in self._lineage():
            if name in bound:
                return WriteArtifact(name=name, **bound[name])
        return None

    def names(self) -> list[str]:
        return sorted({name for bound in self._lineage() for name in bound})

    def _lineage(self) -> list[dict[str, Any]]:
        return self._wait(self._read_lineage())

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _read_lineage(self) -> list[dict[str, Any]]:
        lineage = [dict(self._state.artifacts)]
        parent = self._state.parent
        while parent is not None and parent.inherits_artifacts:
            above = await self._read_state(parent.run)
            if above is None:
                break
            lineage.append(dict(above.artifacts))
            parent = above.parent
        return lineage
