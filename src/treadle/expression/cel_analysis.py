"""Analysis of a CEL expression without running it: the paths it reads, and how much it could grow.

`reads` is exact as far as steps are constant: in `state.items[input.i].name` it finds `state.items` and
`input.i`.

`unfolded` bounds growth. The library limits iterations and nesting, but not size, and nested macros can
double a string at every level: nine levels of eight copies made 1.3 GB from ten characters. So we count the
leaves of the expression with every macro variable replaced by what it stands for. Without macros the count
never exceeds the text itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from treadle.expression.cel_tree import Access, Call, Fold, Name, Tree
from treadle.expression.paths import Path

_SCALAR_RESULTS = {
    *("_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "_&&_", "_||_", "!_", "@in", "@not_strictly_false"),
    *("size", "matches", "contains", "startsWith", "endsWith", "hasValue"),
    *("int", "uint", "double", "bool", "type"),
}


def reads(tree: Tree, bound: frozenset[str] = frozenset()) -> Iterator[Path]:
    """The paths read, from names that no macro binds; longest constant prefix each."""
    if isinstance(tree, Name | Access):
        yield from _reads_of_path(tree, bound)
    elif isinstance(tree, Call):
        for argument in tree.arguments:
            yield from reads(argument, bound)
    elif isinstance(tree, Fold):
        yield from reads(tree.over, bound)
        yield from reads(tree.start, bound)
        yield from reads(tree.result, bound | {tree.total})
        for part in (tree.test, tree.step):
            yield from reads(part, bound | {tree.total, *tree.variables})


def _reads_of_path(tree: Tree, bound: frozenset[str]) -> Iterator[Path]:
    steps: list[str | int] = []
    while isinstance(tree, Access):
        steps.append(tree.step)
        tree = tree.of
    if not isinstance(tree, Name):
        yield from reads(tree, bound)
    elif tree.name not in bound:
        yield (tree.name, *reversed(steps))


def unfolded(tree: Tree) -> int:
    """How many leaves the largest value along the way can have; data from outside counts as one leaf."""
    growth = _Growth()
    growth.size(tree, {})
    return growth.peak


class _Growth:
    """Sizes of values, bottom up. `peak` also remembers those that a comparison then throws away."""

    def __init__(self) -> None:
        self.peak = 1

    def size(self, tree: Tree, sizes: Mapping[str, int]) -> int:
        size = self._size(tree, sizes)
        self.peak = max(self.peak, size)
        return size

    def _size(self, tree: Tree, sizes: Mapping[str, int]) -> int:
        if isinstance(tree, Name):
            return sizes.get(tree.name, 1)
        if isinstance(tree, Access):
            return self.size(tree.of, sizes)
        if isinstance(tree, Call):
            return self._call(tree, sizes)
        if isinstance(tree, Fold):
            return self._fold(tree, sizes)
        return 1

    def _call(self, call: Call, sizes: Mapping[str, int]) -> int:
        arguments = [self.size(argument, sizes) for argument in call.arguments]
        if call.function in _SCALAR_RESULTS:
            return 1
        return max(arguments) if call.function == "_?_:_" else max(1, sum(arguments))

    def _fold(self, fold: Fold, sizes: Mapping[str, int]) -> int:
        item, start = self.size(fold.over, sizes), self.size(fold.start, sizes)
        inner = {**sizes, **dict.fromkeys(fold.variables, item), fold.total: start}
        self.size(fold.test, inner)
        return self.size(fold.result, {**sizes, fold.total: max(start, self.size(fold.step, inner))})
