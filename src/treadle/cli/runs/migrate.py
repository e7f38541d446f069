"""`treadle migrate RUN… --to VERSION`: lets runs go on under another version of their workflow (6.5).

Exit codes: 0 all of them do, or could (--dry-run) · 2 neither runs nor a workflow, or both · 4 no such run, or
something is in the way of one; it is listed, and that run stays as it is · 5 the store cannot be used, or no engine
answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from treadle.cli.frame.exits import OK, REFUSED, STORE, USAGE, VerbFailed
from treadle.cli.frame.options import OutputOption, StoreOption, configuration

if TYPE_CHECKING:
    from treadle.cli.screen.tables import Gives
    from treadle.runtime.client import Client, Migration

COLUMNS = ("run", "from", "to", "outcome", "in_the_way")
GIVES: tuple[Gives, ...] = (("cut", "in_the_way"), ("cut", "run"))


def migrate(
    runs: Annotated[list[str], Parameter(help="Ids of runs, or the last six or more characters of each.")] = [],  # noqa: B006
    /,
    *,
    to: Annotated[int, Parameter(help="The version to go on under.")],
    node: Annotated[
        list[str],
        Parameter(name="--node", help="OLD=NEW: the node that takes the place of another. May be repeated."),
    ] = [],  # noqa: B006
    workflow: Annotated[str | None, Parameter(help="Instead of ids: all runs of this workflow.")] = None,
    version: Annotated[int | None, Parameter(help="With --workflow: only runs of this version.")] = None,
    status: Annotated[
        list[str], Parameter(help="With --workflow: only runs that are running, paused, queued or failed.")
    ] = [],  # noqa: B006
    tag: Annotated[str | None, Parameter(help="With --workflow: only runs with this tag.")] = None,
    dry_run: Annotated[bool, Parameter(help="Only say what is in the way of each run.", negative="")] = False,
    by: Annotated[str, Parameter(help="Your name, for the history.")] = "operator",
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """Let runs go on under another version of their workflow. A plan is made for each run first; a run that has
    something in the way stays as it is, and all of it is listed."""
    from treadle.cli.frame.opening import ask

    nodes = dict(map(_pair, node))
    if bool(runs) == (workflow is not None):
        raise VerbFailed(USAGE, "name runs, or a --workflow: one of the two")

    async def act(client: Client, out: Any) -> int:
        from treadle.cli.screen.progress import no_answer_yet

        chosen: Any = [(await client.find_run(text)).id for text in runs]
        if workflow is not None:
            given = {"workflow": workflow, "version": version, "statuses": status, "tag": tag}
            chosen = {name: value for name, value in given.items() if value}
        with no_answer_yet():
            reports = await client.migrate(chosen, to, nodes, dry_run=dry_run, by=by)
        _show(reports, out)
        if any(report.outcome == "kept" for report in reports):
            return STORE
        return OK if all(report.ok for report in reports) else REFUSED

    return ask(configuration(store, output), act)


def _show(reports: list[Migration], out: Any) -> None:
    """A line for each run; in a table everything in the way of a run has a line of its own."""
    from treadle.cli.screen.output import builtins

    rows: list[dict[str, Any]] = []
    for report in reports:
        row = builtins(report)
        told = [entry.message for entry in report.obstacles] or [report.message or ""]
        if not out.text:
            rows.append(row)
            continue
        rows.append({**row, "in_the_way": told[0]})
        rows += [{"in_the_way": text} for text in told[1:]]
    out.rows(COLUMNS, rows, "there are no such runs", GIVES)


def _pair(text: str) -> tuple[str, str]:
    old, equals, new = text.partition("=")
    if not (old and equals and new):
        raise VerbFailed(USAGE, f"--node is OLD=NEW, got {text!r}")
    return old, new
