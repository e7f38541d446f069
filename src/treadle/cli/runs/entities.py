"""`treadle entities …`: records of entities, their journeys, where they are, what became of them.

Exit codes: 0 done · 2 an option is written wrongly · 4 no such entity or workflow, or refused · 5 the store cannot be
used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from treadle.cli.frame.exits import OK, USAGE, VerbFailed
from treadle.cli.frame.options import OutputOption, StoreOption, configuration
from treadle.cli.watch.entity_words import entity_row, place_word, step_row

if TYPE_CHECKING:
    from treadle.cli.screen.tables import Gives
    from treadle.runtime.client import Client

app = App(
    name="entities",
    help="Entities: list, show, create, update, delete, journey, move, positions, conversion.",
    help_format="plaintext",
)

COLUMNS = ("entity", "name", "email", "where", "since")
GIVES: tuple[Gives, ...] = (("leave", "email"), ("cut", "name"), ("cut", "where"), ("cut", "entity"))
STEPS = ("at", "run", "workflow", "event", "place", "stay", "as", "note")
STEPS_GIVE: tuple[Gives, ...] = (("cut", "note"), ("leave", "workflow"), ("cut", "run"), ("cut", "place"))
FLOWS = ("place", "entered", "left", "converted", "spent_p50", "spent_p95")

EntityOption = Annotated[str, Parameter(help="TYPE/ID, for instance lead/4711.")]
NameOption = Annotated[str | None, Parameter(help="Its name; an empty one removes it.")]
EmailOption = Annotated[str | None, Parameter(help="Its email address; an empty one removes it.")]
AttributesOption = Annotated[
    str | None, Parameter(help="An object: JSON, @FILE, or - for standard input. Merged; null removes an attribute.")
]
LimitOption = Annotated[int, Parameter(name=["--limit", "-n"], help="At most so many.")]


@app.default
@app.command(name="list")
def list_(
    *,
    type: Annotated[str | None, Parameter(help="Only entities of this type.")] = None,
    workflow: Annotated[str | None, Parameter(help="Only those that are somewhere in this workflow.")] = None,
    section: Annotated[str | None, Parameter(help="Only those that are in this section.")] = None,
    text: Annotated[str | None, Parameter(help="Only those with this in id, name or email.")] = None,
    limit: LimitOption = 100,
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """List entities, newest first."""

    async def act(client: Client, out: Any) -> int:
        found = await client.entities.list(type=type, workflow=workflow, section=section, text=text, limit=limit)
        out.rows(COLUMNS, [entity_row(one, words=out.text) for one in found], "there are no such entities", GIVES)
        return OK

    return _ask(act, store, output)


@app.command
def show(entity: EntityOption, /, *, store: StoreOption = None, output: OutputOption = None) -> int:
    """Show one entity and where it is in every workflow. A former address shows it as it is now."""

    async def act(client: Client, out: Any) -> int:
        found = await client.entities.get(*_address(entity))
        out.one(entity_row(found, words=out.text) | ({"attributes": found.attributes} if out.text else {}))
        return OK

    return _ask(act, store, output)


@app.command
def create(
    entity: EntityOption,
    /,
    *,
    name: NameOption = None,
    email: EmailOption = None,
    attributes: AttributesOption = None,
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """Make the record of an entity."""
    given = _attributes(attributes)

    async def act(client: Client, out: Any) -> int:
        made = await client.entities.create(
            *_address(entity), name=name or None, email=email or None, attributes=given or {}
        )
        out.done(entity_row(made), f"created {made.type}/{made.id}")
        return OK

    return _ask(act, store, output)


@app.command
def update(
    entity: EntityOption,
    /,
    *,
    name: NameOption = None,
    email: EmailOption = None,
    attributes: AttributesOption = None,
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """Change the record of an entity; what is not given stays as it is."""
    given: dict[str, Any] = {}
    if name is not None:
        given["name"] = name or None
    if email is not None:
        given["email"] = email or None
    if attributes is not None:
        given["attributes"] = _attributes(attributes)

    async def act(client: Client, out: Any) -> int:
        made = await client.entities.update(*_address(entity), **given)
        out.done(entity_row(made), f"updated {made.type}/{made.id}")
        return OK

    return _ask(act, store, output)


@app.command
def delete(entity: EntityOption, /, *, store: StoreOption = None, output: OutputOption = None) -> int:
    """Delete the record of an entity and its journey. Refused while a run about it is live."""

    async def act(client: Client, out: Any) -> int:
        await client.entities.delete(*_address(entity))
        out.done({"entity": entity, "done": "deleted"}, f"deleted {entity}")
        return OK

    return _ask(act, store, output)


@app.command
def journey(
    entity: EntityOption, /, *, limit: LimitOption = 100, store: StoreOption = None, output: OutputOption = None
) -> int:
    """Show every move of an entity, run by run, newest run first."""

    async def act(client: Client, out: Any) -> int:
        from treadle.cli.screen.output import builtins

        legs = await client.entities.journey(*_address(entity), limit=limit)
        if out.text:
            steps = [step_row(leg, move) for leg in legs for move in leg.moves]
            out.rows(STEPS, steps, f"{entity} has not moved yet", STEPS_GIVE)
        else:
            out.rows((), builtins(legs), "")
        return OK

    return _ask(act, store, output)


@app.command
def move(
    entity: EntityOption,
    workflow: Annotated[str, Parameter(help="The workflow in which it is moved.")],
    /,
    *,
    node: Annotated[str | None, Parameter(help="The node it is moved to.")] = None,
    section: Annotated[str | None, Parameter(help="Or the section.")] = None,
    reason: Annotated[str | None, Parameter(help="Why, for the journey.")] = None,
    by: Annotated[str, Parameter(help="Name of the person who moves it.")] = "operator",
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """Move an entity by hand. Live runs record the move; their tokens do not move."""
    if (node is None) == (section is None):
        raise VerbFailed(USAGE, "give one of --node and --section")

    async def act(client: Client, out: Any) -> int:
        from treadle.cli.screen.progress import no_answer_yet

        with no_answer_yet():
            moved = await client.entities.move(
                *_address(entity), workflow, node=node, section=section, reason=reason, by=by
            )
        out.done(entity_row(moved), f"{moved.type}/{moved.id} is at {node or section} now")
        return OK

    return _ask(act, store, output)


@app.command
def positions(
    workflow: Annotated[str, Parameter(help="The workflow.")],
    /,
    *,
    limit: LimitOption = 100,
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """Show who is where in a workflow."""

    async def act(client: Client, out: Any) -> int:
        from treadle.cli.screen.output import builtins

        found = await client.entities.positions(workflow, limit=limit)
        if not out.text:
            out.json(builtins(found))
            return OK
        rows: list[dict[str, Any]] = []
        for place in found.places:
            name = place.node or place.edge or place.section or "nowhere"
            here = [f"{one.type}/{one.id}" for one in found.items if place_word(one.positions[0]) == name]
            rows.append({"place": name, "count": place.count, "entities": ", ".join(here)})
        out.rows(("place", "count", "entities"), rows, f"no entity is in {workflow}", (("cut", "entities"),))
        return OK

    return _ask(act, store, output)


@app.command
def conversion(
    workflow: Annotated[str, Parameter(help="The workflow.")],
    /,
    *,
    since: Annotated[
        str | None, Parameter(help="A time ago (30d, 12h, 5m) or milliseconds since 1970; none: the beginning.")
    ] = None,
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """Show how often each edge, section and node was entered, left, and led to success, and how long the stays were."""

    async def act(client: Client, out: Any) -> int:
        from treadle.cli.screen.output import builtins, duration

        found = await client.entities.conversion(workflow, _instant(since, client.now()))
        if not out.text:
            out.json(builtins(found))
            return OK
        rows = []
        for one in (*found.edges, *found.sections, *found.nodes):
            words = {f"spent_{part}": getattr(one, f"spent_{part}_ms") for part in ("p50", "p95")}
            spent = {name: duration(ms) if ms is not None else "" for name, ms in words.items()}
            rows.append({**builtins(one), "place": f"{one.kind} {one.place}", **spent})
        out.rows(FLOWS, rows, f"no entity has been in {workflow} since then", (("cut", "place"),))
        return OK

    return _ask(act, store, output)


def _address(text: str) -> tuple[str, str]:
    type, slash, id = text.partition("/")
    if not (type and slash and id):
        raise VerbFailed(USAGE, f"an entity is named TYPE/ID, as lead/4711; got {text!r}")
    return type, id


def _attributes(text: str | None) -> Any:
    from treadle.cli.frame.inputs import read_json

    value = read_json(text, "--attributes")
    if value is not None and not isinstance(value, dict):
        raise VerbFailed(USAGE, "--attributes is an object")
    return value


def _instant(text: str | None, now: int) -> int:
    if text is None:
        return 0
    units = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000}
    if text[-1:] in units and text[:-1].isdigit():
        return now - int(text[:-1]) * units[text[-1]]
    if text.isdigit():
        return int(text)
    raise VerbFailed(USAGE, f"--since is a time ago (30d, 12h, 5m) or milliseconds since 1970; got {text!r}")


def _ask(act: Any, store: Any, output: Any) -> int:
    from treadle.cli.frame.opening import ask

    return ask(configuration(store, output), act)
