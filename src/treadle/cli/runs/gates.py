"""`treadle gates …`: questions to people. A gate is named RUN/VISIT, as `gates list` shows it.

Exit codes: 0 done · 3 the answer does not fit the form · 4 no such gate, or it is not open · 5 the store cannot be
used.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from treadle.cli.frame.exits import OK, REFUSED, USAGE, VerbFailed
from treadle.cli.frame.options import LimitOption, OutputOption, StoreOption, configuration
from treadle.model.ids import TokenId

if TYPE_CHECKING:
    from treadle.cli.screen.tables import Gives
    from treadle.runtime.client import Client, GateRow
    from treadle.runtime.run import Run

app = App(
    name="gates",
    help="Gates, questions to people: list, show, complete, claim, release, delegate.",
    help_format="plaintext",
)

COLUMNS = ("gate", "workflow", "node", "title", "assign", "claimed_by", "open_for", "due_at")
GIVES: tuple[Gives, ...] = (
    ("front", "gate"),
    ("cut", "title"),
    ("cut", "workflow"),
    ("leave", "due_at"),
    ("cut", "assign"),
    ("leave", "assign"),
    ("cut", "claimed_by"),
    ("leave", "claimed_by"),
    ("cut", "node"),
    ("leave", "workflow"),
)
GateOption = Annotated[str, Parameter(help="RUN/VISIT as `gates list` shows it; RUN alone if it has one open gate.")]
ForceOption = Annotated[
    bool, Parameter(help="Even if another person has claimed it; the history records this.", negative="")
]


@app.default
@app.command(name="list")
def list_(
    *,
    run: Annotated[str | None, Parameter(help="Only gates of this run.")] = None,
    limit: LimitOption = 100,
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """List open gates, longest open first."""

    async def act(client: Client, out: Any) -> int:
        from treadle.cli.screen.output import clock_time, duration, now_ms

        wanted = (await client.find_run(run)).id if run is not None else None
        rows = []
        for gate in await client.gates(wanted, limit):
            words = {"open_for": duration(now_ms() - gate.opened), "due_at": clock_time(gate.due)}
            rows.append({**_row(gate), **(words if out.text else {})})
        out.rows(COLUMNS, rows, "there are no open gates", GIVES)
        return OK

    return _ask(act, store, output)


@app.command
def show(gate: GateOption, /, *, store: StoreOption = None, output: OutputOption = None) -> int:
    """Show one gate: its title, its input, its form."""

    async def act(client: Client, out: Any) -> int:
        from treadle.cli.screen.output import clock_time

        run, visit = await _find(client, gate)
        row = next((row for row in await client.gates(run) if row.token == visit), None)
        if row is None:
            raise VerbFailed(REFUSED, f"{run}/{visit} is not open")
        opened = await _opened(client, run, visit)
        more = {"input": opened.input, "form": opened.form} if opened is not None else {}
        shown = {**_row(row), **more}
        if out.text:
            shown |= {"opened": clock_time(row.opened), "due": clock_time(row.due), "can": None}
            if opened is None:  # the gate of the run itself, which ran out of time
                shown["then"] = f"treadle runs resume {run} --extend-ms MS, or treadle runs abort {run}"
            del shown["run"], shown["visit"]
        out.one(shown)
        return OK

    return _ask(act, store, output)


@app.command
def complete(
    gate: GateOption,
    data: Annotated[str | None, Parameter(help="The answer: JSON, @FILE, or - for standard input.")] = None,
    /,
    *,
    by: Annotated[str | None, Parameter(help="Name of the person who answers.")] = None,
    force: ForceOption = False,
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """Answer a gate. A claimed gate is answered by the person who claimed it."""
    from treadle.cli.frame.inputs import read_json

    value = read_json(data, "DATA")

    async def say(run: Run, visit: TokenId) -> tuple[dict[str, str], str]:
        await run.complete_gate(visit, value, by=by, force=force)
        return {"done": "completed"}, f"completed {run.id}/{visit}"

    return _told(gate, say, store, output)


@app.command
def claim(
    gate: GateOption,
    /,
    *,
    by: Annotated[str, Parameter(help="Name of the person who claims it.")],
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """Claim a gate, so that no other person answers it."""

    async def say(run: Run, visit: TokenId) -> tuple[dict[str, str], str]:
        await run.claim_gate(visit, by=by)
        return {"done": "claimed", "by": by}, f"{by} has claimed {run.id}/{visit}"

    return _told(gate, say, store, output)


@app.command
def release(
    gate: GateOption,
    /,
    *,
    by: Annotated[str, Parameter(help="Name of the person who gives it back.")],
    force: ForceOption = False,
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """Give a claimed gate back, so that every person may answer it."""

    async def say(run: Run, visit: TokenId) -> tuple[dict[str, str], str]:
        await run.release_gate(visit, by=by, force=force)
        return {"done": "released", "by": by}, f"{run.id}/{visit} is not claimed now"

    return _told(gate, say, store, output)


@app.command
def delegate(
    gate: GateOption,
    to: Annotated[str, Parameter(help="Name of the person who gets it.")],
    /,
    *,
    by: Annotated[str, Parameter(help="Name of the person who delegates it.")],
    force: ForceOption = False,
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """Hand a gate to another person."""

    async def say(run: Run, visit: TokenId) -> tuple[dict[str, str], str]:
        await run.delegate_gate(visit, to, by=by, force=force)
        return {"done": "delegated", "to": to, "by": by}, f"{to} has {run.id}/{visit} now"

    return _told(gate, say, store, output)


def _told(
    gate: str,
    say: Callable[[Run, TokenId], Awaitable[tuple[dict[str, str], str]]],
    store: str | None,
    output: str | None,
) -> int:
    """Sends one command to a gate, and reports what was done: `say` returns it as data and as a sentence."""

    async def act(client: Client, out: Any) -> int:
        from treadle.cli.screen.progress import no_answer_yet

        run, visit = await _find(client, gate)
        with no_answer_yet():
            facts, words = await say(client.run(run), TokenId(visit))
        out.done({"gate": f"{run}/{visit}", **facts}, words)
        return OK

    return _ask(act, store, output)


def _row(gate: GateRow) -> dict[str, Any]:
    """A gate as a row: RUN/VISIT first, `visit` instead of `token`."""
    from treadle.cli.screen.output import builtins

    parts = builtins(gate)
    return {"gate": f"{gate.run}/{gate.token}", "run": gate.run, "visit": parts.pop("token"), **parts, "can": gate.can}


async def _find(client: Client, text: str) -> tuple[str, int]:
    name, slash, visit = text.rpartition("/")
    if slash and not await client.gates(text, 1):  # else it is a run whose id contains a slash
        if not visit.isdigit():
            raise VerbFailed(USAGE, f"{text}: expected RUN/VISIT, as `treadle gates list` shows it")
        return (await client.find_run(name)).id, int(visit)
    run = (await client.find_run(text)).id
    gates = await client.gates(run)
    if len(gates) != 1:
        some = ", ".join(f"{run}/{gate.token}" for gate in gates[:5])
        raise VerbFailed(
            REFUSED, f"run {run} has {len(gates) or 'no'} open gates" + (f": name one of {some}" if some else "")
        )
    return run, gates[0].token


async def _opened(client: Client, run: str, visit: int) -> Any:
    """The newest GateOpened event of a visit; None if there is none."""
    from treadle.model.events import GateOpened

    after, found = 0, None
    while batch := await client.run(run).history(after, 5_000):
        after = batch[-1].seq
        found = next((one for one in reversed(batch) if isinstance(one, GateOpened) and one.token == visit), found)
    return found


def _ask(act: Any, store: Any, output: Any) -> int:
    from treadle.cli.frame.opening import ask

    return ask(configuration(store, output), act)
