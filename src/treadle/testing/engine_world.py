"""A world with the real engine in it: `runtime.Core` on any store, the same script, the same virtual clock.

Owns the event loop everything lives on. Promises what `World` promises, so that a scenario can be played on either; the
same scenario must hold on both. Must not decide or keep anything itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from treadle.kernel.state import RunState
from treadle.model.commands import StartRun
from treadle.model.definition import Workflow
from treadle.model.errors import Rejection
from treadle.model.events import Event
from treadle.model.ids import RunId
from treadle.model.references import EntityRef
from treadle.store.port import RunQuery
from treadle.testing.catalog import Deployed
from treadle.testing.fuse import Crashed
from treadle.testing.mocks import Script
from treadle.testing.real_engine import RealEngine
from treadle.testing.scenario import Outcome
from treadle.testing.stores import MemoryPlace, StorePlace
from treadle.testing.surroundings import Surroundings
from treadle.testing.world import World


class EngineWorld(World):
    """See the module's docstring. `place` is where its store is; close the world to let go of it."""

    def __init__(
        self,
        mocks: Mapping[str, Sequence[Outcome]] | None = None,
        seed: int | None = None,
        place: StorePlace | None = None,
    ) -> None:
        self._place = place or MemoryPlace()
        self._loop = self._place.loop or asyncio.new_event_loop()
        self._heads: dict[RunId, int] = {}
        super().__init__(mocks, seed)

    def _surround(self, script: Script, random: Random | None) -> Surroundings:
        wait = self._loop.run_until_complete
        return Surroundings(script, random, wait(self._place.open()), wait)

    def _first_engine(self) -> RealEngine:
        return self._opened()

    def _next_engine(self) -> RealEngine:
        self._real.die()
        self.workers.lose_everything()
        self._around.store = self._loop.run_until_complete(self._place.reopen(self._around.store))
        return self._opened()

    def _opened(self) -> RealEngine:
        """An engine that has recovered; one that dies of it is replaced like any other."""
        while True:
            engine = RealEngine(self._around, self._loop, self._heads)
            try:
                engine.open()
            except Crashed as crash:
                engine.die()
                self.clock.advance(crash.down_ms)
            else:
                return engine

    @property
    def _real(self) -> RealEngine:
        assert isinstance(self.engine, RealEngine)
        return self.engine

    def close(self) -> None:
        self._real.die()
        self._loop.run_until_complete(self._place.close(self._around.store))
        if self._place.loop is None:
            self._loop.close()

    def deploy(self, workflow: Workflow) -> Deployed:
        deployed = super().deploy(workflow)
        self._real.look()
        return deployed

    def start(
        self,
        workflow: str,
        input: Any = None,
        *,
        entity: EntityRef | None = None,
        idempotency_key: str | None = None,
        name: str | None = None,
    ) -> RunId | Rejection:
        """As in `World`; whether a key is taken and which version is the newest the engine finds out itself."""
        run = self._free_id(name or workflow)
        command = StartRun(run=run, input=input, version=0, entity=entity, idempotency_key=idempotency_key)
        rejection = self._ask(lambda: self.engine.start(workflow, None, command))
        if rejection is not None:
            return rejection
        if idempotency_key is not None:
            query = RunQuery(workflow=workflow, idempotency_key=idempotency_key)
            (known,) = self._around.wait(self._around.store.find_runs(query))
            return known.run
        return run

    def _history(self, run: RunId, after: int = 0) -> list[Event]:
        return super()._history(run, after) if after < self._heads[run] else []

    def check(self) -> list[str]:
        changed = [run for run in self.runs if self._checked.get(run) != self._heads[run]]
        found = [f"{run}: {problem}" for run in changed for problem in self._check_run(run)]
        complaints, self._real.doorway.complaints = self._real.doorway.complaints, []
        return found + complaints

    def state(self, run: RunId) -> RunState:
        state = super().state(run)
        assert state.seq == self._heads[run], f"{run} is at {state.seq} in memory, at {self._heads[run]} in the store"
        return state
