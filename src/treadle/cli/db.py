"""`treadle db …`: moves a whole store to another place, a SQLite file into a PostgreSQL database and back.

Exit codes: 0 moved · 4 refused: the target is not empty, there is nothing to undo · 5 a store cannot be used, or is
coordinated by somebody.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from cyclopts import App, Parameter

from treadle.cli.exits import OK
from treadle.cli.options import OutputOption, configuration

app = App(name="db", help="A store as a whole: move, undo.", help_format="plaintext")

WaitOption = Annotated[bool, Parameter(help="Wait for whoever coordinates it to stop.", negative="")]


@app.command
def move(
    source: Annotated[str, Parameter(help="A SQLite file, or postgresql://…")],
    target: Annotated[str, Parameter(help="The same; must be empty, or not exist yet.")],
    /,
    *,
    wait: WaitOption = False,
    keep_source: Annotated[bool, Parameter(help="Copy: the source can be used again afterwards.", negative="")] = False,
    restart: Annotated[
        bool, Parameter(help="Throw away what another unfinished move has left in the target.", negative="")
    ] = False,
    output: OutputOption = None,
) -> int:
    """Move everything to another place. Run it again if it was interrupted."""
    from treadle.cli.opening import drive

    config = configuration(None, output)

    async def verb() -> int:
        from treadle.cli.emit import Out, builtins
        from treadle.cli.progress import Counter
        from treadle.runtime.moving import move

        with Counter("rows") as counter:
            moved = await move(
                source, target, wait=wait, keep_source=keep_source, restart=restart, progress=_shown(counter.update)
            )
        rows = f"{moved.rows['runs']:,} runs, {sum(moved.rows.values()):,} rows in all, compared and checked"
        told = f"{moved.source} {'is copied' if keep_source else 'was moved'} to {moved.target} ({rows})"
        Out(config["output"]).done(builtins(moved), told)
        return OK

    return drive(verb())


@app.command
def undo(
    source: Annotated[str, Parameter(help="A store that is being moved.")],
    /,
    *,
    wait: WaitOption = False,
    force: Annotated[
        bool, Parameter(help="Also one that has been moved: the other one must never be used again.", negative="")
    ] = False,
    output: OutputOption = None,
) -> int:
    """Stay: a store whose move was begun can be used again."""
    from treadle.cli.opening import drive

    config = configuration(None, output)

    async def verb() -> int:
        from treadle.cli.emit import Out
        from treadle.runtime.moving import undo

        other = await undo(source, wait=wait, force=force)
        row = {"store": source, "other": other}
        Out(config["output"]).done(row, f"{source} can be used again; what is in {other} must not be")
        return OK

    return drive(verb())


def _shown(update: Callable[[int, int | None], None]) -> Callable[[str, int, int], None]:
    """Progress of a shelf as a count with its share."""
    return lambda _what, done, total: update(done, total or None)
