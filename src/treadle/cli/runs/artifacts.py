"""`treadle artifacts …`: files that runs have kept under a name.

Exit codes: 0 done · 4 no such run or artifact · 5 the store cannot be used.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from treadle.cli.frame.exits import OK, REFUSED, VerbFailed
from treadle.cli.frame.options import OutputOption, StoreOption, configuration

if TYPE_CHECKING:
    from treadle.runtime.client import Client

app = App(name="artifacts", help="Artifacts that runs have kept: list, get.", help_format="plaintext")


@app.command(name="list")
def list_(
    run: Annotated[str, Parameter(help="The run's id, or the last six or more characters of it.")],
    /,
    *,
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """List the artifacts of a run."""

    async def act(client: Client, out: Any) -> int:
        rows = [{"name": name, **facts} for name, facts in sorted((await _artifacts(client, run)).items())]
        out.rows(("name", "size", "content_type", "digest"), rows, "the run has no artifacts")
        return OK

    return _ask(act, store, output)


@app.command
def get(
    run: Annotated[str, Parameter(help="The run's id, or the last six or more characters of it.")],
    name: Annotated[str, Parameter(help="The artifact's name.")],
    /,
    *,
    to: Annotated[Path | None, Parameter(help="Write it into this file; else to standard output.")] = None,
    store: StoreOption = None,
) -> int:
    """Get the content of an artifact."""

    async def act(client: Client, _out: Any) -> int:
        artifacts = await _artifacts(client, run)
        if name not in artifacts:
            raise VerbFailed(
                REFUSED, f"run {run} has no artifact {name!r}; it has {', '.join(sorted(artifacts)) or 'none'}"
            )
        content = await client.artifact(artifacts[name]["digest"])
        if content is None:
            raise VerbFailed(REFUSED, f"the content of {name!r} is gone")
        if to is not None:
            to.write_bytes(content)
        else:
            sys.stdout.buffer.write(content)
            sys.stdout.buffer.flush()
        return OK

    return _ask(act, store, None)


async def _artifacts(client: Client, run: str) -> dict[str, dict[str, Any]]:
    state = await (await client.find_run(run)).state()
    return {name: dict(facts) for name, facts in state.artifacts.items()}


def _ask(act: Any, store: Any, output: Any) -> int:
    from treadle.cli.frame.opening import ask

    return ask(configuration(store, output), act)
