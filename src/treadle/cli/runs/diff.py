"""`treadle runs diff`: what changed in a run between two moments.

Exit codes: 0 done · 4 no such run or moment · 5 the store cannot be used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from treadle.cli.frame.exits import OK
from treadle.cli.frame.options import OutputOption, StoreOption, configuration
from treadle.cli.runs.change_words import RunOption

if TYPE_CHECKING:
    from treadle.cli.screen.tables import Gives
    from treadle.runtime.client import Client
    from treadle.runtime.run import StateDifference

COLUMNS = ("what", "change", "before", "after")
GIVES: tuple[Gives, ...] = (("wrap", "after"), ("wrap", "before"))
MOMENT = "the number of an event, visit:N, a node's name, or a time such as 2026-11-18T02:30"


def diff(
    run: RunOption,
    begin: Annotated[str, Parameter(name="FROM", help=f"A moment: {MOMENT}.")],
    end: Annotated[str | None, Parameter(name="TO", help="A later moment; else the run as it is now.")] = None,
    /,
    *,
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """Show what changed in a run between two moments: its data, visits, groups and joins."""
    from treadle.cli.frame.opening import ask

    async def act(client: Client, out: Any) -> int:
        from treadle.cli.screen.output import builtins
        from treadle.runtime.run import moment_of

        found = await client.find_run(run)
        last = moment_of(end) if end is not None else (await found.info()).seq
        changed = await found.diff(moment_of(begin), last)
        if not out.text:
            out.json(builtins(changed))
            return OK
        out.rows(COLUMNS, rows_of(changed), "nothing has changed", GIVES)
        return OK

    return ask(configuration(store, output), act)


def rows_of(changed: StateDifference) -> list[dict[str, Any]]:
    """The differences as rows of a table."""
    rows: list[dict[str, Any]] = [
        {"what": f"run {one.field}", "change": "changed", "before": one.before, "after": one.after}
        for one in changed.run_fields
    ]
    for one in changed.data:
        branch = f" (group {one.group}, branch {one.branch})" if one.group is not None else ""
        rows.append({"what": f"{one.place}{branch}", "change": one.change, "before": one.before, "after": one.after})
    rows += [
        {
            "what": f"visit {one.visit} {one.node}",
            "change": "added" if one.begin is None else "removed" if one.end is None else "changed",
            "before": one.begin,
            "after": one.end,
        }
        for one in changed.moved
    ]
    for kind, parts in (
        ("group", changed.groups),
        ("join", changed.joins),
        ("gate", changed.gates),
        ("timer", changed.timers),
    ):
        key = "visit" if kind == "gate" else kind
        rows += [{"what": f"{kind} {one[key]}", "change": "added", "after": _brief(one)} for one in parts.added]
        rows += [{"what": f"{kind} {one[key]}", "change": "removed", "before": _brief(one)} for one in parts.removed]
        rows += [
            {"what": f"{kind} {one.ref} {one.field}", "change": "changed", "before": one.before, "after": one.after}
            for one in parts.changed
        ]
    return rows


def _brief(row: dict[str, Any]) -> str:
    words = (row.get(name) for name in ("node", "status", "waiting_for", "purpose", "title"))
    return " ".join(str(word) for word in words if word is not None)
