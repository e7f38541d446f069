"""Delivers outbox rows to the outside: tries until the receiver accepts, and gives up after several tries.

Owns retries and dead letters; a courier makes one try. If the worker of a webhook cannot be reached, the attempt fails,
so that the node's own retry and failure routes apply. Any other row that cannot be delivered becomes a dead letter,
which an operator may requeue. Rows of one run are carried in the order of commit, rows of different runs side by side.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from treadle.kernel.state import RunState
from treadle.kernel.view import TokenView
from treadle.model import commands as c
from treadle.model import effects as f
from treadle.model.errors import Error
from treadle.model.ids import RUN_GATE, RunId, visit_key
from treadle.model.states import GateState
from treadle.runtime.base.logs import logger
from treadle.runtime.base.ports import Clock, Courier, Undeliverable
from treadle.runtime.coordinate.coordinator import Coordinator
from treadle.store.port import OutboxRow

TRIES_MAX = 8
FIRST_DELAY_MS, LAST_DELAY_MS = 500, 60_000
"""Eight tries over some two minutes outlast a restart of the receiver; a longer outage is for an operator."""
CARRIED_AT_ONCE = 64
"""Connections a courier may have open at a time: thousands of webhooks at once must not use up all sockets."""

log = logger("treadle.outgoing")


class Outgoing:
    """See the module's docstring."""

    def __init__(self, coordinator: Coordinator, courier: Courier, clock: Clock) -> None:
        self._coordinator = coordinator
        self._courier = courier
        self._clock = clock
        self._lines: dict[RunId, deque[OutboxRow]] = {}
        self._room = asyncio.Semaphore(CARRIED_AT_ONCE)
        self._tasks: dict[asyncio.Task[None], RunId] = {}
        self._closed = False

    def carry(self, row: OutboxRow) -> None:
        """Delivers a row after the earlier rows of its run. Returns at once."""
        if self._closed:
            return  # it stays in the outbox
        line = self._lines.get(row.run)
        if line is not None:
            if all(waiting.id != row.id for waiting in line):  # recovery delivers it again
                line.append(row)
            return
        self._lines[row.run] = deque([row])
        task = asyncio.get_running_loop().create_task(self._work_off(row.run))
        self._tasks[task] = row.run
        task.add_done_callback(self._tasks.pop)

    def drop_unless(self, is_kept: Callable[[RunId], bool]) -> None:
        """Stops delivering rows of the other runs: their new owner delivers them."""
        for task, run in self._tasks.items():
            if not is_kept(run):
                task.cancel()
                self._lines.pop(run, None)

    async def wait_idle(self) -> None:
        """Waits until every row has been delivered or given up."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def settled(self) -> None:
        """Waits until every row has been delivered or given up."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def close(self) -> None:
        """Stops deliveries under way: their rows stay in the outbox, and the next owner delivers them."""
        self._closed = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _work_off(self, run: RunId) -> None:
        line = self._lines[run]
        while line:
            row = line[0]
            try:
                problem = await self._deliver(row)
            except Exception as defect:  # of Treadle or of a definition: later rows of the run must still be delivered
                log.error("a delivery cannot be made", run=row.run, row=row.id, exc_info=defect)
                problem = f"{type(defect).__name__}: {defect}"
            line.popleft()
            if problem is None:
                self._coordinator.settle(row.id)
            else:
                self._give_up(row, problem)
        del self._lines[run]

    async def _deliver(self, row: OutboxRow) -> str | None:
        """Returns None when the receiver has accepted, else the reason why it has not."""
        context = context_of(await self._coordinator.state(row.run), row)
        if context is None:
            return None  # the visit has moved on: the message is not wanted any more
        for attempt in range(1, TRIES_MAX + 1):
            try:
                async with self._room:  # not held between tries: a dead receiver must not keep others waiting
                    await self._courier.carry(row.run, row.effect, context)
            except Undeliverable as refused:
                return str(refused)
            except Exception as problem:
                reason = f"{type(problem).__name__}: {problem}"
                log.info("a delivery failed", run=row.run, row=row.id, attempt=attempt, error=reason)
                if attempt == TRIES_MAX:
                    return f"gave up after {attempt} tries: {reason}"
                await self._pause(min(FIRST_DELAY_MS << (attempt - 1), LAST_DELAY_MS))
            else:
                return None
        raise AssertionError("the last try returns")

    async def _pause(self, ms: int) -> None:
        future = self._coordinator.future()
        alarm = self._clock.call_at(self._clock.now() + ms, lambda: _release(future))
        try:
            await future
        finally:
            alarm.cancel()

    def _give_up(self, row: OutboxRow, reason: str) -> None:
        effect = row.effect
        if isinstance(effect, f.CallWebhook):
            text = f"the worker of node {effect.node!r} could not be called: {reason}"
            error = Error(kind="TASK_FAILED", message=text, node=effect.node, retryable=True)
            self._coordinator.tell(row.run, c.ReceiveCallback(effect.token, effect.attempt, error=error), row.id)
        else:
            self._coordinator.settle(row.id, parked=reason)


def _release(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


_Context = dict[str, Any]


def _webhook(state: RunState, effect: f.CallWebhook) -> _Context | None:
    token = state.tokens.get(effect.token)
    if token is None or token.attempt != effect.attempt:
        return None
    task = state.graph.definition.nodes[effect.node].task
    assert task is not None
    config = task.steps[0].action.config
    url = state.graph.nodes[effect.node].config.get("url")
    if url is not None:  # it may read data of the visit's scope, which the courier does not have
        config = {**config, "url": url.evaluate(TokenView(state, token.frames, token.last_error, None, token))}
    return {
        "action": config,
        "key": visit_key(state.run, effect.token, token.retries),
        "path": token.path,
    }


def _gate(state: RunState, effect: f.OpenGate | f.RemindGate) -> _Context | None:
    """The context of a message about a gate: the gate as it was opened, and the person who has claimed it since."""
    if effect.token == RUN_GATE:
        title = effect.title if isinstance(effect, f.OpenGate) else None
        return {"gate": {"node_id": None, "title": title}} if state.is_out_of_time else None
    token = state.tokens.get(effect.token)
    if token is None or token.gate is not GateState.OPEN or token.asked is None:
        return None
    asked, detail = token.asked, token.detail or {}
    return {
        "gate": {
            "node_id": token.node,
            "title": asked.title,
            "assign": asked.assign,
            "form": asked.form,
            "opened": asked.at,
            "due": asked.due,
            "claimed_by": detail.get("claimed_by"),
        }
    }


_CONTEXTS: dict[type[f.Effect], Callable[[RunState, Any], _Context | None]] = {
    f.CallWebhook: _webhook,
    f.OpenGate: _gate,
    f.RemindGate: _gate,
}


def context_of(state: RunState | None, row: OutboxRow) -> _Context | None:
    """The data a courier needs beside the effect; None if the message is not wanted any more."""
    if state is None:
        return None
    more = _CONTEXTS.get(type(row.effect))
    extra = more(state, row.effect) if more is not None else {}
    if extra is None:
        return None
    return {"workflow": state.graph.workflow_name, "key": f"{row.run}:{row.id}", **extra}
