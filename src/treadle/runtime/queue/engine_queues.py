"""Queue work in an engine on a shared store: makes offers, notices expired claims, and claims work like any worker.

Owns how these parts are put together. `Core` knows nothing of it: on a store without claims, an engine executes its
queue work itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from random import Random

from treadle.runtime.base.ports import Clock, MakeExecutor
from treadle.runtime.command.commander import Commander
from treadle.runtime.deliver.core import Core
from treadle.runtime.execute.workshop import THREADS_MAX
from treadle.runtime.queue.cannot_execute import CannotExecute
from treadle.runtime.queue.claimant import LEASE_MS, Claimant
from treadle.runtime.queue.offers import ENGINES, ClaimSweep, wake_queues, with_offers
from treadle.store.notices import CHANGED, MISSED, WORK, Notices
from treadle.store.work import WorkStore


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
        )
        self.sweep = ClaimSweep(core.coordinator, work, clock, lease_ms)
        self._core = core
        core.offer_work(with_offers, partial(wake_queues, self._offered))
        listen(notices, self.claimant)

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
        self.claimant.wake(queue)
        self._notices.say(WORK, queue)


def listen(notices: Notices, claimant: Claimant) -> None:
    """Wakes the claimant when other processes announce work or changed rules."""
    notices.hear(WORK, claimant.wake)
    for kind in (CHANGED, MISSED):
        notices.hear(kind, _ignoring_name(claimant.changed))


def _ignoring_name(heard: Callable[[], None]) -> Callable[[str], None]:
    return lambda _name: heard()
