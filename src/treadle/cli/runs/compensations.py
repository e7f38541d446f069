"""`treadle runs compensations`: lists a run's compensations; retries or skips one that failed.

Exit codes: 0 done · 2 both --retry and --skip · 4 no such run or record, or it has not failed · 5 the store cannot be
used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from treadle.cli.frame.exits import OK, USAGE, VerbFailed
from treadle.cli.frame.options import OutputOption, StoreOption, configuration
from treadle.model.errors import Error

if TYPE_CHECKING:
    from treadle.cli.screen.tables import Gives
    from treadle.runtime.client import Client

COLUMNS = ("record", "node", "visit", "status", "changed_at", "attempts", "why")
GIVES: tuple[Gives, ...] = (("cut", "why"), ("leave", "changed_at"), ("leave", "attempts"), ("cut", "node"))


def compensations(
    run: Annotated[str, Parameter(help="The run's id, or the last six or more characters of it.")],
    /,
    *,
    retry: Annotated[bool, Parameter(help="Try the compensation that failed again.", negative="")] = False,
    skip: Annotated[bool, Parameter(help="Leave it undone and go on with the others.", negative="")] = False,
    record: Annotated[
        int | None, Parameter(help="Number of the compensation in the list, if several have failed.")
    ] = None,
    by: Annotated[str, Parameter(help="Your name, for the history.")] = "operator",
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """List a run's compensations in the order of the work they undo, with their status. Retry or skip a failed one."""
    from treadle.cli.frame.opening import ask

    if retry and skip:
        raise VerbFailed(USAGE, "--retry and --skip exclude each other")

    async def act(client: Client, out: Any) -> int:
        from treadle.cli.screen.output import builtins, clock_time
        from treadle.cli.screen.progress import no_answer_yet

        found = await client.find_run(run)
        if retry or skip:
            with no_answer_yet():
                chosen = await (found.retry_compensation if retry else found.skip_compensation)(record, by=by)
            done = "retried" if retry else "skipped"
            out.done({"run": found.id, "done": done, "record": chosen}, f"{done} compensation {chosen} of {found.id}")
            return OK
        await found.info()
        rows = []
        for one in await found.compensations():
            words = {"changed_at": clock_time(one.changed), "why": _why(one.error, one.by, one.child)}
            rows.append({**builtins(one), **(words if out.text else {})})
        out.rows(COLUMNS, rows, "the run has nothing to undo", GIVES)
        return OK

    return ask(configuration(store, output), act)


def _why(error: Error | None, by: str | None, child: str | None) -> str:
    if error is not None:
        return f"{error.kind}: {error.message}"
    if by is not None:
        return f"by {by}"
    return f"child {child}" if child is not None else ""
