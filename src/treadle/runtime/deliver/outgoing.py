"""Delivers outbox rows to the outside: tries until the receiver accepts, and gives up after several tries.

Owns retries and dead letters; a courier makes one try. If the worker of a webhook cannot be reached, the attempt fails,
so that the node's own retry and failure routes apply; it may be retried unless the worker has refused (2.6). Any other
row that cannot be delivered becomes a dead letter, which an operator may requeue. Messages of one run are carried in
the order of commit, those of different runs side by side. A webhook waits for no other row: workers of one run do not
depend on each other. How many messages may be under way is the courier's business (`turn`).
"""

from __future__ import annotations

import asyncio
import zlib
from collections import deque
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from treadle.expression.backoff import delay_ms
from treadle.kernel.defined import defining
from treadle.kernel.state import RunState
from treadle.kernel.view import TokenView
from treadle.model import commands as c
from treadle.model import effects as f
from treadle.model.definition import Retry
from treadle.model.errors import Error
from treadle.model.ids import RUN_GATE, RunId, visit_key
from treadle.model.states import GateState
from treadle.runtime.coordinate.coordinator import Coordinator
from treadle.runtime.surroundings.logs import logger
from treadle.runtime.surroundings.ports import Answered, Clock, Courier, Tracing, Undeliverable
from treadle.store.port import OutboxRow

TRIES = Retry(max_attempts=8, backoff="exponential", initial_delay_ms=500, max_delay_ms=60_000, jitter=0.25)
"""Eight tries over some two minutes outlast a restart of the receiver; a longer outage is for an operator. A webhook
with an `execution.retry_policy` of its own is tried by that. The jitter keeps messages that failed together from coming
back together."""

Line = tuple[RunId, int]
"""A run, and 0 for its messages or the row of a webhook: rows of one line are carried one after the other."""

log = logger("treadle.outgoing")


class Outgoing:
    """See the module's docstring."""

    def __init__(
        self, coordinator: Coordinator, courier: Courier, clock: Clock, tracing: Tracing | None = None
    ) -> None:
        self._tracing = tracing
        self._coordinator = coordinator
        self._courier = courier
        self._clock = clock
        self._lines: dict[Line, deque[OutboxRow]] = {}
        self._tasks: dict[asyncio.Task[None], RunId] = {}
        self._closed = False

    def carry(self, row: OutboxRow) -> None:
        """Delivers a row, after the earlier ones of its line. Returns at once."""
        if self._closed:
            return  # it stays in the outbox
        name = (row.run, row.id if isinstance(row.effect, f.CallWebhook) else 0)
        line = self._lines.get(name)
        if line is not None:
            if all(waiting.id != row.id for waiting in line):  # recovery delivers it again
                line.append(row)
            return
        self._lines[name] = deque([row])
        task = asyncio.get_running_loop().create_task(self._work_off(name))
        self._tasks[task] = row.run
        task.add_done_callback(self._tasks.pop)

    def drop_unless(self, is_kept: Callable[[RunId], bool]) -> None:
        """Stops delivering rows of the other runs: their new owner delivers them."""
        for task, run in self._tasks.items():
            if not is_kept(run):
                task.cancel()
        self._lines = {line: rows for line, rows in self._lines.items() if is_kept(line[0])}

    async def wait_idle(self) -> None:
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

    async def _work_off(self, name: Line) -> None:
        line = self._lines[name]
        while line:
            row = line[0]
            try:
                outcome = await self._deliver(row)
            except Exception as defect:  # of Treadle or of a definition: later rows of the run must still be delivered
                log.error("a delivery cannot be made", run=row.run, row=row.id, exc_info=defect)
                outcome = _GivenUp(f"{type(defect).__name__}: {defect}", is_final=True)
            line.popleft()
            if isinstance(outcome, _GivenUp):
                self._give_up(row, outcome)
            elif isinstance(outcome, Answered) and isinstance(row.effect, f.CallWebhook):
                answer = c.ReceiveCallback(row.effect.token, row.effect.attempt, outcome.output, spent=outcome.spent)
                self._coordinator.tell(row.run, answer, row.id)
            else:
                self._coordinator.settle(row.id)
        del self._lines[name]

    async def _deliver(self, row: OutboxRow) -> Answered | _GivenUp | None:
        """Returns None or the worker's answer when the receiver has accepted, else the reason why it has not."""
        context = await self._context(row)
        tries = 0
        while context is not None:
            retry: Retry = context.get("retry") or TRIES
            try:
                async with self._courier.turn(row.effect, context):
                    context = await self._context(row)  # the turn may have taken long
                    if context is not None:
                        return await self._courier.carry(row.run, row.effect, context)
            except Undeliverable as refused:
                return _GivenUp(str(refused), is_final=True)
            except Exception as problem:
                tries += 1
                reason = f"{type(problem).__name__}: {problem}"
                log.info("a delivery failed", run=row.run, row=row.id, attempt=tries, error=reason)
                if tries >= retry.max_attempts:
                    return _GivenUp(f"gave up after {tries} {'try' if tries == 1 else 'tries'}: {reason}")
                await self._pause(delay_ms(retry, tries, _unit(row, tries)))
                context = await self._context(row)
        return None  # the visit has moved on: the message is not wanted any more

    async def _context(self, row: OutboxRow) -> _Context | None:
        """The data a courier needs now; None if the message is not wanted any more."""
        state, effect = await self._coordinator.state(row.run), row.effect
        context = context_of(state, row)
        if (
            context is not None
            and state is not None
            and self._tracing is not None
            and isinstance(effect, f.CallWebhook)
        ):
            context["trace"] = self._tracing.carried(row.run, state.trace, effect.token, effect.attempt)
        return context

    async def _pause(self, ms: int) -> None:
        future = self._coordinator.future()
        alarm = self._clock.call_at(self._clock.now() + ms, lambda: _release(future))
        try:
            await future
        finally:
            alarm.cancel()

    def _give_up(self, row: OutboxRow, given_up: _GivenUp) -> None:
        effect = row.effect
        if isinstance(effect, f.CallWebhook):
            text = f"the worker of node {effect.node!r} could not be called: {given_up.reason}"
            error = Error(kind="TASK_FAILED", message=text, node=effect.node, retryable=not given_up.is_final)
            self._coordinator.tell(row.run, c.ReceiveCallback(effect.token, effect.attempt, error=error), row.id)
        else:
            self._coordinator.settle(row.id, parked=given_up.reason)


