"""A handle on one run: wait for it, watch it, speak to it; the same in every process that has the store open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

import uuid_utils

from treadle.errors import CommandRefused
from treadle.kernel.reopen_plan import unhandled_visits
from treadle.kernel.state import RunState
from treadle.model import commands as c
from treadle.model import events as e
from treadle.model.errors import Error
from treadle.model.ids import RunId, TokenId
from treadle.model.references import EntityRef
from treadle.model.states import RUN_ENDED, RunStatus
from treadle.runtime.changing import Changing, fork_command
from treadle.runtime.command import once
from treadle.runtime.command.commander import Commander, patiently
from treadle.runtime.command.finding import unknown
from treadle.runtime.coordinate.feed import News, Watch
from treadle.runtime.ended import Ended as Ended
from treadle.runtime.ended import RunFailed as RunFailed
from treadle.runtime.execute.artifacts import Artifact, artifacts_of
from treadle.runtime.gate_commands import GateCommands
from treadle.runtime.given import given, named
from treadle.runtime.operate.compensations import CompensationStatus as CompensationStatus
from treadle.runtime.past import state_at
from treadle.runtime.undoing import Undoing
from treadle.runtime.view.looking import Looking
from treadle.runtime.view.moments import Moment as Moment
from treadle.runtime.view.moments import moment_of as moment_of
from treadle.runtime.view.readings import Readings
from treadle.runtime.view.snapshot_shapes import StateDifference as StateDifference
from treadle.store.port import RunQuery, RunRow

if TYPE_CHECKING:
    from treadle.display.views import TimelineView

Json = Any
PAGE, LOOKED_BACK_MAX = 100, 10_000
"""Events read at a time, and in all, to find out why a run has ended: undoing a long saga comes after its failure."""


class Run(GateCommands, Looking, Undoing, Changing):
    """See the module's docstring. What may be asked about its visits, groups and states: `Looking`."""

    id: RunId

    def __init__(self, commander: Commander, run: RunId, workflow: str | None = None, begun: bool = False) -> None:
        self._commander = commander
        self.id = run
        self.is_begun = begun
        """Whether the call that gave this handle began the run; always False over HTTP."""
        self._seen = f"{workflow}, started" if workflow is not None else ""
        """What it was when somebody last looked: showing an object cannot wait for a store."""

    def __repr__(self) -> str:
        return f"Run({str(self.id)!r}" + (f": {self._seen})" if self._seen else ")")

    def _repr_mimebundle_(self, **_asked: Any) -> dict[str, str]:
        more = " · <code>await run.timeline()</code> draws it"
        return {"text/plain": repr(self), "text/html": f"<div>{escape(repr(self))}{more}</div>"}

    # Looking

    @property
    def _readings(self) -> Readings:
        return self._commander.readings

    async def _unknown(self) -> CommandRefused:
        return await unknown(self._commander.store, self.id)

    async def info(self) -> RunRow:
        """What is known of it; raises CommandRefused(NOT_FOUND)."""
        rows = await self._commander.store.find_runs(RunQuery(run=self.id))
        if not rows:
            raise await unknown(self._commander.store, self.id)
        self._seen = f"{rows[0].workflow}, {rows[0].status}"
        return rows[0]

    async def status(self) -> RunStatus:
        return (await self.info()).status

    async def state(self, at: Moment | None = None) -> RunState:
        """Everything, folded: visits, context, timers; `at`: as it was at the end of the decision that an event number,
        an instant or a visit lies in. For reading only."""
        if at is not None:
            return await state_at(self._commander, self.id, at)
        state = await self._commander.state(self.id)
        if state is None:
            raise await unknown(self._commander.store, self.id)
        return state

    async def history(self, after: int = 0, limit: int | None = None) -> list[e.Event]:
        """Its events so far, from any point on."""
        return await self._commander.store.history(self.id, after, limit)

    def watch(self) -> Watch:
        """Tells of news of this run from now on: begin to watch, then read."""
        return self._commander.watch(self.id)

    async def events(self, after: int = 0) -> AsyncIterator[e.Event]:
        """Its events, those to come included, until it has ended."""
        with self._commander.watch(self.id) as watch:
            while True:
                batch = await watch.look(partial(self.history, after, 1_000))
                for event in batch:
                    yield event
                if batch:
                    after = batch[-1].seq
                    continue
                info = await watch.look(self.info)
                if info.seq > after:
                    continue  # written since we read
                if info.status in RUN_ENDED:
                    return
                await watch.news()

    async def wait(self, timeout_s: float | None = None) -> Ended:
        """Until it has ended. Raises TimeoutError after `timeout_s`; the run goes on. Raises EngineStopped if the
        engine or client this handle came from is closed."""
        workflow = self._seen.partition(",")[0]
        try:
            async with asyncio.timeout(timeout_s) as limit:
                news = await self._wait_end()
        except TimeoutError:
            if not limit.expired():
                raise
            named = f"run {self.id}" + (f" of {workflow}" if workflow else "")
            raise TimeoutError(f"{named} has not ended within {timeout_s} s; it goes on") from None
        if workflow:
            self._seen = f"{workflow}, {news.status}"
        return await self._ended(news)

    async def _wait_end(self) -> News:
        with self._commander.watch(self.id) as watch:
            watch.only = RUN_ENDED
            news = None if self._commander.will_tell(self.id) else await self._news(watch)
            while news is None or news.status not in RUN_ENDED:
                news = await watch.news() or await self._news(watch)
        return news

    async def _news(self, watch: Watch) -> News:
        info = await watch.look(self.info)
        return News(info.seq, info.status)

    async def result(self, timeout_s: float | None = None) -> Json:
        """Its output. Raises RunFailed when it ends otherwise."""
        ended = await self.wait(timeout_s)
        if ended.status is not RunStatus.COMPLETED:
            raise RunFailed(self.id, ended.status, ended.error, ended.traceback)
        return ended.output

    async def _ended(self, last: News) -> Ended:
        if isinstance(last.last, e.RunCompleted):
            return Ended(self.id, last.status, last.last.output)
        if last.status is RunStatus.CANCELLED:
            return Ended(self.id, last.status, None)
        error, traceback, seq = None, None, last.seq
        while seq > 0 and (error is None or traceback is None) and last.seq - seq < LOOKED_BACK_MAX:
            begin = max(seq - PAGE, 0)
            for event in reversed(await patiently(partial(self.history, begin, seq - begin))):
                if isinstance(event, e.RunCompleted):
                    return Ended(self.id, last.status, event.output)
                if isinstance(event, e.RunFailed | e.RunTimedOut):
                    error = error or event.error
                elif error is not None and isinstance(event, e.TokenFailed):  # before the run failed: the reason
                    traceback = traceback or event.error.traceback
            seq = begin
        return Ended(self.id, last.status, None, error, traceback)

    async def timeline(self) -> TimelineView:
        """Its visits over time, as a picture in a notebook."""
        from treadle.display.views import TimelineView

        return TimelineView(await self.history(), self._commander.clock.now())

    async def artifacts(self) -> dict[str, Artifact]:
        """What it has written, and what it inherits, by name."""
        return await artifacts_of(await self.state(), self._commander.state)

    async def artifact(self, name: str) -> bytes:
        """The content of an artifact. Raises CommandRefused(NOT_FOUND)."""
        known = await self.artifacts()
        if name not in known:
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise CommandRefused("NOT_FOUND", f"{self.id} has no artifact {name!r}; {has}")
        content = await self._commander.store.get_blob(known[name].digest)
        if content is None:
            raise CommandRefused("NOT_FOUND", f"the content of {name!r} is gone with the run that wrote it")
        return content

    # Speaking

    async def ask(self, command: c.Command) -> bool:
        """Any command. Returns whether it had an effect; raises CommandRefused."""
        answer = await once.ask(self._commander, self.id, command)
        if answer.rejection is not None:
            raise CommandRefused(answer.rejection.kind, answer.rejection.message, answer.rejection.problems)
        return bool(answer.result)

    async def signal(self, name: str, data: Json = None, *, key: Json = None, id: str | None = None) -> None:
        """Sends a signal; with the same `id` it counts once."""
        named("signal", name)
        named("id of the signal", id)
        await self.ask(c.SendSignal(name, given("key", key), given("data", data), id or str(uuid_utils.uuid7())))

    async def cancel(
        self, reason: str | None = None, *, visit: int | None = None, group: str | None = None, by: str = "operator"
    ) -> None:
        """Cancels the run, or one visit of it, or the live groups of a name: their joins then go on with what has
        arrived. What has ended stays as it is."""
        if visit is not None and group is not None:
            raise ValueError("cancel a visit or a group, not both")
        if visit is not None:
            await self.ask(c.CancelToken(TokenId(visit), by, reason))
        elif group is not None:
            await self.ask(c.CancelGroup(group, by=by))
        else:
            await self.ask(c.CancelRun(by, reason))

    async def add_siblings(
        self, group: str, items: Sequence[Json] | None = None, *, count: int | None = None, id: str | None = None
    ) -> None:
        """Lets an open group grow: by a branch for each item, or by so many. With the same `id` it counts once."""
        if (items is None) == (count is None):
            raise ValueError("a group grows by items or a count: give one of them")
        given_items = list(given("items", items)) if items is not None else None
        await self.ask(c.AddSiblings(group, given_items, count, id or str(uuid_utils.uuid7())))

    async def close_group(self, group: str, *, by: str = "operator") -> None:
        """No more siblings are added to an open group: its joins can be decided."""
        await self.ask(c.CloseGroup(group, by))

    async def pause(self, reason: str | None = None, *, by: str = "operator", strict: bool = False) -> None:
        """Nothing new begins; answers are kept. `strict`: a paused run refuses it."""
        await self.ask(c.PauseRun(by, reason, strict))

    async def resume(self, *, by: str = "operator", strict: bool = False) -> None:
        """A paused run goes on. `strict`: a running one refuses it."""
        await self.ask(c.ResumeRun(by, strict))

    async def extend(self, ms: int, *, by: str = "operator") -> None:
        """Gives a run that has timed out, or will, more time."""
        await self.ask(c.ExtendTimeout(ms, by))

    async def raise_budget(
        self,
        *,
        cost: float = 0,
        tokens: int = 0,
        visits: int = 0,
        elapsed_ms: int = 0,
        by: str = "operator",
        id: str | None = None,
    ) -> None:
        """Adds to the limits of the run's budget, and lets a run go on that its budget has stopped. With the same `id`
        it counts once. Raises CommandRefused."""
        await self.ask(c.RaiseBudget(cost, tokens, visits, elapsed_ms, by=by, id=id))

    async def abort(self, *, by: str = "operator", strict: bool = False) -> None:
        """Ends a run that waits for somebody to decide about its timeout. `strict`: a running one refuses it."""
        await self.ask(c.AbortRun(by, strict))

    async def retry(self, visit: int | None = None, *, by: str = "operator") -> list[TokenId]:
        """Tries visits again that have failed or timed out, and brings back what their failure took down: one visit, or
        all whose failure nothing has handled, in failed children first. Returns the visits that are retried. Raises
        CommandRefused, which says why."""
        state = await self.state()
        if visit is not None:
            chosen = TokenId(visit)
            kept = state.fallen.get(chosen)
            token = kept.token if kept is not None else state.tokens.get(chosen)
            await self.ask(c.RetryToken(chosen, by, token.attempt if token is not None else None))
            return [chosen]
        before, visits = state.seq, unhandled_visits(state)
        with self._commander.watch(self.id) as watch:
            await self.ask(c.RetryRun(by))
            news = await self._news(watch)
            while news.seq <= before and news.status is RunStatus.FAILED:  # failed children go first
                news = await watch.news() or await self._news(watch)
        return visits

    async def fork(
        self,
        at: int | None = None,
        *,
        visit: int | None = None,
        node: str | None = None,
        input: Json = None,
        state: Mapping[str, Json] | None = None,
        outputs: Mapping[str | int, Json] | Mapping[str, Json] | None = None,
        version: int | None = None,
        key: str | None = None,
        tags: Sequence[str] = (),
        entity: EntityRef | Mapping[str, Json] | str | None = None,
        inherit_compensation: bool = False,
        by: str = "operator",
    ) -> Run:
        """Starts a run that has the past of this one up to a point: after event `at`, before the work of a `visit`,
        before that of the first visit of a `node`, else as it is now. `input`, `state` (target path to value) and
        `outputs` (visit or node to output) are otherwise from there on. This run is not touched. The same `key` gives
        the same fork again. Raises CommandRefused."""
        asking, workflow = once.current_once(), (await self.info()).workflow
        drawn = self._commander.new_run() if asking is None else asking.new_run()
        command = fork_command(
            self.id,
            await self._commander.place(drawn, workflow, None),
            at,
            visit=visit,
            node=node,
            input=input,
            state=state,
            outputs=outputs,
            version=version,
            key=key,
            tags=tags,
            entity=entity,
            inherit_compensation=inherit_compensation,
            by=by,
        )
        answer = await once.ask(self._commander, command.run, command, workflow, fresh=True)
        if (refused := answer.rejection) is not None:
            raise CommandRefused(refused.kind, refused.message, refused.problems, refused.retry_after_ms)
        return Run(self._commander, RunId(answer.result), workflow, answer.result == command.run)

    async def callback(
        self, visit: int, attempt: int, output: Json = None, error: Error | None = None, spent: Json = None
    ) -> bool:
        """Answers for an external worker, which has `spent` {cost, usage}. Returns False if the worker has answered the
        same before, which changes nothing. Raises CommandRefused: DUPLICATE, INVALID_STATE, LATE_RESULT, SCHEMA."""
        return await self.ask(c.ReceiveCallback(TokenId(visit), attempt, given("output", output), error, spent=spent))
