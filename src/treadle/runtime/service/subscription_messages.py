"""Messages to subscriptions: an event as its receivers see it, and as the log of deliveries names it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from treadle.model.event_rows import event_row
from treadle.model.events import Event
from treadle.model.ids import RunId
from treadle.runtime.service.subscriptions import position_of

Json = Any


def message(run: RunId, workflow: str | None, event: Event) -> dict[str, Json]:
    """The message about an event."""
    return {
        "type": event.type,
        "timestamp": datetime.fromtimestamp(event.at / 1000, UTC).isoformat(),
        "position": position_of(run, event),
        "data": {"run_id": run, "workflow": workflow, **event_row(event)},
    }


def about(run: RunId, event: Event) -> dict[str, Json]:
    """The event, for the log of deliveries."""
    return {"run": run, "seq": event.seq, "type": event.type, "position": position_of(run, event)}
