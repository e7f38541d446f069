"""`treadle gates …`: questions to people. A gate is named RUN/VISIT, as `gates list` shows it.

Exit codes: 0 done · 3 the answer does not fit the form · 4 no such gate, or it is not open · 5 the store cannot be
used.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from treadle.cli.frame.exits import OK, REFUSED, VerbFailed
from treadle.cli.frame.options import LimitOption, OutputOption, StoreOption, configuration
from treadle.cli.runs.gate_names import acting, find_gate
from treadle.model.ids import TokenId

if TYPE_CHECKING:
    from treadle.cli.screen.tables import Gives
    from treadle.runtime.client import Client, GateRow
    from treadle.runtime.run import Run

app = App(
    name="gates",
    help="Gates, questions to people: list, show, complete, answer, claim, release, delegate, comment.",
    help_format="plaintext",
)

COLUMNS = ("gate", "workflow", "node", "title", "assign", "claimed_by", "open_for", "due_at")
COUNT_COLUMNS = ("workflow", "node", "count", "overdue")
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
    workflow: Annotated[str | None, Parameter(help="Only gates of this workflow.")] = None,
    node: Annotated[str | None, Parameter(help="Only gates at this node.")] = None,
    assignee: Annotated[str | None, Parameter(help="Asked of this person or group by name, or claimed.")] = None,
    mine: Annotated[str | None, Parameter(help="Asked of this person, by name or --group, or claimed.")] = None,
    group: Annotated[tuple[str, ...], Parameter(help="A group of the person of --mine; may be repeated.")] = (),
    overdue: Annotated[bool, Parameter(help="Only gates whose due time has passed.", negative="")] = False,
    text: Annotated[str | None, Parameter(help="Part of the title, node or run.")] = None,
    by_node: Annotated[bool, Parameter(help="Count the gates of each node instead.", negative="")] = False,
    limit: LimitOption = 100,
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """List open gates, longest open first."""

    async def act(client: Client, out: Any) -> int:
        from treadle.cli.screen.output import builtins, clock_time, duration, now_ms
        from treadle.runtime.client import Person

        wanted = (await client.find_run(run)).id if run is not None else None
        person = Person(mine, group) if mine is not None else None
        conditions: dict[str, Any] = {"workflow": workflow, "node": node, "assignee": assignee, "mine": person}
        conditions |= {"overdue": overdue, "text": text}
        if by_node:
            counts = await client.count_gates(wanted, **conditions)
            out.rows(COUNT_COLUMNS, [builtins(count) for count in counts], "there are no open gates")
            return OK
        rows = []
        for gate in await client.gates(wanted, limit, **conditions):
            words = {"open_for": duration(now_ms() - gate.opened), "due_at": clock_time(gate.due)}
            rows.append({**_row(gate), **(words if out.text else {})})
        out.rows(COLUMNS, rows, "there are no open gates", GIVES)
        return OK

    return _ask(act, store, output)


@app.command
def show(gate: GateOption, /, *, store: StoreOption = None, output: OutputOption = None) -> int:
    """Show one gate: its title, its input, its form, comments, and the answers so far."""

    async def act(client: Client, out: Any) -> int:
        from treadle.cli.screen.output import builtins, clock_time

        run, visit = await find_gate(client, gate)
        view = await client.gate(run, visit)
        if view.status != "open":
            raise VerbFailed(REFUSED, f"{run}/{visit} is not open")
        shown = builtins(view)
        if out.text:
            shown |= {"opened": clock_time(view.opened), "due": clock_time(view.due), "can": None}
            if "extend" in view.can:  # the gate of the run itself, which ran out of time
                shown["then"] = f"treadle runs resume {run} --extend-ms MS, or treadle runs abort {run}"
            if "budget" in view.can:
                shown["then"] = f"treadle runs budget {run} --cost N, or treadle runs abort {run}"
            for name in ("run", "visit", "status", "commented", "answered", "reminders"):
                del shown[name]
            shown["reminded"] = view.reminded or None
            shown["comments"] = [f"{comment.by or 'somebody'}: {comment.text}" for comment in view.comments]
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
def answer(
    data: Annotated[str, Parameter(help="The answer: JSON, @FILE, or - for standard input.")],
    gates: Annotated[tuple[str, ...], Parameter(help="Gates as RUN/VISIT; RUN alone if it has one open gate.")],
    /,
    *,
    by: Annotated[str | None, Parameter(help="Name of the person who answers.")] = None,
    force: ForceOption = False,
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """Answer many gates with the same data. A gate that refuses it does not affect the others."""
    from treadle.cli.frame.inputs import read_json

    value = read_json(data, "DATA")

    async def act(client: Client, out: Any) -> int:
        from treadle.cli.screen.progress import no_answer_yet

        found = [await find_gate(client, gate) for gate in gates]
        with no_answer_yet():
            results = await client.complete_gates(found, value, by=by, force=force)
        rows = [
            {
                "gate": f"{result.run}/{result.visit}",
                "ok": result.ok,
                "problem": str(result.problem) if result.problem is not None else None,
            }
            for result in results
        ]
        out.rows(("gate", "ok", "problem"), rows, "no gate was named")
        return OK if all(result.ok for result in results) else REFUSED

    return _ask(act, store, output)


@app.command
def comment(
    gate: GateOption,
    text: Annotated[str, Parameter(help="What to say.")],
    /,
    *,
    by: Annotated[str | None, Parameter(help="Name of the person who says it.")] = None,
    attach: Annotated[tuple[str, ...], Parameter(help="Name of an artifact of the run; may be repeated.")] = (),
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """Say something about a gate without answering it."""

    async def say(run: Run, visit: TokenId) -> tuple[dict[str, str], str]:
        await run.comment_gate(visit, text, by=by, attachments=attach)
        return {"done": "commented"}, f"commented {run.id}/{visit}"

    return _told(gate, say, store, output)


@app.command
def claim(
    gate: GateOption,
    /,
    *,
    by: Annotated[
        str | None, Parameter(help="Name of the person who claims it; a service knows it by the key.")
    ] = None,
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """Claim a gate, so that no other person answers it."""

    async def say(run: Run, visit: TokenId) -> tuple[dict[str, str], str]:
        person = acting(run, by)
        await run.claim_gate(visit, by=person)
        return {"done": "claimed", "by": person}, f"{person} has claimed {run.id}/{visit}"

    return _told(gate, say, store, output)


@app.command
def release(
    gate: GateOption,
    /,
    *,
    by: Annotated[
        str | None, Parameter(help="Name of the person who gives it back; a service knows it by the key.")
    ] = None,
    force: ForceOption = False,
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """Give a claimed gate back, so that every person may answer it."""

    async def say(run: Run, visit: TokenId) -> tuple[dict[str, str], str]:
        person = acting(run, by)
        await run.release_gate(visit, by=person, force=force)
        return {"done": "released", "by": person}, f"{run.id}/{visit} is not claimed now"

    return _told(gate, say, store, output)


@app.command
def delegate(
    gate: GateOption,
    to: Annotated[str, Parameter(help="Name of the person who gets it.")],
    /,
    *,
    by: Annotated[
        str | None, Parameter(help="Name of the person who delegates it; a service knows it by the key.")
    ] = None,
    force: ForceOption = False,
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """Hand a gate to another person."""

    async def say(run: Run, visit: TokenId) -> tuple[dict[str, str], str]:
        person = acting(run, by)
        await run.delegate_gate(visit, to, by=person, force=force)
        return {"done": "delegated", "to": to, "by": person}, f"{to} has {run.id}/{visit} now"

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

        run, visit = await find_gate(client, gate)
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


def _ask(act: Any, store: Any, output: Any) -> int:
    from treadle.cli.frame.opening import ask

    return ask(configuration(store, output), act)
