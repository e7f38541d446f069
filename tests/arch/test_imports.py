"""Imports go in the directions that `house.py` lists and ARCHITECTURE.md sums up."""

from __future__ import annotations

import ast
import sys

from tests.arch import house, source
from tests.arch.house import ROOMS, Room


def room_of(module: str) -> str:
    """`treadle.kernel.join` → `kernel`; `treadle` itself is the face, ``."""
    return module.partition(".")[2].partition(".")[0]


def excused(module: str, imported: str) -> bool:
    return any(
        f"{module}.".startswith(f"{who}.") and f"{imported}.".startswith(f"{what}.")
        for who, what in house.IMPORT_EXCEPTIONS
    )


def complaint(module: str, imported: str) -> str | None:
    """Why this import breaks the table, or None."""
    rules = ROOMS[room_of(module)]
    if imported == source.PACKAGE or imported.startswith(f"{source.PACKAGE}."):
        return complaint_about_ours(module, imported, rules)
    top = imported.partition(".")[0]
    if top == "__future__":
        return None
    if top in sys.stdlib_module_names:
        return f"a pure package must not use {top}" if rules.pure and top in house.IMPURE else None
    return None if top in rules.libraries else f"{top} is not among its libraries ({say(rules.libraries)})"


def complaint_about_ours(module: str, imported: str, rules: Room) -> str | None:
    here, there = room_of(module), room_of(imported)
    inside = imported.removeprefix(f"{source.PACKAGE}.")
    if here == there == "store":
        return complaint_about_stores(module, imported)
    if here == there and here in house.INNER_ROOMS:
        return complaint_about_inner_rooms(module, imported, house.INNER_ROOMS[here])
    if here == there and here:
        return None
    if any(f"{inside}.".startswith(f"{allowed}.") for allowed in rules.ours):
        return None
    return f"{here or 'the face'} may import only {say(rules.ours)} of ours"


def complaint_about_stores(module: str, imported: str) -> str | None:
    """One store never imports another; all of them import the port and what they share."""
    mine, theirs = module.split(".")[2:3], imported.split(".")[2:3]
    if not mine or not theirs or theirs == mine or theirs[0] in house.SHARED_BY_STORES:
        return None
    return "one store must not import another"


def complaint_about_inner_rooms(module: str, imported: str, rooms: dict[str, frozenset[str]]) -> str | None:
    """The rooms of one package: `treadle.cli.runs.gates` stands in `runs`, `treadle.cli.main` beside the rooms."""
    mine, theirs = module.split(".")[2:3], imported.split(".")[2:3]
    if mine == theirs or not mine or mine[0] not in rooms:
        return None
    if theirs and theirs[0] in rooms[mine[0]]:
        return None
    return f"the room {mine[0]} may import only {say(rooms[mine[0]])} of its package"


def say(names: frozenset[str]) -> str:
    return ", ".join(sorted(names)) or "nothing"


def python_files() -> list[source.Path]:  # type: ignore[name-defined]
    return source.files(f"src/{source.PACKAGE}", suffix=".py")


def test_every_package_has_a_row_in_the_table() -> None:
    rooms = {room_of(source.module_name(file)) for file in python_files()} - {"__main__"}
    assert rooms <= ROOMS.keys(), source.report(
        "packages without a row in tests/arch/house.py:",
        sorted(rooms - ROOMS.keys()),
        "decide what the new package may import and add a row to ROOMS",
    )


def test_every_inner_room_has_a_row_in_the_table() -> None:
    for package, rooms in house.INNER_ROOMS.items():
        folders = {file.parent.name for file in source.files(f"src/{source.PACKAGE}/{package}", suffix=".py")}
        assert folders - {package} == rooms.keys(), f"INNER_ROOMS of {package} in tests/arch/house.py: {folders}"


def test_imports_follow_the_table() -> None:
    problems: dict[tuple[str, int], str] = {}  # one complaint per statement, however many names it imports
    for file in python_files():
        module = source.module_name(file)
        if room_of(module) not in ROOMS:
            continue  # the test above says so
        for line, imported in source.imports(file):
            reason = complaint(module, imported)
            if reason and not excused(module, imported):
                place = source.shown(file), line
                problems.setdefault(place, f"{place[0]}:{line} imports {imported}: {reason}")
    assert not problems, source.report(
        "imports against the direction of dependency:",
        list(problems.values()),
        "move the code to the room that may know this, or argue an exception in tests/arch/house.py",
    )


def test_pure_packages_do_not_read_the_clock() -> None:
    problems = []
    for file in python_files():
        if not ROOMS.get(room_of(source.module_name(file)), ROOMS["errors"]).pure:
            continue
        for node in ast.walk(source.tree(file)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                owner = ast.unparse(node.func.value).rpartition(".")[2]
                if owner in ("datetime", "date") and node.func.attr in house.CLOCK_READS:
                    problems.append(f"{source.shown(file)}:{node.lineno} calls {ast.unparse(node.func)}")
    assert not problems, source.report("pure code reads the clock:", problems, "take the time as an argument")


def test_no_exception_outlives_its_reason() -> None:
    stale = []
    for who, what in house.IMPORT_EXCEPTIONS:
        used = any(
            complaint(module, imported) and f"{imported}.".startswith(f"{what}.")
            for file in python_files()
            if f"{(module := source.module_name(file))}.".startswith(f"{who}.")
            for _line, imported in source.imports(file)
        )
        if not used:
            stale.append(f"{who} → {what}")
    assert not stale, source.report("exceptions nobody needs any more:", stale, "delete them from house.py")


def test_the_table_itself_is_enforced() -> None:
    """The rules that matter most, tried on imports nobody has written."""
    for module, imported in [
        ("treadle.model.token", "treadle.errors.Rejected"),
        ("treadle.kernel.join", "treadle.store.port.Store"),
        ("treadle.kernel.join", "time.monotonic"),
        ("treadle.graph.compile", "treadle.language.load.Loaded"),
        ("treadle.store.memory", "treadle.kernel.evolve"),
        ("treadle.store.sqlite.store", "treadle.store.memory"),
        ("treadle.runtime.coordinate.coordinator", "treadle.store.memory.MemoryStore"),
        ("treadle.cli.definitions.test", "treadle.kernel.decide"),
        ("treadle.cli.runs.gates", "treadle.cli.nodes.queues"),
        ("treadle.cli.screen.output", "treadle.cli.frame.exits"),
        ("treadle.cli.frame.opening", "treadle.cli.main"),
        ("treadle.language.yaml", "aiohttp"),
        ("treadle.model.ids", "treadle.VERSION"),
    ]:
        assert complaint(module, imported), f"{module} could import {imported} and nobody would notice"
