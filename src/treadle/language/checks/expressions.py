"""Checks of expressions: every one compiles, every name in it exists, and every schema is valid.

Compiles exactly what `graph` will compile, with the same names, so that a definition without problems here
cannot fail there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from treadle.errors import ExpressionError
from treadle.expression.cel import ROOTS, compile_cel
from treadle.expression.conditions import compile_condition
from treadle.expression.paths import Path as DataPath
from treadle.expression.schemas import compile_schema
from treadle.expression.sources import compile_mapping, compile_source
from treadle.language.checks.flow import Flow
from treadle.language.checks.tasks import tasks_of
from treadle.language.checks.uses import Form, Sees, Use, When, uses_of
from treadle.language.phrases import is_computed
from treadle.language.problem import Path, did_you_mean
from treadle.language.reading import Reading

FACTS: dict[Any, tuple[str, ...]] = {
    "_run": ("id", "key", "workflow", "version", "started", "tags", "entity", "parent"),
    "_visit": ("id", "key", "attempt", "path"),
}
JOIN_NAMES = ("arrived", "succeeded", "failed", "live", "total", "results")


def check(flow: Flow, reading: Reading) -> None:
    """CONDITION_SYNTAX, BAD_VALUE for paths, UNKNOWN_NODE inside expressions, BAD_SCHEMA."""
    for use in uses_of(flow):
        try:
            compiled = compiled_use(use, flow)
        except ExpressionError as error:
            where = f" ({_spot(error.where)})" if error.where else ""
            hint = "`==` compares" if error.message.startswith("token recognition error at: '= ") else None
            reading.problem_in(error.code, use.at, f"{error.message}{where}", hint)
            continue
        _names(use, compiled.reads, flow, reading)
        _facts(use, compiled.reads, reading)
        for ref in compiled.marking - flow.workflow.nodes.keys():
            reading.unknown("UNKNOWN_NODE", reading.written(use.at), "node", ref, flow.workflow.nodes)
    _overlaps(flow, reading)
    for at, schema in _schemas(flow):
        try:
            compile_schema(schema)
        except ExpressionError as error:
            message = f"{error.where}: {error.message}" if error.where else error.message
            hint = (
                _SCHEMA_HINT if ".type" in message else "JSON Schema 2020-12: json-schema.org/understanding-json-schema"
            )
            reading.problem_in("BAD_SCHEMA", at, message, hint)


def _spot(where: str) -> str:
    """`expr, column 12` → `column 12 of the expression`."""
    match = re.fullmatch(r"(?:(.*), )?((?:line \d+, )?column \d+)", where)
    if match is None:
        return where
    inside = f", `{match[1]}`" if match[1] and match[1] != "expr" else ""
    return f"{match[2]} of the expression{inside}"


_SCHEMA_HINT = (
    "`type` is one of object, array, string, number, integer, boolean, null; `properties` and `required` go beside it"
)


def compiled_use(use: Use, flow: Flow) -> Any:
    """The compiled expression. Raises ExpressionError."""
    names = () if use.sees is Sees.TASK else flow.item_variables
    if use.form is Form.JOIN:
        return compile_cel(use.value, JOIN_NAMES)
    if use.form is Form.CONDITION:
        return compile_condition(use.value, names)
    return compile_source(use.value, names)


def _names(use: Use, reads: frozenset[DataPath], flow: Flow, reading: Reading) -> None:
    """Check the names in paths. Compiling has checked those of CEL."""
    known = ROOTS | set(flow.item_variables)
    for path in sorted(reads, key=str):
        if use.sees is Sees.RUN and path and path[0] not in known and use.form is not Form.JOIN:
            hint = did_you_mean(str(path[0]), known)
            reading.problem_in("BAD_VALUE", use.at, f"there is nothing called `{path[0]}` to read from", hint)
        elif use.sees is Sees.RUN and len(path) > 1 and path[0] == "nodes" and path[1] not in flow.workflow.nodes:
            reading.unknown("UNKNOWN_NODE", reading.written(use.at), "node", str(path[1]), flow.workflow.nodes)


def _facts(use: Use, reads: frozenset[DataPath], reading: Reading) -> None:
    """Check reads of `_run` and `_visit`: their fields are known, and not every place has a visit."""
    if use.sees is Sees.OUTPUT and not is_computed(use.value):
        return  # a path into the task's output
    for path in sorted(reads, key=str):
        fields = FACTS.get(path[0]) if path else None
        if fields is None:
            continue
        if path[0] == "_visit" and (use.when is When.END or use.form is Form.JOIN):
            message = "there is no visit here: `_visit` is for what belongs to one node"
            reading.problem_in("BAD_VALUE", use.at, message, "the run is `_run`")
        elif len(path) > 1 and path[1] not in fields:
            message = f"`{path[0]}` has no `{path[1]}`; it has {', '.join(fields)}"
            reading.problem_in("BAD_VALUE", use.at, message, did_you_mean(str(path[1]), fields))


def _overlaps(flow: Flow, reading: Reading) -> None:
    """Report `a` and `a.b` in one input mapping."""
    for ref, node in flow.workflow.nodes.items():
        if isinstance(node.input_mapping, dict):
            keys = dict.fromkeys(node.input_mapping)
            try:
                compile_mapping(keys)
            except ExpressionError as error:
                reading.problem_in(error.code, ("nodes", ref, "input_mapping", error.where), error.message)


def _schemas(flow: Flow) -> Iterator[tuple[Path, Any]]:
    for name in ("input_schema", "state_schema", "output_schema"):
        yield (name,), getattr(flow.workflow, name)
    for ref, node in flow.workflow.nodes.items():
        for at, task, _ in tasks_of(ref, node):
            yield (*at, "input_schema"), task.input_schema
            yield (*at, "output_schema"), task.output_schema
            for number, step in enumerate(task.steps):
                for key in ("form", "response_schema"):
                    yield (*at, "steps", number, "action", key), step.action.config.get(key)
