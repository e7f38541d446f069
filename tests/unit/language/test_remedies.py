"""Common mistakes are told with what to do about them."""

from __future__ import annotations

import pytest

from treadle.language import load_text


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            "workflow: w\nnodes:\n\ta: {}\n",
            "not valid YAML: it is indented with spaces, and here stands a tab",
            "replace tabs",
        ),
        (
            "workflow: w\nnodes: {a: {}, b: {}}\ntransitions: [{from: a, to: b, condition: 'input.x >= && 3'}]\n",
            "unexpected '&&': a value is expected (column 12 of the expression)",
            "",
        ),
        (
            "workflow: w\nnodes: {a: {action: {kind: human, form: {type: objct}}}}\n",
            '$.type: "objct"',
            "`type` is one of object, array, string",
        ),
        (
            "workflow: w\nnodes: {a: {action: {kind: human, form: {type: object, required: name}}}}\n",
            "$.required",
            "JSON Schema 2020-12",
        ),
    ],
)
def test_a_mistake_says_what_to_do(text: str, message: str, hint: str) -> None:
    (problem,) = load_text(text).errors
    assert message in problem.message
    assert hint in (problem.hint or "")
    assert problem.line == (3 if "\t" in text or "&&" in text else 2)
