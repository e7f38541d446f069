"""Queue work in an engine: makes offers, notices expired claims, and claims work like any worker.

Owns how these parts are put together. `Core` knows nothing of it: on a store without claims, an engine executes its
queue work itself. The only engine of a store claims under a name that does not change: its next life knows that claims
of this name are those of a dead process, and ends them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from random import Random

from treadle.runtime.command.commander import Commander
from treadle.runtime.deliver.core import Core
from treadle.runtime.execute.workshop import THREADS_MAX
from treadle.runtime.queue.cannot_execute import CannotExecute
from treadle.runtime.queue.claimant import IDLE_S, LEASE_MS, Claimant
from treadle.runtime.queue.offers import ENGINES, ClaimSweep, wake_queues, with_offers
from treadle.runtime.surroundings.ports import Clock, MakeExecutor
from treadle.store.notices import CHANGED, MISSED, WORK, Notices
from treadle.store.work import WorkStore

ALONE = "engine"
"""The name under which the only engine of a store claims."""
IDLE_ALONE_S = 60.0
"""How often the only engine of a store looks for work without a notice: it makes all offers itself. Work that a worker
in another process gives back may wait this long for the engine, if the notice of it is lost."""


class EngineQueues:
    """See the module's docstring. Made before the core owns any run."""

    def __init__(
        self,
        core: Core,
        commander: Commander,
        work: WorkStore,
        notices: Notices,
        make_executor: MakeExecutor,
        clock: Clock,
        *,
        worker: str,
        queues: Mapping[str, int] | None,
        lease_ms: int = LEASE_MS,
        random: Random | None = None,
        cannot_execute: CannotExecute | None = None,
    ) -> None:
        self._notices = notices
        self._bell = commander.bell
        notices.hear(WORK, self._bell.ring)
        if queues is not None:
            queues = {**queues, ENGINES: THREADS_MAX}
        self.claimant = Claimant(
            commander,
            work,
            make_executor,
            clock,
            worker=worker,
            queues=queues,
            lease_ms=lease_ms,
            random=random,
            cannot_execute=cannot_execute,
            idle_s=IDLE_S if core.shards.is_shared else IDLE_ALONE_S,
        )
        self.claimant.cannot_execute.hear(self._bell.ring)
        self._work = work
        self.sweep = ClaimSweep(core.coordinator, work, clock, lease_ms)
        self._bell.leased = self.sweep.leased
        self._core = core
        shape = partial(with_offers, limits=core.shards.is_shared, tracing=core.tracing)
        core.offer_work(shape, partial(wake_queues, self._offered))
        listen(notices, self.claimant)

    async def bury_predecessor(self) -> None:
        """The last life of the only engine is dead: its work is lost now, not when its claims have run out."""
        await self._work.bury(ALONE)

    def open(self) -> None:
        """Begins to claim work and to look for expired claims."""
        moved = self._core.on_moved

        def on_moved() -> None:
            moved()
            self.sweep.soon()

        self._core.on_moved = on_moved
        self.sweep.open()
        self.sweep.soon()  # shards taken before this may have claims that expired with their last owner
        self.claimant.open()

    async def close(self, grace_ms: int) -> None:
        """Called while the runs are still owned here, so that they hear of the work that is given back."""
        self.sweep.close()
        await self.claimant.close(grace_ms)

    def _offered(self, queue: str) -> None:
        self.sweep.offered()
        self.claimant.wake(queue)
        self._bell.ring(queue)
        self._notices.say(WORK, queue)


def listen(notices: Notices, claimant: Claimant) -> None:
    """Wakes the claimant when other processes announce work or changed rules."""
    notices.hear(WORK, claimant.wake)
    for kind in (CHANGED, MISSED):
        notices.hear(kind, _ignoring_name(claimant.changed))


def _ignoring_name(heard: Callable[[], None]) -> Callable[[str], None]:
    return lambda _name: heard()
