"""`treadle runs edit`, `skip`, `jump` and `set-input`: change a run that stands still.

Exit codes: 0 done · 2 an argument cannot be read · 4 no such run or visit, or it refuses · 5 the store cannot be used,
or no engine answers (the request is kept).
"""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from treadle.cli.frame.exits import USAGE, VerbFailed
from treadle.cli.frame.options import OutputOption, StoreOption
from treadle.cli.runs.change_words import (
    ByOption,
    DryRunOption,
    ReasonOption,
    RunOption,
    VisitOption,
    assignments,
    change,
)


def edit(
    run: RunOption,
    /,
    *writes: Annotated[str, Parameter(help="PATH=VALUE: state.x=5. A value is JSON, else text.")],
    branch: Annotated[int | None, Parameter(help="Write the scope of this visit's branch, not the run's.")] = None,
    reason: ReasonOption = None,
    by: ByOption = "operator",
    dry_run: DryRunOption = False,
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """Write values into the data of a paused or failed run."""
    wanted = assignments(writes, "edit")
    if not wanted:
        raise VerbFailed(USAGE, "edit needs at least one PATH=VALUE, such as state.x=5")
    return change(
        run,
        "edited",
        lambda found: found.edit(wanted, branch=branch, by=by, reason=reason, dry_run=dry_run),
        dry_run,
        store,
        output,
    )


def skip(
    run: RunOption,
    visit: VisitOption,
    value: Annotated[str | None, Parameter(help="Its output: JSON, @FILE, or - for standard input.")] = None,
    /,
    *,
    reason: ReasonOption = None,
    by: ByOption = "operator",
    dry_run: DryRunOption = False,
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """Complete a visit by hand, with this output. If it had failed, what its failure took down comes back."""
    from treadle.cli.frame.inputs import read_json

    given = read_json(value, "VALUE")
    return change(
        run,
        f"skipped visit {visit} of",
        lambda found: found.skip(visit, given, by=by, reason=reason, dry_run=dry_run),
        dry_run,
        store,
        output,
    )


def jump(
    run: RunOption,
    visit: VisitOption,
    to: Annotated[str, Parameter(help="The node at which it goes on.")],
    /,
    *,
    reason: ReasonOption = None,
    by: ByOption = "operator",
    dry_run: DryRunOption = False,
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """End a visit of a paused or failed run, and go on at another node."""
    return change(
        run,
        f"visit {visit} goes on at {to} in",
        lambda found: found.jump(visit, to, by=by, reason=reason, dry_run=dry_run),
        dry_run,
        store,
        output,
    )


def set_input(
    run: RunOption,
    visit: VisitOption,
    value: Annotated[str | None, Parameter(help="The input: JSON, @FILE, or - for standard input.")] = None,
    /,
    *,
    reason: ReasonOption = None,
    by: ByOption = "operator",
    dry_run: DryRunOption = False,
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """Set what the next attempt of a visit of a paused or failed run is given."""
    from treadle.cli.frame.inputs import read_json

    given = read_json(value, "VALUE")
    return change(
        run,
        f"set the input of visit {visit} of",
        lambda found: found.set_input(visit, given, by=by, reason=reason, dry_run=dry_run),
        dry_run,
        store,
        output,
    )
