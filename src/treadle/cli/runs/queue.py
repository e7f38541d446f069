"""`treadle queue WORKFLOW`: the runs that wait for their start (6.7), the next one first.

Exit codes: 0 done · 4 no such workflow · 5 the store cannot be used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from treadle.cli.frame.exits import OK
from treadle.cli.frame.options import LimitOption, OutputOption, StoreOption, configuration

if TYPE_CHECKING:
    from treadle.cli.screen.tables import Gives
    from treadle.runtime.client import Client

COLUMNS = ("position", "run", "why", "key", "priority", "since", "due", "items", "version")
GIVES: tuple[Gives, ...] = (("leave", "items"), ("leave", "version"), ("cut", "key"), ("front", "run"))


def queue(
    workflow: Annotated[str, Parameter(help="The workflow's name.")],
    /,
    *,
    limit: LimitOption = 50,
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """Show the queued runs of a workflow that limits its starts, in the order in which they will start. `treadle runs
    cancel` takes one out."""
    from treadle.cli.frame.opening import ask

    async def act(client: Client, out: Any) -> int:
        from treadle.cli.screen.output import builtins, clock_time

        rows = []
        for one in await client.queue(workflow, limit):
            words = {
                "key": "" if one.key is None else str(one.key),
                "since": clock_time(one.since),
                "due": clock_time(one.due) or "",
            }
            rows.append({**builtins(one), **(words if out.text else {})})
        out.rows(COLUMNS, rows, f"no run of {workflow} waits for its start", GIVES)
        return OK

    return ask(configuration(store, output), act)
