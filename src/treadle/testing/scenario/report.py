"""The report of a failed scenario: the expectation, what happened instead, and the histories it happened in.

Owns the words of a failure. Promises plain text that fits a pull request; `paint` adds colour where a
terminal is looking.
"""

from __future__ import annotations

from rich.text import Text

from treadle.model.ids import RunId
from treadle.testing.scenario.log import LEGEND, render
from treadle.testing.world.world import World

EVENTS_MAX = 400
"""Lines of one history: a failing fan-out of thousands must not bury its own message. The newest are kept."""

_COLOURS = {
    "failed|timed_out|dead|refused|mismatch|conflict|unevaluable": "bold red",
    "completed|fired|compensated": "green",
    "waiting|timer|cancelled|paused|retry|ignored": "yellow",
}


class ScenarioFailure(Exception):
    """A scenario does not hold."""

    def __init__(self, reason: str, history: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.history = history


def histories(world: World) -> str:
    """Every run of a world, event by event."""
    began = min((world.projection(run).events[0].at for run in world.runs), default=0)
    parts = [_history(world, run, began) for run in world.runs]
    return "\n\n".join([*parts, LEGEND])


def _history(world: World, run: RunId, began: int) -> str:
    projection = world.projection(run)
    started = projection.started
    assert started is not None
    title = f"{run}  {started.workflow} v{started.version}  {projection.status.value}"
    header, *lines = render(projection, began)
    if len(lines) > EVENTS_MAX:
        lines = [f"   … {len(lines) - EVENTS_MAX} earlier events", *lines[-EVENTS_MAX:]]
    return "\n".join([title, header, *lines])


def paint(history: str) -> Text:
    """A history in colour: what went wrong stands out, waits are dimmer."""
    text = Text(history, no_wrap=True, overflow="ignore")
    for words, style in _COLOURS.items():
        text.highlight_regex(rf"(?m)(?<=\d  )\S*(?:{words})\S*", style)
    return text
