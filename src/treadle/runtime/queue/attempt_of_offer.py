"""OfferWork → Attempt: makes an attempt from an offer and the deployed version, without folding the run.

Owns the view that claimed work has of its artifacts: the run is read only when the work asks for an artifact. Must not
execute.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

from treadle.actions.protocol import AttemptFacts
from treadle.errors import StoreUnavailable
from treadle.model.commands import FailAttempt
from treadle.model.effects import OfferWork
from treadle.model.errors import Error
from treadle.model.ids import RunId
from treadle.runtime.command.commander import Commander
from treadle.runtime.execute.artifacts import lineage
from treadle.runtime.execute.attempt_of_run import StoredArtifacts
from treadle.runtime.surroundings.ports import Attempt
from treadle.store.work import Claimed


async def attempt_of(
    claimed: Claimed, commander: Commander, emit: Callable[[str, Any], None], random: Random | None
) -> Attempt | FailAttempt:
    """The attempt a claim is for; a FailAttempt if its version is not deployed or cannot be read here. Raises
    StoreUnavailable."""
    run, offer = claimed.run, claimed.offer
    text = f"{offer.workflow} version {offer.version}"
    try:
        graph = await commander.library.graph(offer.workflow, offer.version)
    except StoreUnavailable:
        raise
    except Exception as problem:  # for instance, a newer Treadle wrote it: a worker may be older than its engines
        return _failed(offer, f"{text} cannot be read here: {type(problem).__name__}: {problem}")
    if graph is None:
        return _failed(offer, f"{text} is not deployed on this store")
    task = graph.definition.nodes[offer.node].task
    assert task is not None, "only a node with a task is offered"
    facts = AttemptFacts(
        run=run,
        token=offer.token,
        attempt=offer.attempt,
        node=offer.node,
        workflow=offer.workflow,
        path=offer.path,
        retries=offer.retries,
        branch=offer.branch,
        cel_bytes_max=graph.cel_bytes_max,
        about=None if offer.about is None else lambda: offer.about,
        artifacts=OfferedArtifacts(commander.store, run, asyncio.get_running_loop(), commander.state),
        jitter=None if random is None else lambda: random.uniform(-1.0, 1.0),
        emit=emit,
        trace=offer.trace,
    )
    # No queue and no slot: the claim already holds both.
    return Attempt(run, offer.token, offer.attempt, offer.node, task, offer.input, facts=facts)


def _failed(offer: OfferWork, why: str) -> FailAttempt:
    return FailAttempt(offer.token, offer.attempt, Error("NOT_FOUND", why, node=offer.node))


class OfferedArtifacts(StoredArtifacts, eq=False):
    """Artifacts of a run that is read when the work first asks for a name."""

    def _lineage(self) -> list[dict[str, Any]]:
        return [bound for _run, bound in self._wait(self._read())]

    async def _read(self) -> list[tuple[RunId, dict[str, Any]]]:
        state = await self.read_state(self.run)
        return [] if state is None else await lineage(state, self.read_state)
