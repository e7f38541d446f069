"""The workflow: the outermost table (1.1)."""

from __future__ import annotations

from typing import Any

from treadle.language.compounds import ListOf, MapOf
from treadle.language.grammar.action import ACTION
from treadle.language.grammar.budget import BUDGET
from treadle.language.grammar.flow import FLOW
from treadle.language.grammar.node import NODE
from treadle.language.grammar.retry import TIMEOUT
from treadle.language.grammar.task import TASK, Section
from treadle.language.grammar.transition import REF, TRANSITION
from treadle.language.phrases import JsonSchemaValue, MappingValue, SourceValue
from treadle.language.reading import Place, Reading
from treadle.language.record import Field, OneOf, Record, given_fields
from treadle.language.shapes import (
    ANYTHING,
    BAD,
    AnyText,
    Book,
    Choice,
    Flag,
    Json,
    Schema,
    Shape,
    Text,
    Whole,
)
from treadle.model import definition as d

NAME = Text("a name of a–z, 0–9, `.`, `_`, `/` and `-`", "[a-z0-9][a-z0-9._/-]*", longest=200)

LIMITS = Record(
    "Limits",
    "Bounds on one run.",
    (
        Field("max_tokens_per_run", Whole(1), "Visits created in all", default=10_000),
        Field("max_spawn_count", Whole(1), "Tokens per firing of a transition", default=1_000),
        Field("max_nesting_depth", Whole(1), "Sub-workflows within sub-workflows", default=10),
    ),
    d.Limits,
)


class OutputShape(Shape):
    """The run's output: a mapping, or one source."""

    wants = "a map from names to sources, or one source"

    def read(self, value: Json, at: Place, reading: Reading) -> Any:
        if isinstance(value, dict) and set(value) not in ({"cel"}, {"literal"}):
            return MappingValue().read(value, at, reading)
        return SourceValue().read(value, at, reading)

    def schema(self, book: Book) -> Schema:
        return {"anyOf": [MappingValue().schema(book), SourceValue().schema(book)]}


class NodesShape(MapOf):
    """The nodes. A wrong one stays, as an empty node, so that its transitions are not reported as well."""

    def read(self, value: Json, at: Place, reading: Reading) -> Any:
        if not isinstance(value, dict):
            return self.wrong(value, at, reading)
        nodes: dict[str, d.Node] = {}
        for ref, part in value.items():
            self.key.read(ref, at.key(ref), reading)
            node = self.value.read({} if part is None else part, at.key(ref), reading)
            nodes[ref] = d.Node() if node is BAD else node
        return nodes

    def schema(self, book: Book) -> Schema:
        node = {"anyOf": [self.value.schema(book), {"type": "null"}]}
        return {"type": "object", "additionalProperties": node}


HEAD = (
    Field("workflow", NAME, "Its name", also=("name",), required=True),
    Field("description", AnyText(), "For people"),
    Field("tags", ListOf(Text("a tag")), "For people"),
    Field("input_schema", JsonSchemaValue(), "JSON Schema of the run's input"),
    Field("state_schema", JsonSchemaValue(), "JSON Schema of the run's state", also=("context_schema",)),
    Field("output_schema", JsonSchemaValue(), "JSON Schema of the run's output"),
    Field(
        "start",
        ListOf(REF, one=True),
        "Where a run begins; every node without an inbound transition unless given",
        also=("initial_node_id",),
    ),
    Field("output", OutputShape(), "The run's output: key ← source; unless given, what `output.…` targets wrote"),
    Field("timeout_ms", TIMEOUT, "Deadline of the run"),
    Field(
        "on_timeout",
        Choice("human_gate", "fail", "cancel", also={"cancel_all": "cancel"}),
        "What the deadline does",
        default="human_gate",
    ),
    Field(
        "on_unhandled_failure",
        Choice("fail_run", "let_others_finish"),
        "What a failure nobody handles does to the run",
        default="fail_run",
    ),
    Field("limits", LIMITS, "Bounds on one run"),
    Field(
        "compensation",
        Choice("on_failure", "on_failure_and_cancel", "off"),
        "When completed visits are undone; `on_failure` if there is anything to undo",
    ),
    Field(
        "on_compensation_failure",
        Choice("halt", "continue"),
        "What a failing compensation does",
        default="halt",
    ),
    Field("budget", BUDGET, "What a run and its children may spend together"),
    Field(
        "on_deploy",
        Choice("keep", "migrate_if_safe"),
        "Whether live runs of older versions go on under this one, where nothing is in the way",
        default="keep",
    ),
    Field("strict", Flag(), "Warnings are errors; a mismatched join fails", default=False),
    *FLOW,
    Field("actions", Section("actions", ACTION), "Actions by name, for use in this document"),
    Field("tasks", Section("tasks", TASK), "Tasks by name, for use in this document"),
    Field("canvas", ANYTHING, "Positions, colours, sections, notes: kept for the canvas, not executed"),
)

WORKFLOW = Record(
    "Workflow",
    "A workflow: nodes that do work and transitions that lead from one to the next.",
    (
        *HEAD,
        Field("nodes", NodesShape(NODE, REF), "Node ref → node", required=True),
        Field("transitions", ListOf(TRANSITION), "The edges, in order"),
    ),
    make=dict,
    unmake=given_fields,
    one_of=(OneOf(("debounce", "batch")),),
)
