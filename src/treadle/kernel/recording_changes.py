"""Recording an operator's changes to a run: edits, skips, jumps, inputs (6.4), and forks (6.3). See `recording`."""

from __future__ import annotations

from typing import Any

from treadle.kernel.recording_runs import RunRecording
from treadle.model import events as e
from treadle.model.ids import ArrivalId, Frame, RunId, TokenId

Json = Any


class ChangeRecording(RunRecording):
    """See the module's docstring."""

    __slots__ = ()

    def context_edited(self, writes: list[e.Write], scope: Frame | None, by: str, reason: str | None) -> None:
        """An operator has written into a scope."""
        self._record(e.ContextUpdated(self.seq, self.now, writes, scope, by=by, reason=reason))

    def token_skipped(self, token: TokenId, output: Json, by: str, reason: str | None) -> None:
        """An operator completes a visit."""
        self._record(e.TokenSkipped(self.seq, self.now, token, output, by, reason))

    def token_jumped(self, token: TokenId, to: str, by: str, reason: str | None) -> None:
        """An operator ends a visit, and goes on at another node."""
        self._record(e.TokenJumped(self.seq, self.now, token, to, by, reason))

    def token_input_set(self, token: TokenId, input: Json, by: str, reason: str | None) -> None:
        """An operator has set the input of a visit's further attempts."""
        self._record(e.TokenInputSet(self.seq, self.now, token, input, by, reason))

    def run_forked(
        self,
        origin: RunId,
        point: int,
        by: str,
        *,
        changes: Json,
        inherit_compensation: bool,
        shift_ms: int,
        outputs: list[tuple[TokenId, Json]],
        arrivals: list[tuple[ArrivalId, Json]],
        priority: int | None,
    ) -> None:
        """The run has inherited the past of another one."""
        event = e.RunForked(
            self.seq,
            self.now,
            origin,
            point,
            by,
            changes,
            inherit_compensation=inherit_compensation,
            shift_ms=shift_ms,
            outputs=outputs,
            arrivals=arrivals,
            priority=priority,
        )
        self._record(event)
