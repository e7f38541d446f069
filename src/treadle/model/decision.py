"""What the kernel answers: facts that now hold, things to be done, and perhaps that the command was refused."""

from __future__ import annotations

from dataclasses import dataclass, field

from treadle.model.effects import Effect
from treadle.model.errors import Rejection
from treadle.model.events import Event


@dataclass(slots=True)
class Decision:
    """`events` are already folded into the state the kernel was given; a refusal usually leaves them empty,
    except that a refused callback is itself a fact worth recording."""

    events: list[Event] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    rejection: Rejection | None = None
