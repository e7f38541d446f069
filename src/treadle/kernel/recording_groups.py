"""Recording events of groups, joins and scopes. See `recording`."""

from __future__ import annotations

from typing import Any

from treadle.expression.paths import Path
from treadle.kernel.evolve_groups import arrived, updated
from treadle.kernel.recording_tokens import TokenRecording
from treadle.model import events as e
from treadle.model.errors import Error
from treadle.model.events import Write
from treadle.model.ids import ArrivalId, Frame, Frames, GroupId, TokenId

Json = Any


class GroupRecording(TokenRecording):
    """See the module's docstring."""

    __slots__ = ()

    def group_opened(
        self,
        names: list[str],
        origin: TokenId,
        node: str,
        path: str,
        frames: Frames,
        *,
        total: int,
        transitions: list[str],
        items: list[Json] | None = None,
        item_var: str | None = None,
        replicated: bool = False,
        open: bool = False,
        max_in_flight: int | None = None,
        ordinal: int = 0,
        shared: bool = False,
        loops: dict[str, int] | None = None,
        bounds: list[int],
        last_error: Error | None = None,
    ) -> GroupId:
        """A fan-out has fired. Returns its group."""
        group = GroupId(self.state.last_group + 1)
        self._record(
            e.GroupOpened(
                self.seq,
                self.now,
                group,
                names,
                origin,
                node,
                path,
                frames,
                total,
                transitions,
                items,
                item_var,
                replicated,
                open,
                max_in_flight,
                ordinal,
                shared,
                loops,
                bounds,
                last_error,
            )
        )
        return group

    def group_grew(self, group: GroupId, total: int, items: list[Json] | None, command: str | None) -> None:
        """Siblings were added to an open group: it has `total` branches now."""
        self._record(e.GroupGrew(self.seq, self.now, group, total, items, command))

    def group_closed(self, group: GroupId, by: str, *, withdrawn: bool = False) -> None:
        """No more siblings come; `withdrawn`: nor do branches begin that have not yet."""
        self._record(e.GroupClosed(self.seq, self.now, group, by, withdrawn, self.because))

    def fan_out_empty(self, transition: str, node: str, group: GroupId) -> None:
        """A fan-out had nothing to do."""
        self._record(e.FanOutEmpty(self.seq, self.now, transition, node, group))

    def join_arrived(
        self,
        token: TokenId,
        target: str,
        via: str,
        path: str,
        frames: Frames,
        group: GroupId | None = None,
        item: Frame | None = None,
        value: Json = None,
        loops: dict[str, int] | None = None,
        absorbed: bool = False,
        rearmed: bool = False,
    ) -> None:
        """A token has come to a join: of a group, or, without one, of the node `target` itself. An absorbed arrival
        comes too late and has no number."""
        state = self.state
        seq = state.seq + 1
        arrival: ArrivalId = 0 if absorbed else state.last_arrival + 1  # type: ignore[assignment]  # as a call it costs
        event = e.JoinArrived(
            seq, self.now, arrival, token, target, via, path, frames, group, item, value, loops, absorbed, rearmed
        )
        arrived(state, event)
        state.seq = seq
        self.events.append(event)

    def join_fired(
        self,
        target: str,
        *,
        group: GroupId | None = None,
        item: Frame | None = None,
        arrivals: list[ArrivalId],
        arrived: int,
        failed: int = 0,
        total: int,
        writes: list[Write],
        rest: str | None,
        why: str,
        scope: Frame | None = None,
    ) -> None:
        """A join goes on with what has arrived."""
        self._record(
            e.JoinFired(
                self.seq,
                self.now,
                target,
                group,
                item,
                arrivals,
                arrived,
                failed,
                total,
                writes,
                rest,
                why,
                scope,
            )
        )

    def join_failed(
        self,
        target: str,
        error: Error,
        *,
        group: GroupId | None = None,
        item: Frame | None = None,
        fails: Frame | None,
        unhandled: bool,
    ) -> None:
        """A fan-in has failed before its target ran. Everything it takes down says so, so that it can be reopened."""
        self._record(e.JoinFailed(self.seq, self.now, target, error, group, item, fails, unhandled, True))

    def join_reopened(
        self, target: str, group: GroupId | None, by: str, *, item: Frame | None = None, failure: int = 0
    ) -> None:
        """A failed or dead join waits again, because an operator retries what made it so."""
        self._record(e.JoinReopened(self.seq, self.now, target, group, item, failure, by))

    def join_dead(self, target: str, group: GroupId) -> None:
        """No token can come to a group's join any more."""
        self._record(e.JoinDead(self.seq, self.now, target, group, None, self.because))

    def join_mismatch(self, token: TokenId, transition: str, wanted: str) -> None:
        """A token passes a join whose group it is not in."""
        self._record(e.JoinMismatch(self.seq, self.now, token, transition, wanted))

    def context_updated(
        self,
        writes: list[Write],
        scope: Frame | None,
        token: TokenId | None = None,
        branch: Frame | None = None,
        streamed: bool = False,
        armed: dict[str, bool] | None = None,
    ) -> None:
        """Values are written into a scope, or a `when` trigger of the token has changed."""
        state = self.state
        seq = state.seq + 1
        event = e.ContextUpdated(seq, self.now, writes, scope, token, streamed, branch, armed)
        updated(state, event)
        state.seq = seq
        self.events.append(event)

    def context_conflict(self, path: Path, by: str) -> None:
        """Two branches wrote different values at one path."""
        self._record(e.ContextConflict(self.seq, self.now, list(path), by))

    def condition_unevaluable(
        self,
        transition: str,
        reason: str,
        *,
        token: TokenId | None = None,
        part: str = "condition",
        group: GroupId | None = None,
    ) -> None:
        """An expression has no value here and counts as false, or as null."""
        self._record(e.ConditionUnevaluable(self.seq, self.now, transition, reason, token, part, group))
