"""Words that the verbs which change a run share: their options, `PATH=VALUE` arguments, and what a change leads to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from treadle.cli.frame.exits import OK, USAGE, VerbFailed
from treadle.cli.frame.options import configuration

if TYPE_CHECKING:
    from treadle.cli.screen.tables import Gives
    from treadle.model.events import Event
    from treadle.runtime.client import Client
    from treadle.runtime.run import Run

RunOption = Annotated[str, Parameter(help="The run's id, or the last six or more characters of it.")]
VisitOption = Annotated[int, Parameter(help="The visit's number, as `runs show` has it.")]
ByOption = Annotated[str, Parameter(help="Your name, for the history.")]
ReasonOption = Annotated[str | None, Parameter(help="Why.")]
DryRunOption = Annotated[bool, Parameter(help="Change nothing; print the events that would follow.", negative="")]

COLUMNS = ("seq", "event", "detail")
GIVES: tuple[Gives, ...] = (("wrap", "detail"),)


def assignments(words: Sequence[str], option: str) -> dict[str, Any]:
    """`PATH=VALUE` words as a map. A value is JSON, else plain text."""
    import msgspec

    found: dict[str, Any] = {}
    for word in words:
        place, equals, text = word.partition("=")
        if not place or not equals:
            raise VerbFailed(USAGE, f"{option} needs PATH=VALUE, such as state.x=5; got {word!r}")
        try:
            found[place] = msgspec.json.decode(text)
        except msgspec.DecodeError:
            found[place] = text
    return found


def change(
    run: str, done: str, act: Callable[[Run], Awaitable[Sequence[Event]]], dry_run: bool, store: Any, output: Any
) -> int:
    """Finds a run, changes it or foretells what would happen, and reports it."""
    from treadle.cli.frame.opening import ask

    async def asked(client: Client, out: Any) -> int:
        from treadle.cli.screen.progress import no_answer_yet

        found = await client.find_run(run)
        with no_answer_yet():
            events = await act(found)
        report(out, found, done, events, dry_run)
        return OK

    return ask(configuration(store, output), asked)


def report(out: Any, run: Run, done: str, events: Sequence[Event], dry_run: bool) -> None:
    """Reports what a change has led to, or would lead to."""
    from treadle.model.event_rows import event_row

    if not dry_run:
        row = {"run": run.id, "done": done, "events": [event_row(event) for event in events]}
        out.done(row, f"{done} {run.id}")
        return
    if not out.text:
        out.json({"run": run.id, "dry_run": True, "events": [event_row(event) for event in events]})
        return
    rows = [{"seq": event.seq, "event": event.type, "detail": _detail(event_row(event))} for event in events]
    out.rows(COLUMNS, rows, "nothing would happen", GIVES)


def _detail(row: dict[str, Any]) -> str:
    from treadle.cli.screen.output import cell

    left_out = ("seq", "at", "type", "version", "frames", "loops")
    parts = [(name, value) for name, value in row.items() if name not in left_out and value not in ([], {}, False, "")]
    return "  ".join(f"{name} {cell(value)}" for name, value in parts)
