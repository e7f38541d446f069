"""What people use of an engine: deploying what it can do, artifacts, pictures; on the memory store and on a file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.executing import on_loop, turns
from treadle import CommandRefused, DefinitionError, Engine, EngineSettings, Flow, Keep, load_value, task
from treadle.actions.protocol import Call, Done
from treadle.actions.registry import Registry
from treadle.model.states import RunStatus


@pytest.fixture(params=["memory", "file"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return ":memory:" if request.param == "memory" else str(tmp_path / "treadle.db")


def calling(function: str, **node: Any) -> Any:
    nodes = {"a": {"action": {"kind": "python", "function": function}, **node}}
    return load_value({"workflow": "calls", "nodes": nodes, "output": "$.nodes.a.output"})


@task
def add(left: int, right: int = 1) -> dict[str, int]:
    return {"sum": left + right}


# Deploying


@on_loop
async def test_a_flow_of_functions_nobody_can_import_starts(place: str) -> None:
    @task
    def double(number: int) -> dict[str, int]:
        return {"number": 2 * number}

    flow = Flow("doubles", output={"number": "$.nodes.d.output.number"})
    flow.node("d", double, input={"number": "$.input.number"})
    async with Engine(place) as engine:
        run = await engine.start(flow, {"number": 21})
        assert await run.result(10) == {"number": 42}
        assert (await (await engine.start("doubles", {"number": 1})).result(10)) == {"number": 2}


@on_loop
async def test_every_signature_is_checked_before_anything_is_kept(place: str) -> None:
    async with Engine(place, functions={"add": add}) as engine:
        wrong = calling("add", input_mapping={"lefft": 1, "right": "two"})
        for give in (engine.deploy, engine.start):
            with pytest.raises(DefinitionError) as refused:
                await give(wrong)
            assert [problem.code for problem in refused.value.problems] == ["SIGNATURE"] * 3  # type: ignore[attr-defined]
        assert await engine.workflows() == []
        assert await engine.runs() == []
        assert (await engine.deploy(calling("add", input_mapping={"left": 1}))).version == 1


@on_loop
async def test_a_flow_with_mistakes_of_both_kinds_shows_both_and_leaves_no_function_behind() -> None:
    flow = Flow("wrong")
    flow.node("a", add, input={"left": "one"}).to("nowhere")
    async with Engine(":memory:") as engine:
        with pytest.raises(DefinitionError) as refused:
            await engine.start(flow)
        assert {problem.code for problem in refused.value.problems} == {"SIGNATURE", "UNKNOWN_NODE"}  # type: ignore[attr-defined]
        assert engine.registry.functions == {}


@on_loop
async def test_a_function_nobody_has_is_a_problem_unless_another_engine_works_for_its_queue() -> None:
    async with Engine(":memory:", settings=EngineSettings(queues={"here": 1})) as engine:
        with pytest.raises(DefinitionError, match="UNKNOWN_FUNCTION"):
            await engine.deploy(calling("nobody_has_it", queue="here"))
        assert (await engine.deploy(calling("nobody_has_it", queue="elsewhere"))).version == 1


@on_loop
async def test_a_flow_may_use_a_kind_somebody_registered() -> None:
    class Shout:
        name = "shout"

        def run(self, call: Call) -> Done:
            return Done({"text": call.input["text"].upper()})

    registry = Registry()
    registry.register(Shout())
    flow = Flow("shouts", output={"text": "$.nodes.s.output.text"})
    flow.node("s", action={"kind": "shout"}, input={"text": "$.input.text"})
    async with Engine(":memory:", registry=registry) as engine:
        assert await (await engine.start(flow, {"text": "tea"})).result(10) == {"text": "TEA"}


def test_a_run_goes_on_in_another_process_that_can_import_its_functions(tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text(
        """
from treadle import Flow, task

@task
def shout(text: str) -> dict:
    return {"text": text.upper()}

