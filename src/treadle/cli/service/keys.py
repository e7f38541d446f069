"""`treadle keys …`: keys of the service. They are made on the store directly, so that a first admin can be made.

Exit codes: 0 done · 2 the call is wrong · 4 no such key · 5 the store cannot be used.
"""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import App, Parameter

from treadle.cli.frame.exits import OK
from treadle.cli.frame.options import OutputOption, StoreOption, configuration

app = App(name="keys", help="Keys of the service: create, list, revoke.", help_format="plaintext")
COLUMNS = ("id", "name", "user", "roles", "workflows", "groups", "expires")


@app.command
def create(
    name: Annotated[str, Parameter(help="What the key is for.")],
    /,
    *,
    role: Annotated[
        tuple[str, ...],
        Parameter(help="What it may: viewer, operator, author, approver, worker, admin.", negative=""),
    ],
    user: Annotated[str | None, Parameter(help="The person who uses it; else its name.")] = None,
    group: Annotated[tuple[str, ...], Parameter(help="Groups of that person.", negative="")] = (),
    workflow: Annotated[
        tuple[str, ...], Parameter(help="Only for workflows that fit such a pattern: orders/*", negative="")
    ] = (),
    expires: Annotated[str | None, Parameter(help="How long it is valid: 90d, 12h, 30m.")] = None,
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """Make a key and print it, this once."""
    from treadle.cli.screen.output import say

    async def act(client: Any, out: Any) -> int:
        from treadle.cli.frame.inputs import duration_ms

        until = client.now() + duration_ms(expires, "--expires") if expires is not None else None
        key, text = await client.keys.create(
            name, role, user=user, groups=group, workflows=workflow or None, expires=until
        )
        if out.text:
            print(text)
            say(f"the key {key.id} of {key.name} ({', '.join(key.roles)}); it is shown this once")
        else:
            out.json({**row(key), "key": text})
        return OK

    return _ask(act, store, output)


@app.default
@app.command(name="list")
def list_(*, store: StoreOption = None, output: OutputOption = None) -> int:
    """List keys, without the keys themselves."""

    async def act(client: Any, out: Any) -> int:
        shown = _in_words if out.text else row
        out.rows(COLUMNS, [shown(key) for key in await client.keys.list()], "there are no keys")
        return OK

    return _ask(act, store, output)


@app.command
def revoke(
    key: Annotated[str, Parameter(help="The key's id, or the key itself.")],
    /,
    *,
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """End a key. Services refuse it within five seconds."""

    async def act(client: Any, out: Any) -> int:
        revoked = await client.keys.revoke(key)
        out.one(_in_words(revoked)) if out.text else out.json(row(revoked))
        return OK

    return _ask(act, store, output)


def row(key: Any) -> dict[str, Any]:
    """A key as a row, without its hash."""
    import msgspec

    return {name: value for name, value in msgspec.to_builtins(key).items() if name != "hash"}


def _in_words(key: Any) -> dict[str, Any]:
    """The row as people read it."""
    from treadle.cli.screen.output import clock_time

    expires = clock_time(key.expires) if key.expires is not None else None
    return {**row(key), "created": clock_time(key.created), "expires": expires}


def _ask(act: Any, store: str | None, output: Any) -> int:
    from treadle.cli.frame.opening import ask_or_make

    return ask_or_make(configuration(store, output), act)
