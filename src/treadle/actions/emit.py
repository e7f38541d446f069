"""`emit {type, data?}`: an event for the run's stream and outgoing webhooks."""

from __future__ import annotations

from treadle.actions.protocol import Call, Done
from treadle.actions.settings import setting, text_setting
from treadle.model.requests import Emit


class EmitKind:
    """Asks the run to emit: the event happens with the task's success, exactly once."""

    name = "emit"

    def run(self, call: Call) -> Done:
        return Done({}, (Emit(type=text_setting(call, "type"), data=setting(call, "data")),))
