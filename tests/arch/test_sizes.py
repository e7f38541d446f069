"""Files and functions stay pleasant to read; what is longer was looked at, and may not grow."""

from __future__ import annotations

import ast

from tests.arch import house, source
from tests.arch.house import FILE_LINES_MAX, FILE_LINES_WANT_A_REASON, FUNCTION_LINES_MAX


def code() -> list[source.Path]:  # type: ignore[name-defined]
    return source.files("src", "tools", "bench", "tests", suffix=".py")


def lines(file: source.Path) -> int:  # type: ignore[name-defined]
    return len(source.text(file).splitlines())


def test_files_are_short_or_have_a_reason() -> None:
    problems = []
    for file in code():
        name, length = source.shown(file), lines(file)
        reviewed, _reason = house.LONG_FILES.get(name, (FILE_LINES_WANT_A_REASON, ""))
        if length > FILE_LINES_MAX:
            problems.append(f"{name}: {length} lines, over the hard limit of {FILE_LINES_MAX}")
        elif length > reviewed:
            problems.append(f'"{name}": ({length}, "why?"),  # over {reviewed}')
    assert not problems, source.report(
        "files that have become long:",
        problems,
        f"split by what a part owns; one below {FILE_LINES_MAX} lines that is better whole goes into "
        "LONG_FILES in tests/arch/house.py with its reason",
    )


def test_functions_are_short_or_have_a_reason() -> None:
    problems = []
    for file in code():
        for function in source.functions(file):
            key = f"{source.shown(file)}::{function.name}"
            allowed, _reason = house.LONG_FUNCTIONS.get(key, (FUNCTION_LINES_MAX, ""))
            if function.lines > allowed:
                problems.append(f'"{key}": ({function.lines}, "why?"),  # line {function.line}, over {allowed}')
    assert not problems, source.report(
        "functions that have become long:",
        problems,
        "split by step or by case; one that is clearer whole goes into LONG_FUNCTIONS in tests/arch/house.py",
    )


def test_reviewed_sizes_are_still_needed() -> None:
    long_files = {source.shown(file) for file in code() if lines(file) > FILE_LINES_WANT_A_REASON}
    long_functions = {
        f"{source.shown(file)}::{function.name}"
        for file in code()
        for function in source.functions(file)
        if function.lines > FUNCTION_LINES_MAX
    }
    stale = sorted((house.LONG_FILES.keys() - long_files) | (house.LONG_FUNCTIONS.keys() - long_functions))
    assert not stale, source.report("no longer long, well done:", stale, "delete the entry from house.py")


def test_modules_say_what_they_own() -> None:
    problems = [
        f"{source.shown(file)}: {lines(file)} lines and no docstring"
        for file in code()
        if lines(file) > house.DOCSTRING_FROM_LINES and not ast.get_docstring(source.tree(file))
    ]
    assert not problems, source.report(
        "modules that do not introduce themselves:",
        problems,
        "begin with what the module owns, what it promises, what it must not do",
    )
