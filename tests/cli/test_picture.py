"""What a watcher sees: counts, bars, reasons and ends, folded from real histories."""

from __future__ import annotations

import asyncio
import io
from typing import Any

import pytest
from rich.console import Console

from treadle.cli.nodes import demo
from treadle.cli.screen.output import cell, duration, plain
from treadle.cli.watch import picture
from treadle.cli.watch.narration import STEPS, Narrator
from treadle.cli.watch.overview import Overview
from treadle.language import load_text, load_value
from treadle.model.definition import Workflow
from treadle.model.events import Event
from treadle.model.states import RunStatus
from treadle.runtime.engine import Engine

WIDE: dict[str, Any] = {
    "workflow": "wide",
    "nodes": {"begin": {}, "work": {"action": {"kind": "set", "values": {"v": 1}}}, "end": {}},
    "transitions": [
        {"id": "all", "from": "begin", "to": "work", "spawn_count": 200},
        {"from": "work", "to": "end", "synchronization": {"sibling_group": "all"}},
    ],
}


def text_of(drawn: Any, width: int = 100) -> str:
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(drawn)
    return console.export_text()


async def _played(workflow: Workflow, answer: Any = None) -> list[Event]:
    async with Engine(":memory:", functions={"demo.stumble": demo.stumble}) as engine:
        run = await engine.start(workflow, demo.INPUT)
        async for event in run.events():
            if event.type == "gate.opened":
                await engine.complete_gate(run.id, event.token, answer)  # type: ignore[attr-defined]
        return await run.history()


@pytest.fixture(scope="module")
def panel() -> tuple[Workflow, list[Event]]:
    workflow = load_text(demo.WORKFLOW.replace("1100", "1").replace("700", "1"), "demo").require()
    return workflow, asyncio.run(_played(workflow, demo.ANSWER))


def seen(workflow: Workflow, history: list[Event], until: str) -> Overview:
    view = Overview(workflow)
    position = next(number for number, event in enumerate(history) if event.type == until)
    view.apply(history[: position + 1])
    return view


def test_a_picture_says_what_is_waited_for_and_how_far_a_fan_out_is(panel: tuple[Workflow, list[Event]]) -> None:
    view = Overview(panel[0])
    for event in panel[1]:
        view.apply([event])
        if "waits for a person" in text_of(picture.picture(view, view.changed_at)):
            break
    shown = text_of(picture.picture(view, view.changed_at), width=140)
    assert "waits for a person (visit" in shown
    assert "): “The judges have spoken. Publish it?”" in shown
    assert "/7" in shown
    assert "━" in shown
    assert shown.splitlines()[0].startswith("panel v1  running")


def test_siblings_are_counted_against_what_the_quorum_needs(panel: tuple[Workflow, list[Event]]) -> None:
    view = seen(*panel, until="join.arrived")
    assert view.joins() == [("proposal", 1, 5)]
    assert "waits for siblings: 1/5" in text_of(picture.picture(view, view.changed_at))


def test_a_retry_says_why_and_when(panel: tuple[Workflow, list[Event]]) -> None:
    view = seen(*panel, until="token.retry_scheduled")
    shown = text_of(picture.picture(view, view.changed_at), width=200)
    assert "tries again (attempt 2) in" in shown
    assert "dropped the manuscript" in shown


def test_nothing_is_live_at_the_end_and_every_visit_was_counted(panel: tuple[Workflow, list[Event]]) -> None:
    view = Overview(panel[0])
    view.apply(panel[1])
    assert view.visits == {}
    assert view.status is RunStatus.COMPLETED
    created = sum(1 for event in panel[1] if event.type == "token.created")
    assert sum(node.ended for node in view.nodes.values()) == created
    assert (view.nodes["judge"].done, view.nodes["judge"].failed) == (5, 1)  # the slowest is cancelled


def test_a_narrow_terminal_loses_words_and_neither_marks_nor_names(panel: tuple[Workflow, list[Event]]) -> None:
    view = seen(*panel, until="token.retry_scheduled")
    lines = text_of(picture.picture(view, view.changed_at), width=60).splitlines()[1:]
    assert [line.split()[1] for line in lines] == list(panel[0].nodes)
    assert all(len(line) <= 60 for line in lines)


def test_a_quorum_out_of_reach_says_what_its_branches_died_of() -> None:
    judge = {"action": {"kind": "assert", "condition": "input.n < 1", "message": "no such model"}}
    workflow = load_value(
        {
            "workflow": "panel",
            "nodes": {"begin": {}, "judge": {**judge, "input_mapping": {"n": "$._branch.index"}}, "end": {}},
            "transitions": [
                {"id": "all", "from": "begin", "to": "judge", "spawn_count": 3},
                {"from": "judge", "to": "end", "synchronization": {"sibling_group": "all", "strategy": {"m_of_n": 2}}},
            ],
        }
    ).require()
    history = asyncio.run(_played(workflow))
    view = Overview(workflow)
    told = [line for narrator in [Narrator(view)] for event in history for line in narrator.tell(event)]
    assert view.error is not None
    assert view.error.kind == "QUORUM_UNREACHABLE"
    for shown in (picture.error_line(view.error), next(line for line in told if "QUORUM_UNREACHABLE" in line)):
        assert "no such model" in shown
        assert "'judge' (branch 1), 'judge' (branch 2) with" in shown


def test_a_large_graph_is_cut_to_what_goes_on() -> None:
    nodes = {f"n{number}": {} for number in range(100)}  # type: ignore[var-annotated]
    chain = [{"from": f"n{number}", "to": f"n{number + 1}"} for number in range(99)]
    workflow = load_value({"workflow": "long", "nodes": nodes, "transitions": chain}).require()
    shown = text_of(picture.picture(Overview(workflow), 0)).splitlines()
    assert len(shown) == picture.NODES_MAX + 2
    assert "and 70 more nodes" in shown[-1]


def test_a_wide_fan_out_is_told_in_few_lines() -> None:
    workflow = load_value(WIDE).require()
    narrator = Narrator(Overview(workflow))
    lines = [line for event in asyncio.run(_played(workflow)) for line in narrator.tell(event)]
    assert STEPS / 2 <= sum("/200" in line for line in lines) <= STEPS + 1
    assert "200/200" in "\n".join(lines)


def test_text_from_outside_cannot_steer_the_terminal() -> None:
    assert plain("a\x1b[2Jb\x07\u202ec\x9b") == "a�[2Jb��c�"
    assert cell({"a": 1}) == '{"a":1}'
    assert len(cell("x" * 500, 90)) == 90


@pytest.mark.parametrize(
    ("ms", "words"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1_500, "1.5 s"),
        (61_000, "1 min 1 s"),
        (7_200_000, "2 h"),
        (90_000_000, "1 d 1 h"),
    ],
)
def test_durations_are_said_in_two_units(ms: int, words: str) -> None:
    assert duration(ms) == words
