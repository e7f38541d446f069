"""`treadle schedules …`: workflows started by the clock.

Exit codes: 0 done · 3 the schedule is invalid · 4 no such schedule or workflow · 5 the store cannot be used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

from treadle.cli.frame.exits import INVALID, OK, REFUSED, VerbFailed
from treadle.cli.frame.options import OutputOption, StoreOption, configuration

if TYPE_CHECKING:
    from treadle.cli.screen.tables import Gives
    from treadle.runtime.client import Client
    from treadle.runtime.schedule.definition import Schedule

app = App(name="schedules", help="Schedules: list, add, remove, pause, resume, next.", help_format="plaintext")

COLUMNS = ("name", "workflow", "when", "timezone", "next", "overlap", "catch_up", "paused")
GIVES: tuple[Gives, ...] = (
    ("leave", "catch_up"),
    ("leave", "overlap"),
    ("leave", "timezone"),
    ("cut", "workflow"),
    ("cut", "when"),
)
"""Columns that give way on a narrow terminal. The next time with its zone never does: it is what the list is for."""

NameOption = Annotated[str, Parameter(help="The schedule's name.")]


@app.default
@app.command(name="list")
def list_(*, store: StoreOption = None, output: OutputOption = None) -> int:
    """List schedules and when each is due next."""

    async def act(client: Client, out: Any) -> int:
        rows = [_row(schedule, words=out.text) for schedule in await client.schedules()]
        out.rows(COLUMNS, rows, "there are no schedules", GIVES)
        return OK

    return _ask(act, store, output)


@app.command
def add(
    name: NameOption,
    workflow: Annotated[str, Parameter(help="The workflow it starts.")],
    /,
    *,
    cron: Annotated[str | None, Parameter(help='"30 6 * * MON-FRI", or @hourly, @daily, @weekly, @monthly.')] = None,
    every_ms: Annotated[int | None, Parameter(help="Or an interval.")] = None,
    timezone: Annotated[str, Parameter(help="Of `cron`.")] = "UTC",
    input: Annotated[str | None, Parameter(name=["--input", "-i"], help="Input of the runs: JSON or @FILE.")] = None,
    overlap: Annotated[
        Literal["skip", "queue", "allow", "cancel_previous"],
        Parameter(help="What to do if the run before is still going."),
    ] = "skip",
    catch_up: Annotated[
        Literal["none", "last", "all"], Parameter(help="What to do about times at which no engine was there.")
    ] = "last",
    jitter_ms: Annotated[int, Parameter(help="Each start is delayed by a random part of this.")] = 0,
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """Create or change a schedule."""
    from treadle.cli.frame.inputs import read_json
    from treadle.runtime.schedule.definition import read_schedule

    if (cron is None) == (every_ms is None):
        raise VerbFailed(INVALID, f"{name}: give one of --cron and --every-ms")
    schedule = read_schedule(
        {
            "name": name,
            "workflow": workflow,
            "cron": cron,
            "every_ms": every_ms,
            "timezone": timezone,
            "input": read_json(input, "--input") or {},
            "overlap": overlap,
            "catch_up": catch_up,
            "jitter_ms": jitter_ms,
        }
    )

    async def act(client: Client, out: Any) -> int:
        await client.put_schedule(schedule)
        out.done(_row(schedule), f"{name}: next {_row(schedule, words=True)['next']}")
        return OK

    return _ask(act, store, output)


@app.command
def remove(name: NameOption, /, *, store: StoreOption = None, output: OutputOption = None) -> int:
    """Remove a schedule; runs it has started go on."""

    async def act(client: Client, out: Any) -> int:
        await client.remove_schedule(name)
        out.done({"name": name, "done": "removed"}, f"removed {name}")
        return OK

    return _ask(act, store, output)


@app.command
def pause(name: NameOption, /, *, store: StoreOption = None, output: OutputOption = None) -> int:
    """Pause a schedule: it starts no runs until it is resumed."""
    return _set_paused(name, True, store, output)


@app.command
def resume(name: NameOption, /, *, store: StoreOption = None, output: OutputOption = None) -> int:
    """Resume a paused schedule."""
    return _set_paused(name, False, store, output)


@app.command(name="next")
def next_(
    name: NameOption,
    /,
    *,
    count: Annotated[int, Parameter(name=["--count", "-n"], help="How many.")] = 5,
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """Show the next times of a schedule."""

    async def act(client: Client, out: Any) -> int:
        from treadle.cli.screen.output import clock_time, duration, now_ms
        from treadle.runtime.schedule.times import next_due

        schedule = await _find(client, name)
        now = now_ms()
        due: int | None = now
        rows: list[dict[str, Any]] = []
        while len(rows) < count and due is not None and (due := next_due(schedule, due)) is not None:
            rows.append({"due": due, "at": clock_time(due, schedule.timezone), "in": duration(due - now)})
        out.rows(("at", "in"), rows, "the schedule is never due again")
        return OK

    return _ask(act, store, output)


def _set_paused(name: str, paused: bool, store: Any, output: Any) -> int:
    async def act(client: Client, out: Any) -> int:
        import msgspec

        await client.put_schedule(msgspec.structs.replace(await _find(client, name), paused=paused))
        word = "paused" if paused else "resumed"
        out.done({"name": name, "done": word}, f"{word} {name}")
        return OK

    return _ask(act, store, output)


async def _find(client: Client, name: str) -> Schedule:
    for schedule in await client.schedules():
        if schedule.name == name:
            return schedule
    raise VerbFailed(REFUSED, f"there is no schedule {name!r}: `treadle schedules list` shows them")


def _row(schedule: Schedule, *, words: bool = False) -> dict[str, Any]:
    from treadle.cli.screen.output import builtins, clock_time, duration, now_ms
    from treadle.runtime.schedule.times import next_due

    due = None if schedule.paused else next_due(schedule, now_ms())
    row = {**builtins(schedule), "next": clock_time(due, schedule.timezone) if words else due}
    if words:
        row |= {"when": schedule.cron or f"every {duration(schedule.every_ms or 0)}"}
        row |= {"timezone": schedule.timezone, "overlap": schedule.overlap, "catch_up": schedule.catch_up}
        row |= {"paused": "paused" if schedule.paused else ""}
    return row


def _ask(act: Any, store: Any, output: Any) -> int:
    from treadle.cli.frame.opening import ask

    return ask(configuration(store, output), act)
