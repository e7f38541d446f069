"""`treadle runs export RUN --scenario`: writes a recorded run as a scenario that plays it again.

Exit codes: 0 done · 2 wrong usage · 4 no such run, or too little of it is kept · 5 the store cannot be used.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from treadle.cli.frame.exits import OK, REFUSED, USAGE, VerbFailed
from treadle.cli.frame.options import StoreOption, configuration

if TYPE_CHECKING:
    from treadle.runtime.client import Client


def export(
    run: Annotated[str, Parameter(help="The run's id, or the last six or more characters of it.")],
    /,
    *,
    scenario: Annotated[bool, Parameter(help="As a scenario for `treadle test`.", negative="")] = False,
    to: Annotated[Path | None, Parameter(help="The file to write; else standard output.")] = None,
    store: StoreOption = None,
) -> int:
    """Write a recorded run as a scenario: its input, the recorded outcome of every attempt, the answers of people and
    systems at their times, and what is expected. It passes as written. Redacted values stay redacted."""
    from treadle.cli.frame.opening import ask

    if not scenario:
        raise VerbFailed(USAGE, "say how to write it: --scenario")

    async def act(client: Client, _out: Any) -> int:
        from treadle.testing.recorded.export import export as scenario_text
        from treadle.testing.recorded.past import read_run

        found = await client.find_run(run)
        try:
            recorded = await read_run(client, found.id)
        except LookupError as problem:
            raise VerbFailed(REFUSED, str(problem)) from None
        text = await in_thread(lambda: scenario_text(recorded))
        if to is not None:
            to.write_text(text, "utf-8")
        else:
            print(text, end="")
        return OK

    return ask(configuration(store, None), act)


async def in_thread(work: Any) -> Any:
    """The result of work that plays a scenario: the virtual world has an event loop of its own."""
    import asyncio

    return await asyncio.to_thread(work)
