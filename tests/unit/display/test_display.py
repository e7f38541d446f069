"""Pictures and texts of workflows and runs: complete, well-formed, and never an author's markup."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from tests.unit.testing.histories import begun, completed, created, numbered, started
from treadle.display import GraphView, TimelineView, graph_svg, graph_text, mermaid, timeline_of, timeline_svg
from treadle.display.drawing import DARK, LIGHT, painted
from treadle.display.graph_text import graph_json
from treadle.display.layout import Box, EdgeLine, lay_out
from treadle.display.words import WHOLE
from treadle.graph.compile import compile_graph
from treadle.language.builder import Flow
from treadle.language.parts import after_ms, every, foreach, loop, quorum
from treadle.model import events as e
from treadle.model.errors import Error
from treadle.model.ids import TokenId
from treadle.model.states import Waiting

EVIL = '<script>alert("1")</script>&\x1b[31m'


def panel() -> Flow:
    flow = Flow("panel", start="ask")
    ask, judge = flow.node("ask", action={"kind": "human", "title": "Which?"}), flow.node("judge")
    decide, again = flow.node("decide"), flow.node("again", action={"kind": "wait", "ms": 90_000})
    ask.to(judge, id="judges", foreach=foreach("input.judges", "j"))
    judge.to(decide, join=quorum(2, of="judges"))
    decide.to(again, condition="size(input.judges) > 1").to(ask, loop=loop(3))
    ask.to(decide, trigger=after_ms(5_000))
    return flow


def texts(svg: str) -> str:
    return " ".join(text for element in ElementTree.fromstring(svg).iter() for text in element.itertext())


def test_every_node_edge_label_and_join_is_in_the_picture() -> None:
    shown = texts(GraphView(panel()).svg)
    for word in ("ask", "judge", "decide", "again", "each j in input.judges", "2 of judges", "at most 3×", "after 5 s"):
        assert word in shown


def test_the_text_and_the_json_say_the_same() -> None:
    graph = compile_graph(panel().build())
    assert "    ⇒ judge    each j in input.judges" in graph_text(graph)
    assert "    ⇢ decide   after 5 s" in graph_text(graph)
    assert {edge["id"] for edge in graph_json(graph)["edges"]} == set(graph.transitions)


def test_a_long_condition_is_clipped_for_a_person_and_whole_for_a_pipe() -> None:
    flow, condition = Flow("w"), " || ".join(f"input.kind == 'number {number}'" for number in range(5))
    flow.node("a").to(flow.node("b"), condition=condition)
    graph = compile_graph(flow.build())
    assert "…" in graph_text(graph)
    assert condition in graph_text(graph, WHOLE)
    assert graph_json(graph)["edges"][0]["label"] == [condition]


def test_mermaid_names_nodes_by_number() -> None:
    lines = mermaid(compile_graph(panel().build())).splitlines()
    assert lines[0] == "flowchart TD"
    assert '  n0 ==>|"each j in input.judges"| n1' in lines


def test_an_authors_markup_stays_text_in_a_run() -> None:
    history = numbered([started(), created(1, EVIL), *begun(1), completed(1, at=5)])
    svg = timeline_svg(timeline_of(history))
    assert "<script" not in svg
    assert "\x1b" not in svg
    assert "<script>alert" in texts(svg)


def test_an_authors_markup_stays_text_in_a_graph() -> None:
    workflow = Flow("evil")
    workflow.node("a", action={"kind": "human", "title": EVIL[:-5]}).to(
        workflow.node("b"), condition='input.x == "<b>"'
    )
    graph = compile_graph(workflow.build())
    svg = graph_svg(graph)
    ElementTree.fromstring(svg)
    assert "<script" not in svg
    assert "<b>" not in svg
    assert "<script" not in mermaid(graph)
    assert '"<b>"' not in mermaid(graph)


def test_what_a_visit_waited_for_and_how_it_ended_is_seen() -> None:
    history = numbered(
        [
            started(),
            created(1, "ask"),
            *begun(1),
            e.TokenWaiting(0, 100, TokenId(1), Waiting.HUMAN),
            created(2, "judge", frames=((1, 0),)),
            e.TokenFailed(0, 900, TokenId(2), Error("TASK_FAILED", "no")),
        ]
    )
    run = timeline_of(history, now=1_000)
    assert [(bar.label, bar.state) for bar in run.bars] == [("ask", "live"), ("judge[0]", "failed")]
    assert [(span.state, span.reason, span.end - span.start) for span in run.bars[0].spans] == [
        ("executing", None, 100),
        ("waiting", "human", 900),
    ]
    assert "TASK_FAILED: no" in texts(timeline_svg(run))


def test_a_great_many_visits_are_counted_and_not_drawn() -> None:
    history = numbered([started(), *(created(number, "judge") for number in range(1, 1_001))])
    assert "and 850 more visits" in texts(timeline_svg(timeline_of(history)))


def test_a_notebook_gets_html_and_text() -> None:
    for view in (GraphView(panel()), TimelineView(numbered([started(), created(1, "a")]))):
        bundle = view._repr_mimebundle_()
        assert bundle["text/html"] == view._repr_html_()
        assert bundle["text/plain"] == str(view)


@pytest.mark.parametrize("wide", [2, 7])
def test_no_box_and_no_label_covers_another(wide: int) -> None:
    top, bottom = Box(80, 30), Box(80, 30)
    middle = [Box(60 + 10 * index, 30) for index in range(wide)]
    lines = [EdgeLine(top, box, (90, 15)) for box in middle] + [EdgeLine(box, bottom, (40, 30)) for box in middle]
    lines += [EdgeLine(bottom, top), EdgeLine(top, bottom, (70, 15)), EdgeLine(top, top)]
    width, height = lay_out([top, *middle, bottom], lines)
    every_box = [top, *middle, bottom, *(station for line in lines for station in line.stations)]
    assert [line.back for line in lines[-3:]] == [True, False, True]
    for index, one in enumerate(every_box):
        assert 0 <= one.x - one.width / 2 <= one.x + one.width / 2 <= width + 0.01
        assert one.y + one.height / 2 <= height + 0.01
        for other in every_box[index + 1 :]:
            apart = abs(one.x - other.x) >= (one.width + other.width) / 2 - 0.01
            assert apart or abs(one.y - other.y) >= (one.height + other.height) / 2 - 0.01


def test_a_join_of_everything_a_node_forked_is_named() -> None:
    flow = Flow("fork", start="a")
    a, b, c, end = (flow.node(ref) for ref in ("a", "b", "c", "end"))
    for branch in (b, c):
        a.to(branch)
        branch.to(end, join=every(of=a))
    assert "joins all of a" in graph_text(compile_graph(flow.build()))


def test_a_nodes_queue_is_in_every_picture() -> None:
    flow = Flow("render")
    flow.node("frame", action={"kind": "emit", "type": "x"}, queue="gpu")
    graph = compile_graph(flow.build())
    for picture in (graph_text(graph), mermaid(graph), texts(graph_svg(graph))):
        assert "queue gpu" in picture
    assert graph_json(graph)["nodes"][0]["queue"] == "gpu"


def test_pictures_are_painted_without_variables_so_that_every_program_sees_the_colours() -> None:
    style = painted("rect{fill:$paper;stroke:$blue}")
    assert style == (
        "rect{fill:#fff;stroke:#2f6fde}@media (prefers-color-scheme:dark){rect{fill:#14181d;stroke:#6ea8fe}}"
    )
    assert LIGHT.keys() == DARK.keys()
    history = numbered([started(), created(1, "a"), *begun(1), completed(1, at=5)])
    for picture in (GraphView(panel()).svg, timeline_svg(timeline_of(history))):
        assert "var(" not in picture
        assert "$" not in picture.partition("<style>")[2].partition("</style>")[0]
