"""`treadle runs …`: shows runs and sends them commands.

Exit codes: 0 done · 1 (`watch`) the run ended otherwise than completed · 4 no such run, or it refuses · 5 the store
cannot be used, or no engine answers (the request is kept).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from treadle.cli.frame.exits import INTERRUPTED, OK, REFUSED, USAGE, VerbFailed
from treadle.cli.frame.options import LimitOption, OutputOption, StoreOption, configuration
from treadle.cli.runs.budget import budget
from treadle.cli.runs.changes import edit, jump, set_input, skip
from treadle.cli.runs.compensations import compensations
from treadle.cli.runs.diff import MOMENT, diff
from treadle.cli.runs.export import export
from treadle.cli.runs.fork import fork
from treadle.cli.runs.groups import groups
from treadle.model.ids import TokenId
from treadle.model.states import RUN_ENDED, RunStatus

if TYPE_CHECKING:
    from treadle.cli.screen.tables import Gives
    from treadle.runtime.client import Client
    from treadle.runtime.run import Run

app = App(
    name="runs",
    help="Runs: list, show, history, watch, diff, cancel, pause, resume, abort, retry, fork, edit, skip, jump, "
    "set-input, budget, export, compensations, groups, signal.",
    help_format="plaintext",
)

RunOption = Annotated[str, Parameter(help="The run's id, or the last six or more characters of it.")]
ByOption = Annotated[str, Parameter(help="Your name, for the history.")]
ENDED_OTHERWISE = frozenset({RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.TIMED_OUT})
"""Statuses of a run that ended without being cancelled or aborted."""
COLUMNS = ("run", "workflow", "version", "status", "started_at", "took", "tags")
GIVES: tuple[Gives, ...] = (
    ("cut", "tags"),
    ("front", "run"),
    ("cut", "workflow"),
    ("leave", "tags"),
    ("leave", "version"),
    ("leave", "took"),
)


@app.default
@app.command(name="list")
def list_(
    *,
    workflow: Annotated[str | None, Parameter(help="Only runs of this workflow.")] = None,
    status: Annotated[tuple[RunStatus, ...], Parameter(help="Only runs with this status.", negative="")] = (),
    tag: Annotated[str | None, Parameter(help="Only runs with this tag.")] = None,
    entity: Annotated[str | None, Parameter(help="Only runs about this entity: TYPE/ID.")] = None,
    parent: Annotated[str | None, Parameter(help="Only child runs of this run.")] = None,
    after: Annotated[str | None, Parameter(help="The page after this run.")] = None,
    limit: LimitOption = 50,
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """List runs, newest first."""
    wanted: dict[str, Any] = {"workflow": workflow, "statuses": status, "tag": tag, "entity": entity}

    async def act(client: Client, out: Any) -> int:
        from treadle.cli.runs.show import run_row
        from treadle.cli.screen.output import clock_time, duration, now_ms
        from treadle.model.states import RUN_ENDED

        for name, text in (("parent", parent), ("after", after)):
            wanted[name] = (await client.find_run(text)).id if text is not None else None
        rows = []
        for row in await client.runs(limit=limit, **wanted):
            until = row.changed if row.status in RUN_ENDED else now_ms()
            words = {"started_at": clock_time(row.started), "took": duration(until - row.started)}
            rows.append({**run_row(row), **(words if out.text else {})})
        out.rows(COLUMNS, rows, "there are no such runs", GIVES)
        return OK

    return _ask(act, store, output)


@app.command
def show(
    run: RunOption,
    /,
    *,
    at: Annotated[str | None, Parameter(help=f"The run as it was then: {MOMENT}.")] = None,
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """Show one run: its visits, what it waits for, its state and output."""

    async def act(client: Client, out: Any) -> int:
        from treadle.cli.runs.show import show_run
        from treadle.runtime.run import moment_of

        return await show_run(client, await client.find_run(run), out, moment_of(at) if at is not None else None)

    return _ask(act, store, output)


@app.command
def history(
    run: RunOption,
    /,
    *,
    after: Annotated[int, Parameter(help="Only events after this number.")] = 0,
    limit: Annotated[int | None, Parameter(name=["--limit", "-n"], help="At most this many.")] = None,
    warnings: Annotated[bool, Parameter(help="Only warnings.", negative="")] = False,
    full: Annotated[bool, Parameter(help="Cut nothing; add tracebacks of failed attempts.", negative="")] = False,
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """Print the events of a run."""

    async def act(client: Client, out: Any) -> int:
        from treadle.cli.runs.show import show_history

        return await show_history(await client.find_run(run), out, after, limit, warnings, full)

    return _ask(act, store, output)


@app.command
def watch(
    run: RunOption,
    /,
    *,
    execute: Annotated[
        bool, Parameter(help="Coordinate and execute while no other process does.", negative="")
    ] = False,
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """Watch a run until it ends."""

    async def act(client: Client, out: Any) -> int:
        from treadle.cli.screen.output import say
        from treadle.cli.watch.follow import watch as look

        try:
            return await look(client, await client.find_run(run), out)
        except asyncio.CancelledError:
            say("\nno longer watching; the run goes on" + (" when an engine opens the store again" if execute else ""))
            return INTERRUPTED

    from treadle.cli.frame.opening import ask

    return ask(configuration(store, output), act, execute=execute)


@app.command
def cancel(
    run: RunOption,
    /,
    *,
    visit: Annotated[int | None, Parameter(help="Only this visit.")] = None,
    group: Annotated[str | None, Parameter(help="Only the branches of the fan-outs of this name.")] = None,
    reason: Annotated[str | None, Parameter(help="Why.")] = None,
    by: ByOption = "operator",
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """Cancel a run, one visit or one group: all its visits end, and attempts are told to stop."""
    if visit is not None and group is not None:
        raise VerbFailed(USAGE, "cancel a visit or a group, not both")
    if visit is not None or group is not None:
        what = f"cancelled visit {visit} of" if visit is not None else f"cancelled group {group!r} of"
        return _tell(run, what, lambda found: found.cancel(reason, visit=visit, group=group, by=by), store, output)
    return _tell(run, "cancelled", lambda found: _end(found, found.cancel(reason, by=by)), store, output)


@app.command
def pause(
    run: RunOption,
    /,
    *,
    reason: Annotated[str | None, Parameter(help="Why.")] = None,
    by: ByOption = "operator",
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """Pause a run: no new attempt begins, and its timers stand still."""
    return _tell(run, "paused", lambda found: found.pause(reason, by=by), store, output)


@app.command
def resume(
    run: RunOption,
    /,
    *,
    extend_ms: Annotated[int | None, Parameter(help="A new deadline, in milliseconds from now.")] = None,
    by: ByOption = "operator",
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """Resume a paused run."""
    if extend_ms is not None:
        return _tell(run, "extended", lambda found: found.extend(extend_ms, by=by), store, output)
    return _tell(run, "resumed", lambda found: found.resume(by=by), store, output)


@app.command
def abort(
    run: RunOption, /, *, by: ByOption = "operator", store: StoreOption = None, output: OutputOption = None
) -> int:
    """End a run that has run out of time and waits for a person's decision (`on_timeout: human_gate`)."""
    return _tell(run, "aborted", lambda found: _end(found, found.abort(by=by)), store, output)


