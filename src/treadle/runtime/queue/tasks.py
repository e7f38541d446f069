"""Claims of workers outside: claim, heartbeat, complete, fail, progress. Reached as `Client.tasks`.

Owns the way of such a claim through store and run. Promises:
 1. A task that is given out is claimed in the store and begun in its run, durably, before its worker has it.
 2. The run alone decides whether a result counts: that of the newest holder; or of the last one, if its lease has run
    out and nobody has begun the work since (`kernel.on_answer`).
 3. The same result again is accepted without effect. Anything else that comes late is refused with LATE_RESULT,
    whatever the reason; so are heartbeats.
Must not execute anything, and must not keep anything that a restart would miss: a task's name says where its claim is.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal

from treadle.actions.protocol import AttemptFacts, Done, Failed
from treadle.errors import CommandRefused
from treadle.kernel.depth import is_too_deep, too_deep
from treadle.model import commands as c
from treadle.model.definition import Task
from treadle.model.errors import Error
from treadle.model.spending import report_in
from treadle.model.states import TokenState
from treadle.runtime.command.commander import Commander
from treadle.runtime.execute.task import TaskOutcome
from treadle.runtime.queue.attempt_of_offer import attempt_of
from treadle.runtime.queue.cannot_execute import ASIDE_MAX
from treadle.runtime.queue.outside_attempt import WorkQuestion, is_model, needs_input, outcome_of, question
from treadle.runtime.queue.outside_workers import OutsideWorkers
from treadle.runtime.queue.queue_settings import Rulebook, work_of
from treadle.runtime.queue.task_answers import input_of, was_accepted
from treadle.runtime.queue.task_id import APART, TaskId, read_task_id, task_id
from treadle.runtime.queue.wanted_work import ClaimedTask as ClaimedTask
from treadle.runtime.queue.wanted_work import WorkWanted as WorkWanted
from treadle.runtime.queue.wanted_work import check_lease, check_wanted, named
from treadle.store.port import RunQuery, RunRow
from treadle.store.work import Claim, Claimed

Json = Any

ALIVE_S = 1.0
"""How often a waiting caller is asked whether it still waits: work for one that has gone would be lost for a lease."""
LOOK_S = 5.0
"""How often a waiting caller looks without a ring: a ring of another process may be lost."""
LIMITED_S = 0.2
"""The same for a queue with limits, where work becomes free as time passes or as other work ends."""


async def _always() -> bool:
    return True


class Tasks:
    """See the module's docstring."""

    def __init__(self, commander: Commander) -> None:
        self.commander = commander
        self._work = work_of(commander.store)
        self._rules = Rulebook(commander.store)
        self.workers = OutsideWorkers(commander.store, commander.clock)

    async def claim(
        self,
        wanted: WorkWanted,
        sees: Callable[[str], bool] = lambda _workflow: True,
        is_there: Callable[[], Awaitable[bool]] = _always,
    ) -> list[ClaimedTask]:
        """Claims work, and waits for some if there is none. `sees`: workflows whose work it may have; `is_there`:
        whether the worker still waits. Raises CommandRefused(BAD_REQUEST)."""
        check_wanted(wanted)
        loop, bell = asyncio.get_running_loop(), self.commander.bell
        until = loop.time() + wanted.wait_ms / 1_000
        await self.workers.seen(wanted.worker, wanted.queues, wanted.kinds, wanted.wait_ms)
        while True:
            mark = bell.mark(wanted.queues)
            tasks, limited = await self._look(wanted, sees)
            if tasks:
                bell.leased(wanted.lease_ms)
                return tasks
            again = loop.time() + (LIMITED_S if limited else LOOK_S)
            while True:
                left = min(again, until) - loop.time()
                if left > 0 and not await bell.wait(wanted.queues, mark, min(left, ALIVE_S)):
                    if not await is_there():
                        return []
                    continue
                if loop.time() >= until or not await is_there():
                    return []
                break

    async def heartbeat(self, task: str, lease_ms: int) -> int | None:
        """Renews a claim; returns until when it holds. None: the lease has run out, the work is on offer again, and
        nobody has begun it: its result would still count. Raises CommandRefused."""
        id = read_task_id(task)
        check_lease(lease_ms)
        if not await self._work.renew(id.worker, [id.claim], lease_ms):
            self.commander.bell.leased(lease_ms)
            return self.commander.clock.now() + lease_ms
        if not await self._is_untaken(id):
            raise _late(id)
        return None

    async def complete(self, task: str, output: Json, spent: Json = None) -> None:
        """The work is done. `spent`: what it has used up, {cost, usage}. Raises CommandRefused."""
        if is_too_deep(output):
            raise CommandRefused("BAD_REQUEST", too_deep("the output"))
        await self._answer(read_task_id(task), Done(output), spent)

    async def fail(self, task: str, error: Error, spent: Json = None) -> None:
        """The work has failed; it has `spent` something all the same. Raises CommandRefused."""
        await self._answer(read_task_id(task), Failed(error), spent)

    async def progress(self, task: str, name: str, data: Json) -> None:
        """Reports something while the work goes on. Raises CommandRefused."""
        id = read_task_id(task)
        named("name", name)
        if is_too_deep(data):
            raise CommandRefused("BAD_REQUEST", too_deep("the data"))
        command = c.ReportProgress(id.token, id.attempt, 0, name, data, worker=id.holder)
        answer = await self.commander.ask(id.run, command)
        if answer.rejection is not None:
            raise _late(id)

    def rules_changed(self) -> None:
        """Follows the rules of the queues anew: they were changed in this process."""
        self._rules.forget()
        self.commander.bell.ring()

    async def workflow(self, task: str) -> str | None:
        """The workflow whose work a task is; None if its run is gone."""
        row = await self._row(read_task_id(task))
        return row.workflow if row is not None else None

    # Claiming

    async def _look(self, wanted: WorkWanted, sees: Callable[[str], bool]) -> tuple[list[ClaimedTask], bool]:
        """Claims what is there now; and whether more may become free without a ring."""
        tasks: list[ClaimedTask] = []
        limited = False
        worker = f"{wanted.worker}{APART}{secrets.token_hex(6)}"  # another one for each claim, so that no two are alike
        for queue in wanted.queues:
            left = wanted.limit - len(tasks)
            if left <= 0:
                break
            rules = await self._rules.of(queue)
            limited = limited or rules.is_limited
            aside: list[Claim] = []
            try:
                while left > 0 and len(aside) < ASIDE_MAX:
                    claimed = await self._work.claim(queue, worker, left, wanted.lease_ms, rules)
                    begun = await asyncio.gather(*(self._begin(wanted, sees, one) for one in claimed))
                    tasks += [one for one in begun if isinstance(one, ClaimedTask)]
                    aside += [one.claim for one, task in zip(claimed, begun, strict=True) if task is False]
                    if not any(task is False for task in begun):
                        break
                    left = wanted.limit - len(tasks)
            finally:
                await self._work.give_back(aside)
        return tasks, limited

    async def _begin(
        self, wanted: WorkWanted, sees: Callable[[str], bool], claimed: Claimed
    ) -> ClaimedTask | Literal[False] | None:
        """Begins a claimed offer in its run. False: it is not for this worker, and is given back; None: it is over."""
        offer = claimed.offer
        if not sees(offer.workflow):
            return False
        attempt = await attempt_of(claimed, self.commander, lambda _name, _data: None, None)
        if isinstance(attempt, c.FailAttempt):
            asked: WorkQuestion | TaskOutcome = TaskOutcome(error=attempt.error)
            key = ""
        else:
            asked, key = question(attempt.task, attempt.input, attempt.facts), attempt.facts.key
        if isinstance(asked, WorkQuestion) and wanted.kinds is not None and asked.kind not in wanted.kinds:
            return False
        row = await self._row_of(RunQuery(run=claimed.run, limit=1))
        id = task_id(claimed, row.seq if row is not None else 0)
        start = c.StartAttempt(offer.token, offer.attempt, claimed.holder, recovery=offer.recovery)
        refused = (await self.commander.ask(claimed.run, start)).rejection
        if refused is not None:
            return False if refused.kind == "INVALID_STATE" else None  # a paused run's work waits until it goes on
        if isinstance(asked, TaskOutcome):
            await self._report(id, asked, None)
            return None
        return ClaimedTask(
            task=id.text,
            run=claimed.run,
            workflow=offer.workflow,
            node=offer.node,
            visit=offer.token,
            attempt=offer.attempt,
            queue=offer.queue,
            kind=asked.kind,
            config=asked.config,
            input=asked.input,
            idempotency_key=key,
            lease_until=self.commander.clock.now() + wanted.lease_ms,
            execution=asked.execution,
            trace=offer.trace,
        )

    # Answering

    async def _answer(self, id: TaskId, reply: Done | Failed, spent: Json) -> None:
        row = await self._row(id)
        graph = await self.commander.library.graph(row.workflow, id.version or row.version) if row is not None else None
        node = graph.definition.nodes.get(id.node) if graph is not None else None
        if row is None or node is None or node.task is None:
            raise _late(id)
        if spent is None and isinstance(reply, Done) and is_model(node.task):
            spent = report_in(reply.output)
        outcome = await self._outcome(id, row, node.task, reply)
        await self._report(id, outcome, spent)
        self.commander.bell.ring(id.queue)  # a limit of the queue may have room now

    async def _outcome(self, id: TaskId, row: RunRow, task: Task, reply: Done | Failed) -> TaskOutcome:
        facts = AttemptFacts(run=id.run, token=id.token, attempt=id.attempt, node=id.node, workflow=row.workflow)
        input: Json = None
        if needs_input(task):
            state = await self.commander.state(id.run)
            token = state.tokens.get(id.token) if state is not None else None
            if token is not None and token.attempt == id.attempt:
                input = token.input
            else:  # it is over: whether this is the same answer again is to be told
                input = input_of(await self.commander.store.history(id.run), id)
        return outcome_of(task, input, facts, reply)

    async def _report(self, id: TaskId, outcome: TaskOutcome, spent: Json) -> None:
        if outcome.error is not None:
            command: c.Command = c.FailAttempt(id.token, id.attempt, outcome.error, outcome.tries, id.holder, spent)
        else:
            command = c.FinishAttempt(
                id.token, id.attempt, outcome.output, outcome.requests, outcome.tries, worker=id.holder, spent=spent
            )
        answer = await self.commander.ask(id.run, command)
        if answer.rejection is None:
            return
        events = await self.commander.store.history(id.run, id.seq)
        if not was_accepted(events, id, outcome):
            raise _late(id)

    async def _is_untaken(self, id: TaskId) -> bool:
        """Whether a claim has run out and nobody has begun the work since."""
        state = await self.commander.state(id.run)
        token = state.tokens.get(id.token) if state is not None else None
        if token is None or token.attempt != id.attempt:
            return False
        if token.state is TokenState.DISPATCHED:
            return token.lost == id.holder
        if token.state is not TokenState.EXECUTING:  # it has failed or timed out, or waits for its next attempt
            return False
        return token.worker == id.holder and token.id not in (state.deferred if state is not None else ())

    async def _row(self, id: TaskId) -> RunRow | None:
        return await self._row_of(RunQuery(run=id.run, limit=1))

    async def _row_of(self, query: RunQuery) -> RunRow | None:
        rows: Sequence[RunRow] = await self.commander.store.find_runs(query)
        return rows[0] if rows else None


def _late(id: TaskId) -> CommandRefused:
    text = f"attempt {id.attempt} of visit {id.token} of run {id.run} is over, or another worker has it"
    return CommandRefused("LATE_RESULT", text)
