"""Recording events of tokens: they are created, dispatched, started, wait, and end. See `recording`."""

from __future__ import annotations

from typing import Any

from treadle.kernel.evolve_failures import waits
from treadle.kernel.evolve_tokens import completed, created, dispatched, started
from treadle.kernel.members import FORWARD
from treadle.kernel.recording import Recording
from treadle.model import events as e
from treadle.model.errors import Error
from treadle.model.ids import Frame, Frames, RecordId, TokenId
from treadle.model.spending import Spending
from treadle.model.states import Mode, Waiting

Json = Any


class TokenRecording(Recording):
    """See the module's docstring."""

    __slots__ = ()

    def token_created(
        self,
        node: str,
        path: str,
        frames: Frames,
        via: str | None,
        origin: TokenId | None,
        loops: dict[str, int] | None = None,
        why: str | None = None,
        mode: Mode = FORWARD,
        record: RecordId | None = None,
        output: Json = None,
        last_error: Error | None = None,
        holds: str | None = None,
        merged: list[str] | None = None,
    ) -> TokenId:
        """A visit of `node` exists. Returns its token."""
        state = self.state
        seq = state.seq + 1
        token: TokenId = state.last_token + 1  # type: ignore[assignment]  # `TokenId(…)` is a call, once a visit
        event = e.TokenCreated(
            seq,
            self.now,
            token,
            node,
            path,
            frames,
            via,
            origin,
            why,
            mode,
            record,
            output,
            last_error,
            loops,
            holds,
            merged,
        )
        created(state, event)
        state.seq = seq
        self.events.append(event)
        return token

    def token_dispatched(
        self,
        token: TokenId,
        attempt: int,
        input: Json,
        queue: str | None = None,
        recovery: int = 0,
        forgiven: bool = False,
    ) -> None:
        """An attempt is handed to an executor."""
        state = self.state
        seq = state.seq + 1
        event = e.TokenDispatched(seq, self.now, token, attempt, input, queue, recovery, forgiven)
        dispatched(state, event)
        state.seq = seq
        self.events.append(event)

    def token_started(
        self,
        token: TokenId,
        attempt: int,
        worker: str | None = None,
        input: Json = None,
        lease_until: int | None = None,
    ) -> None:
        """An attempt has begun."""
        state = self.state
        seq = state.seq + 1
        event = e.TokenStarted(seq, self.now, token, attempt, worker, input, lease_until)
        started(state, event)
        state.seq = seq
        self.events.append(event)

    def token_waiting(
        self,
        token: TokenId,
        reason: Waiting,
        until: int | None = None,
        awaiting: int | None = None,
        output: Json = None,
        detail: Json = None,
        tries: int = 0,
        arrival: int | None = None,
    ) -> None:
        """A visit waits; with token 0 an arrival that an operator's retry brings back."""
        state = self.state
        seq = state.seq + 1
        event = e.TokenWaiting(seq, self.now, token, reason, until, awaiting, output, detail, tries, arrival)
        waits(state, event)
        state.seq = seq
        self.events.append(event)

    def token_resumed(self, token: TokenId, by: str) -> None:
        """A visit goes on after a wait."""
        self._record(e.TokenResumed(self.seq, self.now, token, by))

    def token_completed(self, token: TokenId, output: Json = None, tries: int = 0) -> None:
        """A visit has ended well."""
        state = self.state
        seq = state.seq + 1
        event = e.TokenCompleted(seq, self.now, token, output, tries)
        completed(state, event)
        state.seq = seq
        self.events.append(event)

    def token_failed(
        self, token: TokenId, error: Error, retries: int, *, fails: Frame | None = None, unhandled: bool = False
    ) -> None:
        """A visit has failed for good."""
        self._record(e.TokenFailed(self.seq, self.now, token, error, retries, fails, unhandled))

    def token_timed_out(
        self, token: TokenId, error: Error, *, fails: Frame | None = None, unhandled: bool = False
    ) -> None:
        """A visit has run out of time now."""
        self._record(e.TokenTimedOut(self.seq, self.now, token, error, self.now, fails, unhandled, self.because))

    def token_cancelled(
        self, token: TokenId, by: str, reason: str | None = None, *, arrival: int | None = None
    ) -> None:
        """A visit is withdrawn; with token 0 an arrival that stands alone."""
        self._record(e.TokenCancelled(self.seq, self.now, token, by, reason, arrival, self.because))

    def token_retry_scheduled(
        self,
        token: TokenId,
        attempt: int,
        due: int,
        *,
        error: Error | None = None,
        by: str | None = None,
        tries: int = 0,
    ) -> None:
        """A visit will try again at `due`; `by`: an operator asked for it."""
        self._record(e.TokenRetryScheduled(self.seq, self.now, token, attempt, due, error, by, tries))

    def result_ignored(self, token: TokenId, attempt: int, reason: str, spent: Spending | None = None) -> None:
        """A result came for a visit that no longer waits for one."""
        self._record(e.ResultIgnored(self.seq, self.now, token, attempt, reason, spent))
