"""`treadle requests …`: requests that were kept while no engine ran, and what became of them.

Exit codes: 0 done · 1 (`show`) it was refused · 4 no such request · 5 the store cannot be used, or (`show`) no engine
has read the request yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from treadle.cli.frame.exits import NO, OK, STORE
from treadle.cli.frame.options import LimitOption, OutputOption, StoreOption, configuration, not_over_http

if TYPE_CHECKING:
    from treadle.cli.screen.tables import Gives
    from treadle.runtime.client import Client, RequestRow

app = App(name="requests", help="Requests kept while no engine ran: list, show.", help_format="plaintext")

COLUMNS = ("request", "run", "asks", "asked_at", "by", "status", "reason")
GIVES: tuple[Gives, ...] = (
    ("wrap", "reason"),
    ("front", "request"),
    ("front", "run"),
    ("leave", "by"),
    ("leave", "asked_at"),
    ("cut", "asks"),
)
CODES = {"done": OK, "refused": NO, "waiting": STORE}


@app.default
@app.command(name="list")
def list_(
    *,
    run: Annotated[str | None, Parameter(help="Only requests to this run.")] = None,
    refused: Annotated[bool, Parameter(help="Only those an engine has refused.", negative="")] = False,
    limit: LimitOption = 50,
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """List requests that were kept while no engine ran, newest first: waiting, done or refused."""

    async def act(client: Client, out: Any) -> int:
        chosen = (await client.find_run(run)).id if run is not None else None
        found = await client.requests(chosen, limit)
        rows = [_row(one, out) for one in found if one.status == "refused" or not refused]
        out.rows(COLUMNS, rows, "no request was kept" if not refused else "no kept request was refused", GIVES)
        return OK

    return _ask(act, store, output)


@app.command
def show(
    request: Annotated[
        str, Parameter(help="The id that the verb printed which left the request, or its last six or more characters.")
    ],
    /,
    *,
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """Show what became of a kept request."""

    async def act(client: Client, out: Any) -> int:
        found = await client.request(request)
        if out.text:
            out.one({name: value for name, value in _row(found, out).items() if value is not None})
        else:
            out.json(_row(found, out))
        return CODES[found.status]

    return _ask(act, store, output)


def _row(one: RequestRow, out: Any) -> dict[str, Any]:
    from treadle.cli.screen.output import builtins, clock_time

    if not out.text:
        return dict(builtins(one))
    return {
        "request": one.id,
        "run": one.run,
        "asks": one.command.replace("_", " "),
        "asked_at": clock_time(one.asked),
        "by": one.by,
        "status": one.status,
        "reason": one.reason,
    }


def _ask(act: Any, store: Any, output: Any) -> int:
    from treadle.cli.frame.opening import ask

    config = configuration(store, output)
    if config["server"]:
        raise not_over_http("requests")
    return ask(config, act)
