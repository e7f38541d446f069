"""`treadle runs budget`: shows the budget of a run, or adds to its limits.

Exit codes: 0 done · 4 no such run, or it refuses · 5 the store cannot be used, or no engine answers (the request is
kept).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from treadle.cli.frame.exits import OK, REFUSED, VerbFailed
from treadle.cli.frame.options import OutputOption, StoreOption, configuration

if TYPE_CHECKING:
    from treadle.runtime.client import Client

COLUMNS = ("part", "spent", "limit", "new_limit")


def budget(
    run: Annotated[str, Parameter(help="The run's id, or the last six or more characters of it.")],
    /,
    *,
    cost: Annotated[float, Parameter(help="Add so much to the limit on cost.")] = 0,
    tokens: Annotated[int, Parameter(help="Add so much to the limit on tokens.")] = 0,
    visits: Annotated[int, Parameter(help="Add so much to the limit on visits.")] = 0,
    elapsed_ms: Annotated[int, Parameter(help="Add so many milliseconds to the limit on time.")] = 0,
    dry_run: Annotated[bool, Parameter(help="Say what would happen, and change nothing.", negative="")] = False,
    by: Annotated[str, Parameter(help="Your name, for the history.")] = "operator",
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """Show what a run and its children have spent and may spend. With amounts: add them to the limits; a run that its
    budget has stopped goes on."""
    from treadle.cli.frame.opening import ask

    more = {"cost": cost, "tokens": tokens, "visits": visits, "elapsed_ms": elapsed_ms}

    async def act(client: Client, out: Any) -> int:
        from treadle.cli.screen.output import say
        from treadle.cli.screen.progress import no_answer_yet

        found = await client.find_run(run)
        if any(more.values()) and not dry_run:
            with no_answer_yet():
                await found.raise_budget(cost=cost, tokens=tokens, visits=visits, elapsed_ms=elapsed_ms, by=by)
            out.done({"run": found.id, "done": "raised"}, f"raised the budget of {found.id}")
            return OK
        detail = await found.detail()
        rows = _rows(detail, more)
        if any(more.values()):
            goes_on = detail.budget is not None and detail.budget.exceeded is not None
            what = "it would go on" if goes_on else f"it is {detail.status} and would stay so"
            if out.text:
                say(f"nothing was changed; with the new limits {what}")
        out.rows(COLUMNS if any(more.values()) else COLUMNS[:-1], rows, "the run has no limits")
        return OK

    return ask(configuration(store, output), act)


def _rows(detail: Any, more: dict[str, float]) -> list[dict[str, Any]]:
    """The parts of the budget. Refuses what the run would refuse."""
    known = detail.budget
    if known is None:
        raise VerbFailed(REFUSED, f"run {detail.run} has no budget of its own")
    unlimited = [part for part, amount in more.items() if amount and part not in known.limits]
    if unlimited:
        raise VerbFailed(REFUSED, f"the budget of run {detail.run} has no limit on {', '.join(unlimited)}")
    return [
        {
            "part": part,
            "spent": spent,
            "limit": known.limits.get(part),
            **({"new_limit": known.limits[part] + more[part]} if part in known.limits and any(more.values()) else {}),
        }
        for part, spent in known.spent.items()
    ]
