"""Setting durable timers. What a fired one means is `on_timer`'s business."""

from __future__ import annotations

from treadle.kernel.deciding import Deciding
from treadle.kernel.state import Token
from treadle.model import effects as x
from treadle.model import events as e
from treadle.model.ids import TimerId


def start(d: Deciding, due: int, purpose: str, token: Token | None = None, target: str | None = None) -> None:
    """A timer that fires at `due`, once, unless its token ends first."""
    timer = TimerId(d.state.last_timer + 1)
    d.emit(e.TimerSet(d.seq, d.now, timer, due, purpose, token.id if token is not None else None, None, target))
    d.effect(x.SetTimer(timer, due))
