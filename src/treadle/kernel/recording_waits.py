"""Recording events outside the run that a visit waits for: gates, callbacks, child runs. See `recording`."""

from __future__ import annotations

from typing import Any

from treadle.kernel.recording_groups import GroupRecording
from treadle.model import events as e
from treadle.model.errors import Error
from treadle.model.ids import RunId, TokenId
from treadle.model.requests import AnyRequest

Json = Any


class WaitRecording(GroupRecording):
    """See the module's docstring."""

    __slots__ = ()

    def gate_opened(
        self,
        token: TokenId,
        input: Json,
        *,
        title: str | None,
        form: Json,
        assign: Json,
        due: int | None,
        description: str | None,
        escalate: Json,
    ) -> None:
        """A person is asked."""
        self._record(
            e.GateOpened(
                self.seq,
                self.now,
                token,
                input=input,
                title=title,
                form=form,
                assign=assign,
                due=due,
                description=description,
                escalate=escalate,
            )
        )

    def gate_claimed(self, token: TokenId, by: str) -> None:
        """A person has taken the gate on."""
        self._record(e.GateClaimed(self.seq, self.now, token, by))

    def gate_released(self, token: TokenId, by: str, instead_of: str | None) -> None:
        """A person has given the gate back."""
        self._record(e.GateReleased(self.seq, self.now, token, by, instead_of))

    def gate_delegated(self, token: TokenId, to: str, by: str, instead_of: str | None) -> None:
        """The gate was passed on."""
        self._record(e.GateDelegated(self.seq, self.now, token, to, by, instead_of))

    def gate_completed(
        self, token: TokenId, data: Json, by: str | None, *, instead_of: str | None, comment: str | None
    ) -> None:
        """A person has answered."""
        self._record(e.GateCompleted(self.seq, self.now, token, data, by, instead_of=instead_of, comment=comment))

    def gate_answered(self, token: TokenId, data: Json, by: str, comment: str | None) -> None:
        """One person of a quorum has answered."""
        self._record(e.GateAnswered(self.seq, self.now, token, data, by, comment))

    def gate_commented(
        self, token: TokenId, text: str, by: str | None, *, attachments: tuple[str, ...], command: str | None
    ) -> None:
        """A person has said something about the gate."""
        self._record(e.GateCommented(self.seq, self.now, token, text, by, attachments=attachments, command=command))

    def gate_reminded(self, token: TokenId, number: int) -> None:
        """The people asked are reminded."""
        self._record(e.GateReminded(self.seq, self.now, token, number))

    def gate_escalated(self, token: TokenId, to: Json) -> None:
        """More people are asked."""
        self._record(e.GateEscalated(self.seq, self.now, token, to))

    def gate_expired(self, token: TokenId, default: Json) -> None:
        """Nobody has answered in time."""
        self._record(e.GateExpired(self.seq, self.now, token, default))

    def callback_received(
        self,
        token: TokenId,
        attempt: int,
        output: Json,
        error: Error | None,
        *,
        tries: int = 0,
        requests: tuple[AnyRequest, ...] = (),
    ) -> None:
        """An answer to an attempt has come."""
        self._record(e.CallbackReceived(self.seq, self.now, token, attempt, output, error, tries, requests))

    def callback_refused(self, token: TokenId, attempt: int, kind: str) -> None:
        """An answer to an attempt came too late, or was not the first."""
        self._record(e.CallbackRefused(self.seq, self.now, token, attempt, kind))

    def child_started(self, token: TokenId, run: RunId, workflow: str, version: int | None) -> None:
        """A visit calls a child run."""
        self._record(e.ChildStarted(self.seq, self.now, token, run, workflow, version))

    def child_ended(
        self,
        token: TokenId,
        run: RunId,
        status: str,
        *,
        output: Json,
        error: Error | None,
        compensable: bool,
        life: int,
    ) -> None:
        """The child run a visit waits for has ended."""
        self._record(
            e.ChildEnded(
                self.seq, self.now, token, run, status, output=output, error=error, compensable=compensable, life=life
            )
        )
