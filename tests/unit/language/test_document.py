"""The canonical document: whatever was loaded is written so that loading it again gives the same workflow."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.unit.language.definitions import PANEL, flow, go, loaded, table
from tests.unit.language.documents import definitions, mutations
from treadle.language import load_text, load_value
from treadle.language.document import document_of


def test_the_document_of_the_panel_is_minimal() -> None:
    assert loaded(PANEL).document == {
        "workflow": "panel",
        "start": ["ask"],
        "output": {"votes": "$.state.votes"},
        "nodes": {"ask": {}, "judge": {"output_mapping": {"state.v": "$.v"}}, "decide": {}},
        "transitions": [
            {"id": "t1", "from": "ask", "to": "judge", "spawn_count": 3},
            {
                "id": "judge->decide",
                "from": "judge",
                "to": "decide",
                "synchronization": {
                    "sibling_group": "t1",
                    "strategy": {"m_of_n": 2},
                    "merge": {"source": "$._branch.output.v", "target": "$.state.votes"},
                },
            },
        ],
    }


def test_a_definition_with_errors_has_no_document() -> None:
    assert loaded(flow("a", go("a", "z"))).document is None


ROWS = (*table("sound.yaml"), *table("dataflow.yaml"))
SOUND = [row["definition"] for row in ROWS if loaded(row["definition"]).workflow]


@pytest.mark.parametrize("definition", SOUND)
def test_a_sound_definition_survives_its_own_document(definition: dict[str, Any]) -> None:
    assert_round_trip(definition)


@given(definitions())
def test_any_definition_survives_its_own_document(definition: dict[str, Any]) -> None:
    assert_round_trip(definition)


def assert_round_trip(definition: dict[str, Any]) -> None:
    first = load_value(copy.deepcopy(definition))
    assert first.errors == []
    document = first.document
    assert document is not None
    again = load_value(document)
    assert again.workflow == first.workflow
    assert again.document == document
    assert [p.code for p in again.problems] == [p.code for p in first.problems]
    as_text = load_text(json.dumps(document), "again.json")
    assert as_text.workflow == first.workflow
    assert first.workflow is not None
    assert document_of(first.workflow) == document


@given(definitions())
def test_loading_changes_nothing_of_what_it_is_given(definition: dict[str, Any]) -> None:
    before = copy.deepcopy(definition)
    load_value(definition)
    assert definition == before


@given(definitions(), st.data())
def test_a_damaged_definition_is_loaded_or_told_apart_but_never_raises(definition: Any, data: st.DataObject) -> None:
    damaged = data.draw(mutations(definition))
    assume(damaged != definition)
    found = load_value(damaged)
    assert (found.workflow is None) == bool(found.errors)
    for problem in found.problems:
        assert problem.message
        assert problem.code.isupper()


@given(definitions())
def test_a_sound_definition_compiles(definition: dict[str, Any]) -> None:
    from treadle.graph.compile import compile_graph

    compile_graph(load_value(definition).require())
