"""What one run has to tell another, as the command the other is given: parents, children, receivers of signals.

Owns the translation of these effects, for the engine as for the worlds of the tests. Promises nothing about delivery:
rows of the outbox are carried by whoever delivers them, at least once and in order to each receiver.
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
    """(the run that is told, what it is told); None: the effect is for nobody else's run."""
    write = LETTERS.get(type(effect))
    return write(source, effect) if write is not None else None


def parent_link(source: RunId, effect: f.StartChild) -> ParentLink:
    """What a child knows of the visit that waits for it."""
    return ParentLink(source, effect.token, effect.inherit_artifacts, effect.catches)


def child_is_gone(effect: f.RetryChild) -> c.Command:
    """What the parent is told when the child it wants to retry does not exist any more."""
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
        source,
        effect.status,
        effect.output,
        effect.error,
        effect.compensable,
        effect.life,
        effect.levels,
    )


def _deliver_signal(_source: RunId, effect: f.DeliverSignal) -> Letter:
    return effect.run, c.SendSignal(effect.name, effect.key, effect.data, effect.id)


LETTERS: dict[type[f.Effect], Callable[[RunId, Any], Letter]] = {
    f.CancelChild: _cancel_child,
    f.CompensateChild: _compensate_child,
    f.RetryChild: _retry_child,
    f.ChildReopened: _child_reopened,
    f.ChildRefused: _child_refused,
    f.NotifyParent: _notify_parent,
    f.DeliverSignal: _deliver_signal,
}
