"""The modules of a package import one another in one direction: none leads back to itself.

Imports inside functions and under TYPE_CHECKING count too. A cycle that only types close is still two modules that
cannot be read one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable

from tests.arch import source

Graph = dict[str, set[str]]


def imported_modules() -> Graph:
    """Every module of ours with the modules of ours that it imports."""
    files = {source.module_name(file): file for file in source.files(f"src/{source.PACKAGE}", suffix=".py")}
    graph: Graph = {}
    for module, file in files.items():
        graph[module] = set()
        for _line, name in source.imports(file):
            found = name if name in files else name.rpartition(".")[0]  # a module, or a name out of one
            if found in files and found != module:
                graph[module].add(found)
    return graph


def cycles(graph: Graph) -> list[list[str]]:
    """One closed walk for every knot of modules that lead to one another."""
    reached = {module: reachable(graph, module) for module in graph}
    knots = {frozenset(m for m in reached[start] if start in reached[m]) for start in graph if start in reached[start]}
    return [walk(graph, min(knot), knot) for knot in sorted(knots, key=min)]


def reachable(graph: Graph, start: str) -> set[str]:
    """The modules that `start` leads to, itself only if it is in a cycle."""
    seen: set[str] = set()
    ahead = [*graph[start]]
    while ahead:
        module = ahead.pop()
        if module not in seen:
            seen.add(module)
            ahead += graph[module]
    return seen


def walk(graph: Graph, start: str, inside: Iterable[str]) -> list[str]:
    """The shortest way from `start` back to itself."""
    ways = [[start]]
    for way in ways:  # grows while it is read: breadth first
        for module in sorted(graph[way[-1]] & set(inside)):
            if module == start:
                return [*way, start]
            if module not in way:
                ways.append([*way, module])
    raise AssertionError(f"{start} is in no cycle")


def test_no_module_leads_back_to_itself() -> None:
    found = cycles(imported_modules())
    assert not found, source.report(
        "cycles of imports:",
        [" → ".join(way) for way in found],
        "move what both need into a module below them, or hand it in as an argument",
    )


def test_cycles_are_found() -> None:
    graph = {"t.a": {"t.b"}, "t.b": {"t.c", "t.d"}, "t.c": {"t.a"}, "t.d": set(), "t.e": {"t.a"}}
    assert cycles(graph) == [["t.a", "t.b", "t.c", "t.a"]]
    assert cycles({**graph, "t.c": set()}) == []
