"""The leaves of a structured condition: fields, literals and operators, read and checked."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import msgspec

from treadle.errors import ExpressionError, PathSyntax
from treadle.expression.paths import Path, format_path, parse_path
from treadle.expression.values import kind_of, literal_problem
from treadle.expression.words import shown

Compare = Callable[[Any, Any], bool]

ORDERINGS: dict[str, Compare] = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
OPERATORS: dict[str, Compare] = {"==": operator.eq, "!=": operator.ne, **ORDERINGS}


class Field(msgspec.Struct, frozen=True):
    """An operand that is read from the view."""

    path: Path

    @property
    def text(self) -> str:
        return field_text(self.path)


class Constant(msgspec.Struct, frozen=True):
    """An operand that stands in the condition itself."""

    value: Any

    @property
    def text(self) -> str:
        return json_text(self.value)


def read_operand(operand: Any, where: str) -> Field | Constant:
    """`{field: path}` or `{literal: value}`."""
    if isinstance(operand, dict) and operand.keys() == {"field"}:
        return Field(read_field(operand["field"], f"{where}.field"))
    if isinstance(operand, dict) and operand.keys() == {"literal"}:
        return Constant(read_literal(operand["literal"], f"{where}.literal"))
    raise ExpressionError("an operand is {field: path} or {literal: value}", where)


def read_field(text: Any, where: str) -> Path:
    """A path, its leading `$.` optional."""
    if not isinstance(text, str):
        raise ExpressionError(f"a field is a path, not {kind_of(text)}", where)
    try:
        return parse_path(text)
    except PathSyntax as error:
        raise ExpressionError(str(error), where) from None


def read_literal(value: Any, where: str) -> Any:
    """Any JSON that can be compared."""
    if problem := literal_problem(value):
        raise ExpressionError(problem, where)
    return value


def read_operator(symbol: Any, where: str) -> str:
    """One of the six."""
    if isinstance(symbol, str) and symbol in OPERATORS:
        return symbol
    raise ExpressionError(f"an operator is one of {' '.join(OPERATORS)}, not {shown(symbol)}", where)


def field_text(path: Path) -> str:
    """A path as people write it: without the leading `$.`."""
    return format_path(path).removeprefix("$.")


def json_text(value: Any) -> str:
    """A literal as it was written."""
    return msgspec.json.encode(value).decode()