class _GivenUp(Struct, frozen=True):
    """A row that is not delivered."""

    reason: str
    is_final: bool = False
    """No later try would help, either."""


def _unit(row: OutboxRow, tries: int) -> float:
    """The jitter of one pause in [-1, 1): different for every row and try, and the same whenever it is played again."""
    return zlib.crc32(f"{row.run}:{row.id}:{tries}".encode()) / (1 << 31) - 1


def _release(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


_Context = dict[str, Any]


def _webhook(state: RunState, effect: f.CallWebhook) -> _Context | None:
    token = state.tokens.get(effect.token)
    if token is None or token.attempt != effect.attempt:
        return None
    node = defining(state, token)
    task = node.task
    assert task is not None
    action = task.steps[0].action
    config = action.config
    url = node.config.get("url")
    if url is not None:  # it may read data of the visit's scope, which the courier does not have
        config = {**config, "url": url.evaluate(TokenView(state, token.frames, token.last_error, None, token))}
    return {
        "action": config,
        "retry": action.execution.retry_policy if action.execution is not None else None,
        "key": visit_key(state.run, effect.token, token.retries),
        "path": token.path,
    }


def _gate(state: RunState, effect: f.OpenGate | f.RemindGate | f.EscalateGate) -> _Context | None:
    """The context of a message about a gate: the gate as it was opened, and the person who has claimed it since."""
    if effect.token == RUN_GATE:
        title = effect.title if isinstance(effect, f.OpenGate) else None
        return {"gate": {"node_id": None, "title": title}} if state.has_gate else None
    token = state.tokens.get(effect.token)
    if token is None or token.gate is not GateState.OPEN or token.asked is None:
        return None
    asked, detail = token.asked.opened, token.detail or {}
    return {
        "gate": {
            "node_id": token.node,
            "title": asked.title,
            "description": asked.description,
            "assign": asked.assign,
            "escalated": token.asked.escalated,
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
    f.EscalateGate: _gate,
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
