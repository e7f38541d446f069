"""The JSON Schema: generated from the tables, shipped up to date, and as wide as the language."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given

import treadle.language
from tests.unit.language.definitions import loaded, table
from tests.unit.language.documents import definitions
from tests.unit.language.test_canvas import M_SHAPE
from treadle.language import load_value
from treadle.language.grammar.kinds import KINDS
from treadle.language.grammar.workflow import WORKFLOW
from treadle.language.record import Record
from treadle.language.schema import json_schema, schema_text
from treadle.language.text import read_text

SCHEMA = json_schema()
VALIDATOR = jsonschema_rs.validator_for(SCHEMA)


def test_the_shipped_schema_is_up_to_date() -> None:
    shipped = Path(treadle.language.__file__).with_name("treadle.schema.json").read_text("utf-8")
    assert shipped == schema_text(), "run: treadle schema > src/treadle/language/treadle.schema.json"


def test_the_schema_is_a_schema() -> None:
    jsonschema_rs.meta.validate(SCHEMA)


@given(definitions())
def test_the_schema_accepts_every_definition_that_loads(definition: dict[str, Any]) -> None:
    assert VALIDATOR.is_valid(definition), [error.message for error in VALIDATOR.iter_errors(definition)][:3]
    document = load_value(definition).document
    assert VALIDATOR.is_valid(document), [error.message for error in VALIDATOR.iter_errors(document)][:3]


ROWS = (*table("sound.yaml"), *table("dataflow.yaml"), *table("mistakes.yaml"))


@pytest.mark.parametrize("definition", [row["definition"] for row in ROWS if loaded(row["definition"]).workflow])
def test_the_schema_accepts_what_the_loader_accepts(definition: dict[str, Any]) -> None:
    assert VALIDATOR.is_valid(definition), [error.message for error in VALIDATOR.iter_errors(definition)][:3]


def test_the_schema_accepts_every_scenario_of_ours_that_deploys() -> None:
    files = [*Path("tests").rglob("*.scenario.yaml")]
    for file in files:
        for source in read_text(file.read_bytes(), str(file)):
            if isinstance(source.value, dict) and "deploy_error" not in source.value:
                problems = [error.message[:300] for error in VALIDATOR.iter_errors(source.value)]
                assert not problems, (str(file), source.value.get("scenario"), problems)


@pytest.mark.parametrize(
    "document",
    [
        {"workflow": "w", "nodes": {"a": {"retries": 1}}},
        {"workflow": "w", "nodes": {"a": {"action": {"kind": "http", "uri": "x"}}}},
        {"workflow": "w", "nodes": {}, "transitions": [{"from": "a"}]},
        {"workflow": "w", "nodes": {}, "on_timeout": "explode"},
        {"workflow": "Not A Name", "nodes": {}},
        {"nodes": {"a": {}}},
        {"workflow": "w"},
        {"workflow": "w", "nodes": {"a": {"timeout_ms": "5m"}}},
        {"workflow": "w", "nodes": {"a": {"compensate": {"input": {}}}}},
        {"workflow": "w", "nodes": [{"type": "Worker"}]},
    ],
)
def test_the_schema_finds_the_first_mistakes(document: dict[str, Any]) -> None:
    assert not VALIDATOR.is_valid(document)


@pytest.mark.parametrize(
    "document",
    [
        M_SHAPE.document,
        {"nodes": [{"id": "a", "type": "Worker", "position": {"x": 1}, "data": {}}], "edges": [], "viewport": {}},
        [{"workflow": "a", "nodes": {"x": None}}, {"workflow": "b", "nodes": {"x": {}}}],
        {"definitions": [{"workflow": "a", "nodes": {"x": {}}}, {"file": "other.yaml"}], "scenario": "s"},
        {"workflow": "w", "nodes": {"a": {"action": {"kind": "third_party", "anything": 1}}}},
    ],
)
def test_the_schema_knows_every_form_of_a_file(document: Any) -> None:
    assert VALIDATOR.is_valid(document), [error.message for error in VALIDATOR.iter_errors(document)][:3]


def records(book: dict[str, Any]) -> list[str]:
    return [name for name, schema in book.items() if schema.get("properties")]


def test_every_field_is_described_for_the_editor() -> None:
    silent = [
        f"{name}.{key}"
        for name in records(SCHEMA["$defs"])
        for key, schema in SCHEMA["$defs"][name]["properties"].items()
        if key != "kind" and not schema.get("description")
    ]
    assert not silent


def test_every_action_kind_is_offered() -> None:
    offered = SCHEMA["$defs"]["Action"]["properties"]["kind"]["anyOf"][0]["enum"]
    assert offered == list(KINDS)


def test_every_spelling_of_the_tables_is_in_the_schema() -> None:
    assert isinstance(WORKFLOW, Record)
    assert set(SCHEMA["$defs"]["Workflow"]["properties"]) == set(WORKFLOW.spellings)


def test_the_schema_is_plain_json() -> None:
    assert json.loads(schema_text()) == SCHEMA
