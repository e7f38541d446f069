"""CEL expressions behind a small port: compile once, evaluate against a view.

The language is standard CEL with optional fields (`state.?n.orValue(0)`) and `math`, by Google's C++ library.
The string extension is left out on purpose: `replace` and `join` multiply lengths, and evaluation must stay
bounded in cost.

Theory of operation. Names are declared, values are all `dyn`: syntax and unknown names are found at deploy,
`state.score > 84.5` is legal whatever the score is. The library's checker still refuses some mixtures of
literals that CEL itself allows (`1 == 1.0`); where it objects to nothing but types, the expression is
compiled unchecked. `tokens_at("x")` becomes `tokens_at["x"]`, the same text but for its brackets, over a
hidden map of the node names that occur: the marking is asked of the view only when the expression is
evaluated, and error positions stay true.

Only data that is read is passed: the roots an expression names, and of each only the keys it names, unless it uses the
root as a whole. A root that is absent, but only read by key, counts as empty, so `has(_last_error.kind)` is false.

Limits: what one evaluation may read (the view's `bytes_max`, 4 MiB unless an operator says otherwise; more is an error,
not an answer); 4,096 characters and as many leaves after unfolding macros; by the library, 10,000 iterations, 32
levels and linear-time regular expressions; the data and the result by `cel_values`. Known gaps: a loop that
repeats long data (`l.map(i, input.long + i)`) may still build iterations × length characters before the
result is refused; and the library builds lists in quadratic time: a `map` of 1,000 elements takes 20 ms, one
of 8,000 a second.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from cel_expr_python import cel
from cel_expr_python.ext import ext_math, ext_optional

from treadle.errors import DataTooLarge, EvaluationError, ExpressionError
from treadle.expression.answer import Answer, Unevaluable
from treadle.expression.cel_analysis import reads, unfolded
from treadle.expression.cel_tree import read_tree
from treadle.expression.cel_values import explain, plain, refuse_unreadable, to_json
from treadle.expression.paths import MISSING, Path
from treadle.expression.view import View
from treadle.expression.words import clip, nearest, shown

ROOTS = frozenset(("input", "state", "output", "nodes", "_branch", "_last_error", "_run", "_visit"))
"""The names every expression may use."""
LENGTH_MAX = 4_096
"""Characters. Also the bound on leaves: nothing may unfold to more than its longest text could spell out."""
_MESSAGE_MAX = 200
_MARKING = "tokens_at"
_TOKENS_AT_USAGE = 'tokens_at takes the name of one node, in quotes: tokens_at("node")'
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TYPE_NAMES = {
    *("bool", "bytes", "double", "duration", "dyn", "int", "list", "map"),
    *("null_type", "optional_type", "string", "timestamp", "type", "uint"),
}
"""Names that CEL reserves for its types. An item variable may have such a name, but CEL cannot refer to it."""

_STRING = r"""[rR]?(?:\"{3}.*?\"{3}|'{3}.*?'{3}|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')"""
_TOKENS_AT = re.compile(rf"//[^\n]*|(?<![\w.])tokens_at(\s*)\((\s*{_STRING}\s*)\)|{_STRING}", re.DOTALL)


class CompiledCel:
    """One compiled expression. Everybody who wrote the same text shares the instance."""

    __slots__ = ("_program", "_roots", "marking", "reads", "text")

    def __init__(self, text: str, program: Any, paths: frozenset[Path]) -> None:
        self.text = text
        self.reads = frozenset(path for path in paths if path[0] != _MARKING)
        self.marking = _marked_nodes(paths)
        self._program = program
        self._roots = _needed_roots(self.reads)

    @property
    def needs_marking(self) -> bool:
        return bool(self.marking)

    def evaluate(self, view: View) -> Any:
        """The value as plain JSON. Raises EvaluationError, which names the expression."""
        try:
            return to_json(self._run(view))
        except EvaluationError as error:
            raise type(error)(f"{error} in `{self.text}`") from None

    def condition(self, view: View) -> Answer:
        """The value as the answer of a condition; never raises."""
        try:
            result = self._run(view)
            value = plain(result)
        except DataTooLarge as error:
            return Unevaluable(f"{error} in `{self.text}`", limit=True)
        except EvaluationError as error:
            return Unevaluable(str(error))
        if value is True or value is False:
            return value
        kind = result.type()
        if kind == cel.Type.ERROR:
            return Unevaluable(explain(value))
        return Unevaluable(f"the result is {kind.name().lower()}, not true or false")

    def require_boolean(self) -> None:
        """Raises ExpressionError if the text alone shows that this can never be a condition."""
        kind = self._program.return_type()
        if kind not in (cel.Type.BOOL, cel.Type.DYN):
            raise ExpressionError(f"a condition is true or false; `{self.text}` is {kind.name().lower()}")

    def _run(self, view: View) -> Any:
        data = {}
        for name, keys in self._roots:
            value = view.root(name, keys)
            if value is not MISSING:
                data[name] = value
            elif keys is not None:
                data[name] = {}
        if data:
            refuse_unreadable(data, view.bytes_max)
        if self.marking:
            data[_MARKING] = {node: view.tokens_at(node) for node in self.marking}
        try:
            return self._program.eval(data=data)
        except RuntimeError as error:
            raise EvaluationError(explain(str(error))) from None


def compile_cel(expr: str, names: Iterable[str] = ()) -> CompiledCel:
    """An expression compiled. `names` are roots beyond the usual ones. Raises ExpressionError."""
    if not isinstance(expr, str):
        raise ExpressionError("a CEL expression is a string")
    return _compile(expr, frozenset(names))


@lru_cache(maxsize=4_096)
def _compile(expr: str, names: frozenset[str]) -> CompiledCel:
    _refuse_unreadable_text(expr)
    program = _program(_TOKENS_AT.sub(_as_index, expr), names)
    tree = read_tree(program.serialize())
    if unfolded(tree) > LENGTH_MAX:
        raise ExpressionError("nested macros multiply the data too often")
    paths = frozenset(reads(tree))
    for path in paths:
        if path[0] in names & _TYPE_NAMES:
            raise ExpressionError(f"{path[0]!r} is the name of a CEL type; call the variable something else")
    known = ROOTS | names | {_MARKING}
    return CompiledCel(expr, program, frozenset(path for path in paths if path[0] in known))


def _refuse_unreadable_text(expr: str) -> None:
    if not expr.strip():
        raise ExpressionError("an expression is not empty")
    if len(expr) > LENGTH_MAX:
        raise ExpressionError(f"an expression has at most {LENGTH_MAX} characters, this one has {len(expr)}")
    if "\0" in expr or any("\ud800" <= character <= "\udfff" for character in expr):
        raise ExpressionError("an expression has no NUL characters and no lone surrogates")


def _as_index(match: re.Match[str]) -> str:
    return match[0] if match[2] is None else f"{_MARKING}{match[1]}[{match[2]}]"


@lru_cache(maxsize=1_024)
def _environment(names: frozenset[str]) -> Any:
    declarable = (ROOTS | names | {_MARKING}) - _TYPE_NAMES
    variables = {name: cel.Type.DYN for name in declarable if _IDENTIFIER.fullmatch(name)}
    return cel.NewEnv(variables=variables, extensions=[ext_optional.ExtOptional(), ext_math.ExtMath()])


def _program(text: str, names: frozenset[str]) -> Any:
    environment = _environment(names)
    try:
        return environment.compile(text)
    except RuntimeError as error:
        problems = _problems(str(error))
    serious = [problem for problem in problems if "found no matching overload" not in problem[1]]
    if not serious:
        return environment.compile(text, disable_check=True)
    where, message = serious[0]
    raise ExpressionError(_in_our_words(message, ROOTS | names), where)


def _problems(error: str) -> list[tuple[str, str]]:
    """The (where, message) pairs of a compile error."""
    found = re.findall(r"ERROR: <input>:(-?\d+):(-?\d+): (.*)", error)
    return [(_where(int(line), int(column)), message) for line, column, message in found] or [("", explain(error))]


def _where(line: int, column: int) -> str:
    if line < 1:
        return ""
    return f"column {column}" if line == 1 else f"line {line}, column {column}"


def _in_our_words(message: str, known: frozenset[str]) -> str:
    if "recursion" in message:
        return "an expression is nested at most 32 deep"
    unknown = re.match(r"undeclared reference to '([^'.]*)", message)
    if unknown is None:
        return clip(_grammar(message.removeprefix("Syntax error: ")), _MESSAGE_MAX)
    if unknown[1] == _MARKING:
        return _TOKENS_AT_USAGE
    return f"unknown name or function {shown(unknown[1])}{nearest(unknown[1], known)}"


_SPELLED = {"and": "&&", "or": "||", "not": "!", "=": "==", "is": "==", "<>": "!="}


def _grammar(message: str) -> str:
    """A message of CEL's parser: the text it found, and what it expected instead."""
    stray = re.match(r"(?:extraneous|mismatched) input '(.*?)' expecting (.*)", message)
    if stray is None:
        missing = re.match(r"missing ('.*?') at '(.*)'", message)
        if missing is None:
            return message.partition(" expecting ")[0]
        return f"{missing[1]} is missing" + (" at the end" if missing[2] == "<EOF>" else f" before '{missing[2]}'")
    ends, wanted = stray[2] == "<EOF>", "a value" if "IDENTIFIER" in stray[2] else stray[2]
    expected = "an operator, or the end" if ends else wanted
    if stray[1] == "<EOF>":
        return f"the expression ends where {expected} is expected"
    spelled = _SPELLED.get(stray[1])
    return f"unexpected '{stray[1]}': " + (f"write {spelled}" if spelled else f"{expected} is expected")


def _marked_nodes(paths: frozenset[Path]) -> frozenset[str]:
    marked = [path for path in paths if path[0] == _MARKING]
    if any(len(path) != 2 or not isinstance(path[1], str) for path in marked):
        raise ExpressionError(_TOKENS_AT_USAGE)
    return frozenset(str(path[1]) for path in marked)


def _needed_roots(paths: frozenset[Path]) -> tuple[tuple[str, frozenset[str] | None], ...]:
    """Each root with the keys that are read of it, or None where it is used as a whole."""
    seconds: dict[str, set[str | int | None]] = {}
    for root, *steps in sorted(paths, key=str):
        seconds.setdefault(str(root), set()).add(steps[0] if steps else None)
    return tuple((root, _only_names(keys)) for root, keys in seconds.items())


def _only_names(keys: set[str | int | None]) -> frozenset[str] | None:
    names = frozenset(key for key in keys if isinstance(key, str))
    return names if len(names) == len(keys) else None
