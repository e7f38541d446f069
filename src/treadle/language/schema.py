"""The JSON Schema of the language (draft 2020-12), generated from the tables that also read it.

For editors: completion, descriptions, first checks. It accepts every valid document in every spelling; the loader knows
more (references, expressions, dataflow). `treadle.schema.json` beside this file is its text; a test keeps it current.
"""

from __future__ import annotations

import json
from typing import Any

from treadle.language.canvas.read import CANVAS_GRAPH
from treadle.language.grammar.workflow import WORKFLOW
from treadle.language.shapes import Book

Schema = dict[str, Any]


def json_schema() -> Schema:
    """The schema of a file: one definition, a canvas, a list of them, or a document that holds `definitions`."""
    book = Book()
    workflow, canvas = WORKFLOW.schema(book), CANVAS_GRAPH.schema(book)
    definition: Schema = {
        "if": {"properties": {"nodes": {"type": "array"}}, "required": ["nodes"]},
        "then": canvas,
        "else": workflow,
    }
    by_file: Schema = {"type": "object", "properties": {"file": {"type": "string"}}, "required": ["file"]}
    several: Schema = {"type": "array", "items": {"anyOf": [definition, by_file]}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "treadle.schema.json",
        "title": "Treadle workflow",
        "description": "A workflow definition: nodes that do work, transitions that lead from one to the next.",
        "if": {"type": "array"},
        "then": several,
        "else": {
            "if": {"required": ["definitions"]},
            "then": {"type": "object", "properties": {"definitions": several}},
            "else": definition,
        },
        "$defs": dict(sorted(book.definitions.items())),
    }


def schema_text() -> str:
    """The schema as the text that is shipped."""
    return json.dumps(json_schema(), indent=1, ensure_ascii=False) + "\n"
