"""`treadle replay FILE --since 7d | --runs RUN…`: plays recorded runs against a new definition.

Exit codes: 0 all would have gone the same way · 1 some would not · 2 wrong usage · 3 the definition is invalid · 4 no
such run · 5 the store cannot be used.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from treadle.cli.frame.exits import NO, OK, REFUSED, USAGE, VerbFailed
from treadle.cli.frame.options import LibraryOption, OutputOption, StoreOption, configuration

if TYPE_CHECKING:
    from treadle.model.definition import Workflow
    from treadle.runtime.client import Client

COLUMNS = ("run", "verdict", "line", "recorded", "replayed", "missing")
PAGE = 100


def replay(
    file: Annotated[Path, Parameter(help="The file with the new definition.")],
    /,
    *,
    since: Annotated[str | None, Parameter(help="Runs started within this time: 7d, 12h, 30m.")] = None,
    runs: Annotated[list[str] | None, Parameter(help="These runs.", consume_multiple=True)] = None,
    library: LibraryOption = None,
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """Play recorded runs against a new definition, with their recorded outcomes, and report those that would have gone
    otherwise: the first difference, side by side. Nothing is executed; an outcome that was not recorded is reported."""
    from treadle.cli.frame.inputs import read_definitions, shared
    from treadle.cli.frame.opening import ask

    if (since is None) == (not runs):
        raise VerbFailed(USAGE, "say which runs: --since 7d, or --runs RUN…")
    if not file.exists():
        raise VerbFailed(REFUSED, f"there is no {file}")
    config = configuration(store, output, library)
    definitions = read_definitions(file, shared(config))

    async def act(client: Client, out: Any) -> int:
        import asyncio

        from treadle.cli.screen.output import builtins
        from treadle.testing.recorded.past import read_run
        from treadle.testing.recorded.replay import replay as played

        rows: list[dict[str, Any]] = []
        for run in await _chosen(client, definitions, since, runs or []):
            try:
                recorded = await read_run(client, run)
            except LookupError as problem:
                rows.append({"run": run, "verdict": "unknown", "missing": [str(problem)]})
                continue
            result = await asyncio.to_thread(played, recorded, definitions)
            verdict = "same" if result.same else "missing" if result.line is None else "different"
            rows.append({**builtins(result), "verdict": verdict})
        if out.text:
            for row in rows:
                row["missing"] = "; ".join(row.get("missing") or ()) or None
        out.rows(COLUMNS, rows, "there are no such runs")
        return OK if all(row["verdict"] == "same" for row in rows) else NO

    return ask(config, act)


async def _chosen(client: Client, definitions: list[Workflow], since: str | None, runs: list[str]) -> list[str]:
    """The ids of the runs: those that were named, or the root runs of the workflows since then, oldest first."""
    from treadle.cli.frame.inputs import duration_ms

    if since is None:
        return [(await client.find_run(run)).id for run in runs]
    begin = client.now() - duration_ms(since, "--since")
    found: list[tuple[int, str]] = []
    for definition in definitions:
        beyond: int | None = None
        while True:
            page = await client.runs(workflow=definition.workflow, started_from=begin, beyond=beyond, limit=PAGE)
            found += [(row.number, row.run) for row in page if row.parent is None]
            if len(page) < PAGE:
                break
            beyond = page[-1].number
    return [run for _number, run in sorted(found)]