@app.command
def retry(
    run: RunOption,
    visit: Annotated[
        int | None, Parameter(help="Only this visit; else all visits whose failure was not handled.")
    ] = None,
    /,
    *,
    by: ByOption = "operator",
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """Retry visits that failed or timed out. Visits that were cancelled because of the failure come back, too."""
    chosen = TokenId(visit) if visit is not None else None
    return _tell(run, "retried", lambda found: found.retry(chosen, by=by), store, output)


app.command(budget)
app.command(export)
app.command(diff)
app.command(fork)
app.command(edit)
app.command(skip)
app.command(jump)
app.command(set_input, name="set-input")
app.command(compensations)
app.command(groups)


@app.command
def signal(
    run: RunOption,
    name: Annotated[str, Parameter(help="The signal's name.")],
    data: Annotated[str | None, Parameter(help="JSON, @FILE, or - for standard input.")] = None,
    /,
    *,
    key: Annotated[str | None, Parameter(help="The correlation key: JSON, or plain text.")] = None,
    id: Annotated[str | None, Parameter(help="Signals with the same id count once.")] = None,
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """Send a signal to a run."""
    from treadle.cli.frame.inputs import read_json

    value, wanted = read_json(data, "DATA"), _key(key)
    return _tell(run, "signalled", lambda found: found.signal(name, value, key=wanted, id=id), store, output)


async def _end(run: Run, ending: Coroutine[Any, Any, None]) -> None:
    """Ends a run. If the run had ended by itself, nothing is changed, and the user is told."""
    before = await run.status()
    await ending
    after = await run.status()
    if before in RUN_ENDED or after in ENDED_OTHERWISE:
        raise VerbFailed(REFUSED, f"run {run.id} had ended before: it is {after.value}; nothing was changed")


def _key(text: str | None) -> Any:
    """The key as JSON if it is JSON, else as text: `42` is a number, `order-42` is text."""
    import msgspec

    try:
        return msgspec.json.decode(text) if text is not None else None
    except msgspec.DecodeError:
        return text


def _tell(run: str, done: str, speak: Callable[[Run], Awaitable[Any]], store: Any, output: Any) -> int:
    """Finds a run, sends it one command, and reports what was done."""

    async def act(client: Client, out: Any) -> int:
        from treadle.cli.screen.progress import no_answer_yet

        found = await client.find_run(run)
        with no_answer_yet():
            result = await speak(found)
        row = {"run": found.id, "done": done, **({"visits": result} if result is not None else {})}
        out.done(row, f"{done} {found.id}" + (f": visits {', '.join(map(str, result))}" if result else ""))
        return OK

    return _ask(act, store, output)


def _ask(act: Callable[[Client, Any], Awaitable[int]], store: Any, output: Any) -> int:
    from treadle.cli.frame.opening import ask

    return ask(configuration(store, output), act)
