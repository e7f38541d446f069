"""CEL: what an expression reads and counts, known at deploy, and nothing else asked of the view."""

from __future__ import annotations

from typing import Any

import pytest

from treadle.errors import ExpressionError
from treadle.expression.cel import compile_cel
from treadle.expression.view import DictView


@pytest.mark.parametrize(
    ("expr", "reads"),
    [
        ("1 + 2", set()),
        ("state", {("state",)}),
        ("state.a.b > input.c", {("state", "a", "b"), ("input", "c")}),
        ('state["a"][0].b', {("state", "a", 0, "b")}),
        ("state.items[input.i].name", {("state", "items"), ("input", "i")}),
        ("has(state.a.b)", {("state", "a", "b")}),
        ("state.?a.?b.orValue(1)", {("state", "a", "b")}),
        ("'state.a' == \"input.b\" // output.c", set()),
        ("state.l.map(i, i.x + input.y)", {("state", "l"), ("input", "y")}),
        ("[{'x': 1}].map(state, state.x)", set()),
        ("[state.a].map(state, state.x)", {("state", "a")}),
        (
            "{'a': state.a, input.key: [nodes.x.output]}",
            {("state", "a"), ("input", "key"), ("nodes", "x", "output")},
        ),
        ("type(state.a) == int", {("state", "a")}),
        ("optional.of(state.a).optMap(v, v + input.b).orValue(0)", {("state", "a"), ("input", "b")}),
        ("math.greatest(state.a, judge)", {("state", "a"), ("judge",)}),
        ("tokens_at('x') > 0", set()),
    ],
)
def test_what_an_expression_reads_is_known(expr: str, reads: set[Any]) -> None:
    assert compile_cel(expr, ["judge"]).reads == reads


class WatchedView(DictView):
    """Remembers what was asked of it."""

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.asked: list[tuple[str, Any]] = []

    def root(self, name: str, keys: frozenset[str] | None) -> Any:
        self.asked.append((name, keys and set(keys)))
        return super().root(name, keys)

    def tokens_at(self, node: str) -> int:
        self.asked.append(("tokens_at", node))
        return 2


@pytest.mark.parametrize(
    ("expr", "asked"),
    [
        ("1 == 1", []),
        ("state.a == state.b.c", [("state", {"a", "b"})]),
        ("state.a == 1 && state != null", [("state", None)]),
        ("input[0] == 1", [("input", None)]),
        ("state[input.key] == 1", [("input", {"key"}), ("state", None)]),
        ("state.all(k, state[k] > 0)", [("state", None)]),
        ("tokens_at('x') == 2 && tokens_at( \"x\" ) == 2", [("tokens_at", "x")]),
    ],
)
def test_only_what_is_needed_is_asked_of_the_view(expr: str, asked: list[Any]) -> None:
    view = WatchedView({"state": {"a": 1, "b": {"c": 1}}, "input": {"key": "a"}})
    compile_cel(expr).condition(view)
    assert view.asked == asked


@pytest.mark.parametrize(
    ("expr", "nodes", "expected"),
    [
        ('tokens_at("open") > 1', {"open"}, True),
        ("tokens_at('a') + tokens_at(r'b') == 4", {"a", "b"}, True),
        ("'tokens_at(\"x\")' == state.text", set(), True),
        ("tokens_at('''odd \"node\"''') == 2", {'odd "node"'}, True),
        ("true // tokens_at('x')", set(), True),
        ('"//" != "" && tokens_at("x") == 2', {"x"}, True),
        ("state.tokens_at == 7", set(), True),
    ],
)
def test_tokens_at_counts_the_nodes_it_names(expr: str, nodes: set[str], expected: bool) -> None:
    compiled = compile_cel(expr)
    assert compiled.marking == nodes
    assert compiled.needs_marking == bool(nodes)
    assert compiled.condition(WatchedView({"state": {"text": 'tokens_at("x")', "tokens_at": 7}})) is expected


@pytest.mark.parametrize(
    "expr",
    [
        "tokens_at(state.x) > 0",
        "tokens_at('a' + 'b') > 0",
        "tokens_at() > 0",
        "tokens_at(1) > 0",
        "tokens_at",
    ],
)
def test_tokens_at_takes_a_name_in_quotes(expr: str) -> None:
    with pytest.raises(ExpressionError, match="tokens_at takes the name of one node"):
        compile_cel(expr)