flow = Flow("approved", output={"text": "$.nodes.shout.output.text"})
flow.node("ask", action={"kind": "human"}).to(flow.node("shout", shout, input={"text": "$.input.text"}))
"""
    )
    start = "from work import flow; e = treadle.open('t.db'); print(e.start(flow, {'text': 'tea'}).id); e.close()"
    go_on = "e = treadle.open('t.db'); r = e.run(e.runs()[0].run); g = e.gates()[0]; "
    go_on += "r.complete_gate(g.token, {}); print(r.result(20)); e.close()"
    said = [
        subprocess.run(
            [sys.executable, "-c", f"import treadle; {program}"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        ).stdout
        for program in (start, go_on)
    ]
    assert said[1] == "{'text': 'TEA'}\n"


# Artifacts


def writing(content: str, **call: Any) -> Any:
    write = {"ref": "w", "action": {"kind": "artifact_write", "name": "report", "content": content}}
    child = {"ref": "c", "action": {"kind": "workflow_call", "workflow": "child", **call}}
    nodes = {"write": {"task": {"steps": [write]}}, "call": {"task": {"steps": [child]}}}
    transitions = [{"from": "write", "to": "call"}]
    output = {"read": "$.nodes.call.output.read"}
    return load_value({"workflow": "parent", "nodes": nodes, "transitions": transitions, "output": output})


def reading() -> Any:
    ask = {"ref": "q", "action": {"kind": "human"}}
    read = {"ref": "r", "action": {"kind": "artifact_read", "name": "report"}}
    nodes = {"ask": {"task": {"steps": [ask]}}, "read": {"task": {"steps": [read]}}}
    transitions = [{"from": "ask", "to": "read"}]
    output = {"read": "$.nodes.read.output.content"}
    return load_value({"workflow": "child", "nodes": nodes, "transitions": transitions, "output": output})


async def opened_gate(engine: Engine, run: Any) -> Any:
    while not (children := await engine.runs(parent=run.id)):
        await turns()
    child = engine.run(children[0].run)
    async for event in child.events():
        if event.type == "gate.opened":
            return child, event.token  # type: ignore[attr-defined]
    return None


@on_loop
async def test_a_child_reads_what_its_parent_wrote_also_after_a_restart(tmp_path: Path) -> None:
    place = str(tmp_path / "treadle.db")
    async with Engine(place) as engine:
        await engine.deploy(reading())
        run = await engine.start(writing("all is well", inherit_artifacts=True))
        child, gate = await opened_gate(engine, run)
    async with Engine(place) as engine:
        run, child = engine.run(run.id), engine.run(child.id)
        inherited = (await child.artifacts())["report"]
        assert (inherited.run, inherited.size) == (run.id, 11)
        await child.complete_gate(gate, {})
        assert await run.result(10) == {"read": "all is well"}
        assert await run.artifact("report") == await child.artifact("report") == b"all is well"
        with pytest.raises(CommandRefused, match="no artifact 'reprot'; it has report"):
            await run.artifact("reprot")


@on_loop
async def test_a_child_that_does_not_inherit_sees_nothing(place: str) -> None:
    async with Engine(place) as engine:
        await engine.deploy(reading())
        run = await engine.start(writing("secret"))
        child, gate = await opened_gate(engine, run)
        assert await child.artifacts() == {}
        await child.complete_gate(gate, {})
        assert (await run.wait(10)).status is RunStatus.FAILED


# Pictures


@on_loop
async def test_a_run_and_a_workflow_draw_themselves(place: str) -> None:
    async with Engine(place, functions={"add": add}) as engine:
        run = await engine.start(calling("add", input_mapping={"left": 1}))
        assert repr(run) == f"Run('{run.id}': calls, started)"
        await run.wait(10)
        assert repr(run) == f"Run('{run.id}': calls, completed)"
        assert repr(engine.run(run.id)) == f"Run('{run.id}')"
        assert repr(run) in run._repr_mimebundle_()["text/plain"]
        shown = (await run.timeline())._repr_mimebundle_()
        assert "<svg" in shown["text/html"]
        assert shown["text/plain"] == "calls: completed, 1 visits"
        for what in ("calls", calling("add", input_mapping={"left": 1})):
            assert "<svg" in (await engine.graph(what))._repr_html_()
        with pytest.raises(CommandRefused, match="there is no workflow 'unknown'"):
            await engine.graph("unknown")


# Retention


@on_loop
async def test_an_engine_drops_what_it_was_told_not_to_keep(tmp_path: Path) -> None:
    place = str(tmp_path / "treadle.db")
    async with Engine(place, functions={"add": add}) as engine:
        runs = [await engine.start(calling("add", input_mapping={"left": 1})) for _ in range(3)]
        for run in runs:
            await run.wait(10)
    async with Engine(place, settings=EngineSettings(keep=Keep(count=1))) as engine:
        while len(left := await engine.runs()) > 1:
            await turns()
        assert [row.run for row in left] == [runs[-1].id]


@on_loop
async def test_a_shortened_run_says_how_it_ended_and_refuses_what_a_finished_run_refuses(tmp_path: Path) -> None:
    place = str(tmp_path / "treadle.db")
    async with Engine(place, functions={"add": add}) as engine:
        run = await engine.start(calling("add", input_mapping={"left": 1}))
        await run.wait(10)
    async with Engine(place, settings=EngineSettings(keep=Keep(history_age_ms=0))) as engine:
        run = engine.run(run.id)
        while len(left := await run.history()) > 2:
            await turns()
        assert [event.type for event in left] == ["run.started", "run.completed"]
        assert [event async for event in run.events()] == left
        assert await run.result(10) == {"sum": 2}
        assert (await run.state()).status is RunStatus.COMPLETED
        with pytest.raises(CommandRefused, match="is completed"):
            await run.signal("late")
        with pytest.raises(CommandRefused, match="nothing failed unhandled"):
            await run.retry()
        assert (await engine.fsck()).ok
