"""Setting durable timers. `on_timer` decides what a fired one means."""

from __future__ import annotations

from treadle.kernel.deciding import Deciding
from treadle.kernel.state import Token
from treadle.model import effects as x
from treadle.model.ids import GroupId


def start(d: Deciding, due: int, purpose: str, token: Token | None = None, target: str | None = None) -> None:
    """Set a timer that fires at `due`, once, unless its token ends first."""
    timer = d.timer_set(due, purpose, token=token.id if token is not None else None, target=target)
    d.effect(x.SetTimer(timer, due))


def start_attempt(d: Deciding, ms: int, token: Token) -> None:
    """Set the deadline of an attempt. In a fork the attempt may have one already, with the time it had left."""
    if not any(d.state.timers[timer].purpose == "attempt" for timer in token.timers):
        start(d, d.now + ms, "attempt", token)


def start_join(d: Deciding, due: int, group: GroupId, target: str) -> None:
    """Set the timer of a group's join at `target`."""
    timer = d.timer_set(due, "sync", group=group, target=target)
    d.effect(x.SetTimer(timer, due))


def arm(d: Deciding, token: Token) -> None:
    """Start the clocks of a node's `after_ms` triggers: once, when the token arrives (A2)."""
    for t in d.node(token).triggers:
        trigger = t.definition.trigger
        if trigger is not None and trigger.after_ms is not None:
            start(d, d.now + trigger.after_ms, "trigger", token, t.id)


def lease_is_over(d: Deciding, token: Token) -> bool:
    """Whether the token's lease has expired, even if its timer has not been delivered yet."""
    timers_of = (d.state.timers[timer] for timer in token.timers)
    return any(timer.purpose == "lease" and timer.due <= d.now for timer in timers_of)
