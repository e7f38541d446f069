"""`treadle runs groups`: shows a run's fan-outs that are under way; adds branches to an open one, or closes it.

Exit codes: 0 done · 2 wrong usage · 4 no such run or group, or it refuses · 5 the store cannot be used, or no engine
answers (the request is kept).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from treadle.cli.frame.exits import OK, USAGE, VerbFailed
from treadle.cli.frame.options import OutputOption, StoreOption, configuration

if TYPE_CHECKING:
    from treadle.runtime.client import Client

COLUMNS = ("group", "names", "node", "path", "open", "total", "spawned", "failed", "joins")


def groups(
    run: Annotated[str, Parameter(help="The run's id, or the last six or more characters of it.")],
    /,
    *,
    add: Annotated[str | None, Parameter(help="Add branches to the open group of this name.")] = None,
    items: Annotated[
        str | None, Parameter(help="With --add: a JSON list, @FILE, or -; one branch for each item.")
    ] = None,
    count: Annotated[int | None, Parameter(help="With --add: how many branches.")] = None,
    close: Annotated[str | None, Parameter(help="Close the open group of this name: it gets no more branches.")] = None,
    by: Annotated[str, Parameter(help="Your name, for the history.")] = "operator",
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """Show the fan-outs of a run that are under way, add branches to an open one, or close it."""
    from treadle.cli.frame.inputs import read_json
    from treadle.cli.frame.opening import ask

    given = read_json(items, "--items")
    _check(add, close, given, count)

    async def act(client: Client, out: Any) -> int:
        from treadle.cli.screen.progress import no_answer_yet

        found = await client.find_run(run)
        if add is None and close is None:
            out.rows(COLUMNS, rows_of(await found.state()), "the run has no fan-out under way")
            return OK
        with no_answer_yet():
            if close is not None:
                await found.close_group(close, by=by)
            else:
                assert add is not None
                await found.add_siblings(add, given, count=count)
        done, group = ("closed", close) if close is not None else ("grown", add)
        out.done({"run": found.id, "group": group, "done": done}, f"group {group!r} of {found.id} is {done}")
        return OK

    return ask(configuration(store, output), act)


def _check(add: str | None, close: str | None, items: Any, count: int | None) -> None:
    if add is not None and close is not None:
        raise VerbFailed(USAGE, "--add or --close, not both")
    if add is None and (items is not None or count is not None):
        raise VerbFailed(USAGE, "--items and --count are for --add GROUP")
    if add is not None and (items is None) == (count is None):
        raise VerbFailed(USAGE, "--add needs --items or --count")
    if items is not None and not isinstance(items, list):
        raise VerbFailed(USAGE, f"--items must be a JSON list, one value for each new branch, not {items!r}")


def rows_of(state: Any) -> list[dict[str, Any]]:
    """The live groups of a run, oldest first. `names` are what `--group`, `--add` and `--close` take."""
    return [
        {
            "group": group.id,
            "names": [name.partition(":")[2] for name in group.names],
            "node": group.node,
            "path": group.path,
            "open": group.open,
            "total": group.total,
            "spawned": group.spawned,
            "failed": len(group.failed),
            "joins": [f"{site.target}: {site.status}, {site.arrived} arrived" for site in group.sites],
        }
        for group in state.groups.values()
    ]
