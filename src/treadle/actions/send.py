"""`send {signal, key?, data?, run?}`: a signal to this run or another one (A9)."""

from __future__ import annotations

from treadle.actions.protocol import Call, Done
from treadle.actions.settings import setting, text_setting
from treadle.model.ids import RunId
from treadle.model.requests import Send


class SendKind:
    """Asks the run to send, to itself if none is named: it happens with the task's success, exactly once."""

    name = "send"

    def run(self, call: Call) -> Done:
        run = text_setting(call, "run") if setting(call, "run") is not None else None
        request = Send(
            signal=text_setting(call, "signal"),
            key=setting(call, "key"),
            data=setting(call, "data"),
            run=None if run is None else RunId(run),
        )
        return Done({}, (request,))
