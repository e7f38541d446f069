"""What a client does otherwise where a service is in between, and that it ends up the same as on a store."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from tests.runtime.executing import on_loop, turns
from tests.runtime.reaching import USER, reached
from treadle import CommandRefused, DefinitionError, Engine
from treadle.language import load_text
from treadle.model.states import RunStatus
from treadle.runtime.client import Client
from treadle.runtime.over_http.withheld import REASONS

ASKING = load_text("""
workflow: asking
output: {said: $.nodes.ask.output.said}
nodes:
  ask: {action: {kind: human, form: {type: object, required: [said]}}}
""")
LISTENING = load_text("workflow: listening\nnodes: {hear: {action: {kind: signal, name: news}}}\n")

both = pytest.mark.parametrize("way", ["itself", "server"])


async def opened_gate(client: Client, run: str) -> int:
    while not (gates := await client.gates(run)):
        await turns()
    return gates[0].visit


@both
@on_loop
async def test_a_person_claims_comments_attaches_and_answers(way: str) -> None:
    async with Engine(":memory:") as engine, reached(engine, way) as client:
        run = await client.start(ASKING)
        visit = await opened_gate(client, run.id)
        await run.claim_gate(visit, by=USER)
        for _ in range(2):
            await run.comment_gate(visit, "read this", by=USER, id="c1")
        kept = await run.add_artifact("note.txt", b"all is well", "text/plain", by=USER)
        assert (kept.name, kept.size, kept.by, kept.content_type) == ("note.txt", 11, USER, "text/plain")
        assert await run.artifact("note.txt") == await client.artifact(kept.digest) == b"all is well"
        view = await client.gate(run.id, visit)
        assert (view.claimed_by, [(one.text, one.by) for one in view.comments]) == (USER, [("read this", USER)])
        with pytest.raises(CommandRefused) as refused:
            await run.complete_gate(visit, {}, by=USER)
        assert (refused.value.kind, [one.place for one in refused.value.problems]) == ("SCHEMA", ["$.said"])
        await client.complete_gate(run.id, visit, {"said": "yes"}, by=USER, comment="gladly")
        assert await run.result(10) == {"said": "yes"}
        assert [by for event in await run.history() if (by := getattr(event, "by", None))][-1] == f"person {USER}"


@on_loop
async def test_who_acts_is_the_person_of_the_key_and_nobody_else_can_be_named() -> None:
    async with Engine(":memory:") as engine, reached(engine, "server") as client:
        run = await client.start(ASKING)
        visit = await opened_gate(client, run.id)
        await run.claim_gate(visit)
        assert (await client.gate(run.id, visit)).claimed_by == USER
        acts: list[Callable[[], Any]] = [
            lambda: run.cancel(by="Bob"),
            lambda: run.complete_gate(visit, {"said": "no"}, by="Bob"),
            lambda: client.fire_schedule("nightly", by="Bob"),
            lambda: client.entities.move("lead", "1", "asking", node="ask", by="Bob"),
        ]
        for act in acts:
            with pytest.raises(CommandRefused, match="the key is of 'Ada', so this cannot be done by 'Bob'"):
                await act()
        await run.cancel("enough")
        assert (await run.history())[-1].by == USER  # type: ignore[attr-defined]


@both
@on_loop
async def test_what_is_so_already_is_no_mistake_unless_the_caller_is_strict(way: str) -> None:
    async with Engine(":memory:") as engine, reached(engine, way) as client:
        run = await client.start(LISTENING)
        await run.resume()
        for _ in range(2):
            await run.pause()
        with pytest.raises(CommandRefused, match="is paused"):
            await run.pause(strict=True)
        assert await run.status() is RunStatus.PAUSED
        await run.resume()
        assert await client.signal("news", 1) == [run.id]
        assert (await run.wait(10)).status is RunStatus.COMPLETED
        with pytest.raises(CommandRefused, match="is completed"):
            await run.pause()


@both
@on_loop
async def test_an_abort_ends_a_running_run_unless_the_caller_is_strict(way: str) -> None:
    async with Engine(":memory:") as engine, reached(engine, way) as client:
        run = await client.start(LISTENING)
        with pytest.raises(CommandRefused, match="cancel it instead"):
            await run.abort(strict=True)
        await run.abort()
        assert (await run.wait(10)).status is RunStatus.CANCELLED
        ended = (await run.history())[-1]
        assert getattr(ended, "reason", None) == "aborted"
        await run.abort()


@both
@on_loop
async def test_a_start_is_about_an_entity_and_its_key_gives_the_same_run_again(way: str) -> None:
    async with Engine(":memory:") as engine, reached(engine, way) as client:
        about = {"type": "order", "id": "7/a", "name": "Seven", "attributes": {"size": 2}}
        run = await client.start(ASKING, {"n": 1}, key="k", tags=("a", "b"), entity=about)
        again = await client.start(ASKING, {"n": 2}, key="k")
        assert again.id == run.id
        entity = (await run.state()).entity
        assert entity is not None and (entity.name, entity.attributes) == ("Seven", {"size": 2})
        other = await client.start(ASKING)
        assert [row.run for row in await client.runs(entity="order/7/a", tag="a", tags=("b",))] == [run.id]
        assert await client.runs(tag="a", tags=("c",)) == []
        newest, oldest = await client.runs()
        assert (newest.run, oldest.entity) == (other.id, "order/7/a")
        for page in ({"after": newest.run}, {"beyond": newest.number}, {"text": "7/A"}):
            assert await client.runs(**page) == [oldest]


@both
@on_loop
async def test_a_definition_with_a_mistake_is_refused_with_its_place(way: str) -> None:
    async with Engine(":memory:") as engine, reached(engine, way) as client:
        wrong = load_text("workflow: w\nnodes: {a: {action: {kind: python, function: nobody}}}\n")
        with pytest.raises(DefinitionError) as refused:
            await client.deploy(wrong)
        (problem,) = refused.value.problems
        assert (problem.code, problem.severity) == ("UNKNOWN_FUNCTION", "error")  # type: ignore[attr-defined]
        assert problem.at.startswith("nodes.a")  # type: ignore[attr-defined]


@on_loop
async def test_what_a_service_has_for_itself_is_refused_with_the_place_where_it_is() -> None:
    async with Engine(":memory:") as engine, reached(engine, "server") as client:
        for part, reason in REASONS.items():
            with pytest.raises(CommandRefused, match=reason.partition(";")[0]):
                asked = getattr(client, part)
                found = asked("id", "print") if part == "once" else asked()
                await found
        assert not [name for name in REASONS if not hasattr(Client, name)]


def test_a_client_of_a_service_has_the_methods_of_a_client_with_their_arguments() -> None:
    from treadle.runtime.over_http.client import ServiceClient

    for name, function in inspect.getmembers(Client, inspect.isfunction):
        if not name.startswith("_"):
            here = inspect.signature(getattr(ServiceClient, name)).parameters
            assert here.keys() == inspect.signature(function).parameters.keys(), name
