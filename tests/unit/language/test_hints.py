"""Hints and places: the nearest known name, the remedy, the author's own spelling, line and column."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.language.definitions import loaded, table

REMEDIES = table("remedies.yaml")


@pytest.mark.parametrize("row", REMEDIES, ids=[row["hint"] for row in REMEDIES])
def test_a_mistake_comes_with_its_remedy(row: dict[str, Any]) -> None:
    assert loaded(row["definition"]).problems[0].hint == row["hint"]


TEXT = """\
name: shop
tasks:
  pay:
    steps:
      - {action: {kind: http, uri: x}, input: {url: $.input.url}}
nodes:
  ask: {retries: 3}
  charge:
    task: pay
    output:
      input.v: $.v
  wait:
    steps:
      - action: {kind: human}
      - action: {kind: wait, ms: 5}
transitions:
  - from_node_id: ask
    to_node_id: jugde
  - from: ask
    to: charge
    join:
      joins_transition: nowhere
  - {from: ask, to: wait, condition: "input.x >"}
"""


def test_every_problem_of_a_text_has_line_column_and_the_authors_spelling() -> None:
    found = [(problem.line, problem.column, problem.at) for problem in loaded(TEXT).problems]
    assert found == [
        (5, 31, "tasks.pay.steps[0].action.uri"),
        (7, 9, "nodes.ask.retries"),
        (11, 16, 'nodes.charge.output["input.v"]'),
        (14, 17, "nodes.wait.steps[0].action"),
        (15, 17, "nodes.wait.steps[1].action"),
        (18, 17, "transitions[0].to_node_id"),
        (22, 25, "transitions[1].join.joins_transition"),
        (23, 38, "transitions[2].condition"),
    ]


def test_a_problem_reads_well_on_one_line() -> None:
    problem = loaded("workflow: w\nnodes: {a: {retries: 1}}\n").problems[0]
    assert str(problem) == (
        "flow.yaml:2:13: error UNKNOWN_FIELD at nodes.a.retries: a node has no field `retries` (did you mean `retry`?)"
    )


def test_a_dropped_transition_does_not_shift_the_places_of_those_after_it() -> None:
    text = "workflow: w\nnodes: {a: {}, b: {}}\ntransitions:\n  - {from: a}\n  - {from: a, to: z}\n"
    text += "  - {from: a, to: b, join: {joins_transition: nowhere}}\n"
    found = [(problem.code, problem.line, problem.at) for problem in loaded(text).problems]
    assert found == [
        ("BAD_VALUE", 4, "transitions[0]"),
        ("UNKNOWN_NODE", 5, "transitions[1].to"),
        ("UNKNOWN_SIBLING_GROUP", 6, "transitions[2].join.joins_transition"),
    ]


def test_problems_of_a_library_are_not_given_lines_of_the_document() -> None:
    library = {"actions": {"x": {"kind": "htp"}}}
    problem = loaded("workflow: w\nnodes: {a: {action: x}}\n", library=library).problems[0]
    assert problem.file == "library actions `x`"
    assert problem.line is None


def test_problems_in_one_of_several_definitions_are_placed_in_the_file() -> None:
    from treadle.language import load_documents

    text = "definitions:\n  - {workflow: a, nodes: {x: {}}}\n  - {workflow: b, nodes: {x: {oops: 1}}}\n"
    text += "---\nworkflow: c\nnodes: {y: 3}\n"
    first, second, third = load_documents(text, "all.yaml")
    assert [one.name for one in (first, second, third)] == ["a", "b", "c"]
    assert first.problems == []
    assert (second.problems[0].line, second.problems[0].at) == (3, "definitions[1].nodes.x.oops")
    assert (third.problems[0].line, third.problems[0].at) == (6, "nodes.y")
