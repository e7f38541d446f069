"""Entities: records, journeys, moves by hand; positions and conversion of a workflow."""

from __future__ import annotations

from typing import Any

from treadle.runtime.service.entity_shapes import Entity
from treadle.runtime.service.records import Changes
from treadle.server.call import HttpAnswer, HttpCall, created
from treadle.server.entity_bodies import (
    EntityFilter,
    EntityPage,
    EntityPatch,
    JourneyPage,
    JourneyQuery,
    MoveByHand,
    NewEntity,
    PositionQuery,
    SinceQuery,
)
from treadle.server.entity_views import ConversionView, EntityView, PositionsView, conversion_view, new_view, view
from treadle.server.problems import HttpProblem
from treadle.server.routes import OPERATOR, VIEWER, Route
from treadle.server.workflows import segment


async def list_entities(call: HttpCall) -> HttpAnswer:
    asked: EntityFilter = call.query
    found = await call.client.entities.list(
        type=asked.type,
        workflow=asked.workflow,
        section=asked.section,
        text=asked.text,
        before=_before(call),
        limit=asked.limit + 1,
    )
    page = found[: asked.limit]
    more = call.next_cursor(page[-1].number) if len(found) > len(page) else None
    return HttpAnswer(EntityPage([view(one) for one in page], more))


def _before(call: HttpCall) -> int | None:
    after: int | None = call.cursor()
    before: int | None = call.query.before
    return before if after is None else after


async def create(call: HttpCall) -> HttpAnswer:
    given: NewEntity = call.body
    entities = call.client.entities
    row = entities.new(given.type, given.id, name=given.name, email=given.email, attributes=given.attributes)
    made = new_view(row)
    answer = created(made, address(row.type, row.id))
    await entities.add(row, Changes(notes=call.notes(answer)))
    return answer


def address(type: str, id: str, rest: str = "") -> str:
    """The path of an entity."""
    return f"/api/v1/entities/{segment(type)}/{segment(id)}{rest}"


async def _here(call: HttpCall, rest: str = "") -> Entity | HttpAnswer:
    """The entity of the path; if it has another address now, the answer that says so."""
    type, id = call.path["type"], call.path["id"]
    entity = await call.client.entities.get(type, id)
    if entity.type == type:
        return entity
    query = call.request.url.query
    return HttpAnswer(b"", 308, {"location": address(entity.type, entity.id, rest) + (f"?{query}" if query else "")})


async def show(call: HttpCall) -> HttpAnswer:
    here = await _here(call)
    return here if isinstance(here, HttpAnswer) else HttpAnswer(view(here))


async def update(call: HttpCall) -> HttpAnswer:
    here = await _here(call)
    if isinstance(here, HttpAnswer):
        return here
    given: EntityPatch = call.body
    changed = await call.client.entities.update(
        here.type, here.id, name=given.name, email=given.email, attributes=given.attributes
    )
    return HttpAnswer(view(changed))


async def delete(call: HttpCall) -> HttpAnswer:
    here = await _here(call)
    if isinstance(here, HttpAnswer):
        return here
    await call.client.entities.delete(here.type, here.id)
    return HttpAnswer(status=204)


async def journey(call: HttpCall) -> HttpAnswer:
    here = await _here(call, "/journey")
    if isinstance(here, HttpAnswer):
        return here
    limit = call.query.limit
    after = call.cursor()
    before = tuple(after) if after is not None else None
    legs = await call.client.entities.journey(here.type, here.id, before=before, limit=limit + 1)
    page = legs[:limit]
    more = call.next_cursor(list(page[-1].first)) if len(legs) > len(page) else None
    return HttpAnswer(JourneyPage(page, more))


async def move(call: HttpCall) -> HttpAnswer:
    here = await _here(call, "/move")
    if isinstance(here, HttpAnswer):
        return here
    given: MoveByHand = call.body
    if (given.node is None) == (given.section is None):
        raise HttpProblem("BAD_REQUEST", "an entity is moved either to a node or to a section", place="$")
    moved = await call.client.entities.move(
        here.type,
        here.id,
        given.workflow,
        node=given.node,
        section=given.section,
        reason=given.reason,
        by=call.who.user,
        request=call.idempotency or "",
    )
    return HttpAnswer(view(moved))


async def positions(call: HttpCall) -> HttpAnswer:
    asked: PositionQuery = call.query
    found = await call.client.entities.positions(
        call.path["name"],
        node=asked.node,
        edge=asked.edge,
        section=asked.section,
        before=_before(call),
        limit=asked.limit + 1,
    )
    page = found.items[: asked.limit]
    more = call.next_cursor(page[-1].number) if len(found.items) > len(page) else None
    return HttpAnswer(PositionsView(found.workflow, found.places, [view(one) for one in page], more))


async def conversion(call: HttpCall) -> HttpAnswer:
    return HttpAnswer(conversion_view(await call.client.entities.conversion(call.path["name"], call.query.since)))


def _of_entity(method: Any, rest: str, handler: Any, summary: str, **more: Any) -> Route:
    """A route about one entity. A former address answers 308."""
    answers = {**more.pop("answers"), 308: None}
    problems = ("NOT_FOUND", *more.pop("problems", ()))
    return Route(
        method=method,
        path=f"/entities/{{type}}/{{id}}{rest}",
        handler=handler,
        access=VIEWER if method == "GET" else OPERATOR,
        about="none",
        noun="entities",
        summary=summary,
        answers=answers,
        problems=problems,
        **more,
    )


ROUTES = (
    Route(
        method="GET",
        path="/entities",
        handler=list_entities,
        access=VIEWER,
        about="none",
        noun="entities",
        summary="Entities, newest first",
        query=EntityFilter,
        answers={200: EntityPage},
    ),
    Route(
        method="POST",
        path="/entities",
        handler=create,
        access=OPERATOR,
        about="none",
        noun="entities",
        summary="Make a record",
        body=NewEntity,
        answers={201: EntityView},
        makes={"type": "type", "id": "id"},
        problems=("DUPLICATE",),
    ),
    _of_entity("GET", "", show, "One entity", answers={200: EntityView}),
    _of_entity("PATCH", "", update, "Change a record", body=EntityPatch, answers={200: EntityView}),
    _of_entity(
        "DELETE",
        "",
        delete,
        "Delete a record and its journey",
        answers={204: None},
        problems=("INVALID_STATE",),
        description="Refused while a run about it is live.",
    ),
    _of_entity(
        "GET",
        "/journey",
        journey,
        "Every move, run by run",
        query=JourneyQuery,
        answers={200: JourneyPage},
        description="Legs newest first, the moves of each in order. A move by hand is a leg without a run.",
    ),
    _of_entity(
        "POST",
        "/move",
        move,
        "Move an entity by hand",
        body=MoveByHand,
        answers={200: EntityView},
        description="Live runs of that workflow about it record the move; their tokens do not move.",
    ),
    Route(
        method="GET",
        path="/workflows/{name}/positions",
        handler=positions,
        access=VIEWER,
        about="workflow",
        noun="entities",
        summary="Who is where in a workflow",
        query=PositionQuery,
        answers={200: PositionsView},
        problems=("NOT_FOUND",),
    ),
    Route(
        method="GET",
        path="/workflows/{name}/conversion",
        handler=conversion,
        access=VIEWER,
        about="workflow",
        noun="entities",
        summary="What became of the entries into each edge, section and node",
        query=SinceQuery,
        answers={200: ConversionView},
        problems=("NOT_FOUND",),
    ),
)
