"""`treadle runs fork`: starts a run with the past of another one up to a point.

Exit codes: 0 done · 2 an argument cannot be read · 4 no such run or point, or it refuses · 5 the store cannot be used,
or no engine answers (the request is kept).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from treadle.cli.frame.exits import OK, USAGE, VerbFailed
from treadle.cli.frame.options import OutputOption, StoreOption, configuration
from treadle.cli.runs.change_words import ByOption, DryRunOption, RunOption, assignments, report

if TYPE_CHECKING:
    from treadle.runtime.client import Client


def fork(
    run: RunOption,
    /,
    *,
    at: Annotated[int | None, Parameter(help="After the event of this number; else as the run is now.")] = None,
    visit: Annotated[int | None, Parameter(help="Before the work of this visit.")] = None,
    node: Annotated[str | None, Parameter(help="Before the work of the first visit of this node.")] = None,
    input: Annotated[str | None, Parameter(help="Another input: JSON, @FILE, or - for standard input.")] = None,
    set: Annotated[
        tuple[str, ...], Parameter(help="PATH=VALUE of the data, such as state.x=5; repeatable.", negative="")
    ] = (),
    output_of: Annotated[
        tuple[str, ...],
        Parameter(help="VISIT=JSON or NODE=JSON: another output of a visit that has returned.", negative=""),
    ] = (),
    version: Annotated[int | None, Parameter(help="Go on under this version of the workflow.")] = None,
    key: Annotated[str | None, Parameter(help="The same key gives the same fork again.")] = None,
    tag: Annotated[tuple[str, ...], Parameter(help="A tag of the fork; repeatable.", negative="")] = (),
    entity: Annotated[str | None, Parameter(help="The entity it is about: TYPE/ID.")] = None,
    inherit_compensation: Annotated[
        bool, Parameter(help="If the fork is undone, undo what it inherits, too.", negative="")
    ] = False,
    by: ByOption = "operator",
    dry_run: DryRunOption = False,
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """Start a run that has the past of another one up to a point. The other run is not touched."""
    from treadle.cli.frame.inputs import read_json
    from treadle.cli.frame.opening import ask

    if sum(part is not None for part in (at, visit, node)) > 1:
        raise VerbFailed(USAGE, "a fork begins at one point: --at, --visit or --node")
    asked: dict[str, Any] = {
        "visit": visit,
        "node": node,
        "input": read_json(input, "--input"),
        "state": assignments(set, "--set"),
        "outputs": assignments(output_of, "--output-of"),
        "version": version,
        "key": key,
        "tags": tag,
        "entity": entity,
        "inherit_compensation": inherit_compensation,
        "by": by,
    }

    async def act(client: Client, out: Any) -> int:
        from treadle.cli.screen.progress import no_answer_yet

        found = await client.find_run(run)
        if dry_run:
            report(out, found, "forked", await found.foretell_fork(at, **asked), True)
            return OK
        with no_answer_yet():
            forked = await found.fork(at, **asked)
        out.done({"run": forked.id, "done": "forked", "from": found.id}, f"forked {found.id}: {forked.id}")
        return OK

    return ask(configuration(store, output), act)
