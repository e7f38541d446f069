"""Translates effects of one run into commands for another: its parent, its children, and receivers of its signals.

Owns the translation, for the engine as for the worlds of the tests. Promises nothing about delivery: `delivery` sends
the commands, at least once and in order to each receiver.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.model import commands as c
from treadle.model import effects as f
from treadle.model.ids import RunId
from treadle.model.references import ParentLink

Letter = tuple[RunId, c.Command]


def letter(source: RunId, effect: f.Effect) -> Letter | None:
    """Returns (receiving run, command); None: the effect is not for another run."""
    write = LETTERS.get(type(effect))
    return write(source, effect) if write is not None else None


def parent_link(source: RunId, effect: f.StartChild) -> ParentLink:
    """The link from a child to the visit of its parent that waits for it."""
    return ParentLink(source, effect.token, effect.inherit_artifacts, effect.catches, effect.budgeted)


def child_is_gone(effect: f.RetryChild) -> c.Command:
    """The command for a parent whose child cannot be retried because it does not exist any more."""
    return c.RefuseCall(effect.token, effect.child, effect.levels, effect.by)


def _cancel_child(_source: RunId, effect: f.CancelChild) -> Letter:
    return effect.child, c.CancelRun(by="parent")


def _compensate_child(_source: RunId, effect: f.CompensateChild) -> Letter:
    return effect.child, c.CompensateRun(effect.token)


def _retry_child(_source: RunId, effect: f.RetryChild) -> Letter:
    return effect.child, c.RetryRun(effect.by, effect.levels)


def _child_reopened(source: RunId, effect: f.ChildReopened) -> Letter:
    return effect.parent, c.ReopenCall(effect.token, source, effect.life, effect.levels, effect.by)


def _child_refused(source: RunId, effect: f.ChildRefused) -> Letter:
    return effect.parent, c.RefuseCall(effect.token, source, effect.levels, effect.by)


def _notify_parent(source: RunId, effect: f.NotifyParent) -> Letter:
    return effect.parent, c.EndChild(
        effect.token,
        effect.child or source,
        effect.status,
        effect.output,
        effect.error,
        effect.compensable,
        effect.life,
        effect.levels,
        effect.spent,
    )


def _report_spending(source: RunId, effect: f.TellSpending) -> Letter:
    return effect.parent, c.ReportSpending(effect.token, source, effect.spent, effect.ask)


def _allow_attempt(_source: RunId, effect: f.PermitChild) -> Letter:
    return effect.child, c.AllowAttempt(effect.ask)


def _deliver_signal(_source: RunId, effect: f.DeliverSignal) -> Letter:
    return effect.run, c.SendSignal(effect.name, effect.key, effect.data, effect.id)


LETTERS: dict[type[f.Effect], Callable[[RunId, Any], Letter]] = {
    f.CancelChild: _cancel_child,
    f.CompensateChild: _compensate_child,
    f.RetryChild: _retry_child,
    f.ChildReopened: _child_reopened,
    f.ChildRefused: _child_refused,
    f.NotifyParent: _notify_parent,
    f.TellSpending: _report_spending,
    f.PermitChild: _allow_attempt,
    f.DeliverSignal: _deliver_signal,
}
