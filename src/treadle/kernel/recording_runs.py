"""Recording events of the run as a whole: its status, timers, signals, compensation, entity and artifacts. See
`recording`.
"""

from __future__ import annotations

from typing import Any

from treadle.kernel.recording_waits import WaitRecording
from treadle.model import events as e
from treadle.model.errors import Error
from treadle.model.ids import Frames, GroupId, RecordId, RunId, TimerId, TokenId
from treadle.model.references import EntityRef, ParentLink
from treadle.model.spending import Spending

Json = Any


class RunRecording(WaitRecording):
    """See the module's docstring."""

    __slots__ = ()

    def run_started(
        self,
        run: RunId,
        *,
        workflow: str,
        version: int,
        hash: str,
        input: Json,
        entity: EntityRef | None,
        parent: ParentLink | None,
        depth: int,
        depth_max: int,
        idempotency_key: str | None,
        trigger: Json,
        seed: int,
        tags: tuple[str, ...],
        trace: dict[str, str] | None = None,
        priority: int = 0,
    ) -> None:
        """The run exists, and begins."""
        self._record(
            e.RunStarted(
                self.seq,
                self.now,
                run,
                workflow,
                version,
                hash,
                input,
                entity,
                parent,
                depth,
                depth_max,
                idempotency_key,
                trigger,
                seed,
                tags,
                trace,
                priority,
            )
        )

    def run_queued(
        self,
        run: RunId,
        *,
        workflow: str,
        version: int,
        hash: str,
        input: Json,
        entity: EntityRef | None,
        parent: ParentLink | None,
        depth: int,
        depth_max: int,
        idempotency_key: str | None,
        trigger: Json,
        seed: int,
        tags: tuple[str, ...],
        trace: dict[str, str] | None,
        priority: int,
        why: str,
        due: int | None,
        alias: RunId | None = None,
    ) -> None:
        """The run exists and waits for its start; of a batch also: a further start has joined it."""
        self._record(
            e.RunQueued(
                self.seq,
                self.now,
                run,
                workflow,
                version,
                hash,
                input,
                entity,
                parent,
                depth,
                depth_max,
                idempotency_key,
                trigger,
                seed,
                tags,
                trace,
                priority,
                why,
                due,
                alias,
            )
        )

    def run_migrated(self, from_: int, to: int, nodes: dict[str, str], by: str) -> None:
        """The run goes on under another version."""
        self._record(e.RunMigrated(self.seq, self.now, from_, to, nodes, by))

    def run_completed(self, output: Json) -> None:
        """The run has ended well."""
        self._record(e.RunCompleted(self.seq, self.now, output))

    def run_failed(self, error: Error, *, own: bool) -> None:
        """The run has failed; `own`: by itself, not by a visit's or a fan-in's failure."""
        self._record(e.RunFailed(self.seq, self.now, error, own))

    def run_cancelled(self, by: str, reason: str | None) -> None:
        """The run was cancelled."""
        self._record(e.RunCancelled(self.seq, self.now, by, reason))

    def run_timed_out(self, error: Error) -> None:
        """The run's deadline has ended it."""
        self._record(e.RunTimedOut(self.seq, self.now, error))

    def run_paused(self, by: str, reason: str | None) -> None:
        """The run stands still."""
        self._record(e.RunPaused(self.seq, self.now, by, reason))

    def run_resumed(
        self, by: str, *, shift_ms: int = 0, deadline: int | None = None, reopened: bool = False, levels: int = 0
    ) -> None:
        """The run goes on after a pause; `reopened`: after a failure."""
        self._record(e.RunResumed(self.seq, self.now, by, shift_ms, deadline, reopened, levels))

    def run_compensating(self, cause: str) -> None:
        """Completed visits are being undone."""
        self._record(e.RunCompensating(self.seq, self.now, cause))

    def run_compensated(self) -> None:
        """Everything is undone."""
        self._record(e.RunCompensated(self.seq, self.now))

    def run_compensation_failed(self, error: Error) -> None:
        """Something could not be undone."""
        self._record(e.RunCompensationFailed(self.seq, self.now, error))

    def timer_set(
        self,
        due: int,
        purpose: str,
        *,
        token: TokenId | None = None,
        group: GroupId | None = None,
        target: str | None = None,
    ) -> TimerId:
        """A timer is due at `due`. Returns its id."""
        timer = TimerId(self.state.last_timer + 1)
        self._record(e.TimerSet(self.seq, self.now, timer, due, purpose, token, group, target))
        return timer

    def timer_fired(self, timer: TimerId, purpose: str, token: TokenId | None) -> None:
        """A timer was due."""
        self._record(e.TimerFired(self.seq, self.now, timer, purpose, token))

    def signal_received(self, name: str, key: Json, data: Json, command: str | None) -> int:
        """A signal has come. Returns its number."""
        signal = self.state.last_signal + 1
        self._record(e.SignalReceived(self.seq, self.now, signal, name, key, data, command))
        return signal

    def signal_taken(self, signal: int, token: TokenId) -> None:
        """A waiter has taken a signal."""
        self._record(e.SignalTaken(self.seq, self.now, signal, token))

    def compensation_recorded(
        self, token: TokenId, node: str, path: str, frames: Frames, *, input: Json, output: Json, child: RunId | None
    ) -> None:
        """A visit has done something that can be undone."""
        record = RecordId(self.state.last_record + 1)
        self._record(
            e.CompensationRecorded(self.seq, self.now, record, token, node, path, frames, input, output, child)
        )

    def compensation_started(self, record: RecordId, node: str, child: RunId | None) -> None:
        """A visit is being undone."""
        self._record(e.CompensationStarted(self.seq, self.now, record, node, child))

    def compensation_completed(self, record: RecordId) -> None:
        """A visit is undone."""
        self._record(e.CompensationCompleted(self.seq, self.now, record))

    def compensation_failed(self, record: RecordId, error: Error) -> None:
        """A visit could not be undone."""
        self._record(e.CompensationFailed(self.seq, self.now, record, error))

    def compensation_skipped(self, record: RecordId, by: str) -> None:
        """A person has decided that a visit need not be undone."""
        self._record(e.CompensationSkipped(self.seq, self.now, record, by))

    def entity_moved(
        self,
        event: str,
        *,
        node: str | None = None,
        edge: str | None = None,
        progress: float | None = None,
        section: str | None = None,
        completed_as: str | None = None,
        entity_type: str | None = None,
        token: TokenId | None = None,
        by: str | None = None,
        reason: str | None = None,
    ) -> None:
        """The run's entity is somewhere else."""
        place = node, edge, progress, section
        self._record(e.EntityMoved(self.seq, self.now, event, *place, completed_as, entity_type, token, by, reason))

    def artifact_written(
        self, token: TokenId, name: str, digest: str, *, size: int, content_type: str | None, by: str | None = None
    ) -> None:
        """A visit has stored an artifact, or a person."""
        event = e.ArtifactWritten(self.seq, self.now, token, name, digest, size=size, content_type=content_type, by=by)
        self._record(event)

    def budget_warned(self, part: str, spent: float, limit: float) -> None:
        """Most of a part of the budget is spent."""
        self._record(e.BudgetWarned(self.seq, self.now, part, spent, limit))

    def budget_exceeded(self, part: str, spent: float, limit: float) -> None:
        """A part of the budget is spent, and nothing more begins."""
        self._record(e.BudgetExceeded(self.seq, self.now, part, spent, limit))

    def budget_raised(
        self, by: str, *, cost: float, tokens: int, visits: int, elapsed_ms: int, command: str | None
    ) -> None:
        """Somebody has added to the limits."""
        self._record(e.BudgetRaised(self.seq, self.now, by, cost, tokens, visits, elapsed_ms, command))

    def token_progress(
        self, token: TokenId, attempt: int, name: str, data: Json, part: int, *, spent: Spending | None = None
    ) -> None:
        """An attempt reports something while it is at work, or what it has spent."""
        self._record(e.TokenProgress(self.seq, self.now, token, attempt, name, data, part, spent))

    def custom(self, name: str, data: Json, token: TokenId, *, part: int = 0) -> None:
        """A visit reports something of its own. `part`: only histories of an older Treadle have one."""
        self._record(e.Custom(self.seq, self.now, name, data, token, part))
