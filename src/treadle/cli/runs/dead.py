"""`treadle dead …`: dead letters, messages to the outside that could not be delivered after every attempt.

Exit codes: 0 done · 4 no such letter · 5 the store cannot be used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from treadle.cli.frame.exits import OK, REFUSED, USAGE, VerbFailed
from treadle.cli.frame.options import LimitOption, OutputOption, StoreOption, configuration

if TYPE_CHECKING:
    from treadle.cli.screen.tables import Gives
    from treadle.runtime.client import Client

app = App(
    name="dead", help="Dead letters, messages that could not be delivered: list, requeue.", help_format="plaintext"
)

GIVES: tuple[Gives, ...] = (("front", "run"), ("wrap", "reason"))


@app.default
@app.command(name="list")
def list_(*, limit: LimitOption = 100, store: StoreOption = None, output: OutputOption = None) -> int:
    """List dead letters, each with the reason."""

    async def act(client: Client, out: Any) -> int:
        from treadle.cli.screen.output import builtins

        rows = []
        for row in await client.dead_letters(limit):
            effect = builtins(row.effect)
            about = {"what": effect.get("effect"), "visit": effect.get("token"), "reason": row.parked}
            rows.append({"id": row.id, "run": row.run, **about, **({} if out.text else {"effect": effect})})
        out.rows(("id", "run", "what", "visit", "reason"), rows, "there are no dead letters", GIVES)
        return OK

    return _ask(act, store, output)


@app.command
def requeue(
    ids: Annotated[tuple[int, ...], Parameter(help="Numbers of letters, as `dead list` shows them.", negative="")] = (),
    /,
    *,
    all: Annotated[bool, Parameter(help="All of them.", negative="")] = False,
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """Deliver dead letters again."""

    async def act(client: Client, out: Any) -> int:
        letters = [row.id for row in await client.dead_letters(100_000)]
        chosen = letters if all else list(ids)
        unknown = [letter for letter in chosen if letter not in letters]
        if unknown:
            raise VerbFailed(REFUSED, f"there is no dead letter {unknown[0]}: `treadle dead list` shows them")
        for letter in chosen:
            await client.requeue(letter)
        out.done({"requeued": chosen}, f"{len(chosen)} will be delivered again")
        return OK

    if not ids and not all:
        raise VerbFailed(USAGE, "name letters, or --all")
    return _ask(act, store, output)


def _ask(act: Any, store: Any, output: Any) -> int:
    from treadle.cli.frame.opening import ask

    return ask(configuration(store, output), act)
