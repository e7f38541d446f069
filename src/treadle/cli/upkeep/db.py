"""`treadle db …`: moves a whole store to another place, a SQLite file into a PostgreSQL database and back.

Exit codes: 0 moved, or undone · 4 refused: the target is not empty, there is nothing to undo, the move is complete · 5
a store cannot be used: it was moved, or another process uses it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, TypeVar

from cyclopts import App, Parameter

from treadle.cli.frame.exits import OK, STORE, VerbFailed
from treadle.cli.frame.options import OutputOption, configuration

if TYPE_CHECKING:
    from treadle.cli.screen.progress import Counter

app = App(name="db", help="A store as a whole: move, undo.", help_format="plaintext")

WaitOption = Annotated[bool, Parameter(help="Wait until the processes that use it have stopped.", negative="")]
NEXT = "next: make it the store (TREADLE_STORE, or treadle.toml) and start your engines"
COPIED = "both can be used now; let engines work on one of them only"
T = TypeVar("T")


@app.command
def move(
    source: Annotated[str, Parameter(help="A SQLite file, or postgresql://…")],
    target: Annotated[str, Parameter(help="The same; must be empty, or not exist yet.")],
    /,
    *,
    wait: WaitOption = False,
    keep_source: Annotated[bool, Parameter(help="Copy: the source can be used again afterwards.", negative="")] = False,
    restart: Annotated[
        bool, Parameter(help="Delete from the target what another, unfinished move has written.", negative="")
    ] = False,
    output: OutputOption = None,
) -> int:
    """Move everything to another place. Run it again if it was interrupted."""
    from treadle.cli.frame.opening import drive

    config = configuration(None, output)

    async def verb() -> int:
        from treadle.cli.screen.output import Out, builtins, say
        from treadle.cli.screen.progress import Counter
        from treadle.runtime.operate.moving import move

        out = Out(config["output"])
        with Counter("") as counter:
            moved = await _when_free(
                lambda wait: move(
                    source, target, wait=wait, keep_source=keep_source, restart=restart, progress=_staged(counter)
                ),
                wait,
            )
        rows = f"{moved.rows['runs']:,} runs, {sum(moved.rows.values()):,} rows in all, compared and checked"
        told = f"{moved.source} {'is copied' if keep_source else 'was moved'} to {moved.target} ({rows})"
        out.done(builtins(moved), told)
        if out.text:
            say(COPIED if keep_source else NEXT)
        return OK

    return drive(verb())


@app.command
def undo(
    source: Annotated[str, Parameter(help="A store that is being moved.")],
    /,
    *,
    wait: WaitOption = False,
    force: Annotated[
        bool, Parameter(help="Also after a complete move; the other store must never be used again.", negative="")
    ] = False,
    output: OutputOption = None,
) -> int:
    """Undo a move that is not complete: the store can be used again."""
    from treadle.cli.frame.opening import drive

    config = configuration(None, output)

    async def verb() -> int:
        from treadle.cli.screen.output import Out
        from treadle.runtime.operate.moving import undo

        other = await _when_free(lambda wait: undo(source, wait=wait, force=force), wait)
        row = {"store": source, "other": other}
        Out(config["output"]).done(row, f"{source} can be used again; {other} must not be used")
        return OK

    return drive(verb())


def _staged(counter: Counter) -> Callable[[str, int, int], None]:
    """Shows the stages of a move: the name of a table while it is copied, else the words of the stage."""
    return lambda what, done, total: counter.stage(what if " " in what else f"copying {what}", done, total)


async def _when_free(act: Callable[[bool], Awaitable[T]], wait: bool) -> T:
    """Acts when no process uses the stores. If one does: with `wait`, says which one and waits; else raises
    VerbFailed."""
    from treadle.cli.screen.output import say
    from treadle.errors import OwnedElsewhere

    try:
        return await act(False)
    except OwnedElsewhere as elsewhere:
        told = f"{elsewhere.place} is in use by {elsewhere.owner}"
        if not wait:
            raise VerbFailed(STORE, f"{told}: stop them, or --wait until they have stopped") from None
        say(f"{told}; waiting until they have stopped")
    return await act(True)
