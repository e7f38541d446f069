"""Every rule that a comment, a docstring, a message or a page cites by number is a heading of the documentation.

    2.5, 1.10, 6.2      a section of definition.md, execution.md or http.md in docs/reference
    A7                  an addition that the patterns need, in section 4.1 of docs/reference/execution.md
    WCP-9               a row of docs/reference/patterns.md
    W2                  a row of the workloads in bench/README.md
    decision 0015       a file of docs/decisions

Pages of a contract or of a study are not in the repository, so a reader could not look them up: they are not cited.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.arch import source

HEADING = re.compile(r"^#+ (\d\.\d+|A\d+) ", re.MULTILINE)
PATTERN_ROW = re.compile(r"^\| (\d+) \| \[", re.MULTILINE)

SECTION = re.compile(r"(?<![\w.$/\[=~<>+-])(?:[1-6]\.[1-9]\d?|A\d{1,2})(?![\w\]/]|\.\d)")
PATTERN = re.compile(r"\bWCP-(\d+)\b")
WORKLOAD = re.compile(r"\bW\d\b")
DECISION = re.compile(r"(?:\b[Dd]ecisions? |\bADR[ -]|docs/decisions/)(\d{4})\b")
ELSEWHERE = re.compile(r"\b[Ss]pec (?:page )?[\dA]|\b[Pp]age [1-6]\b|\([RS]\d{1,2}\b|, S\d{1,2}\b|§")

# `Python 3.11`, `0.25 to 0.4`: what comes before a number that is a version or a measure; `3.5 MB`: what follows it.
NAME_BEFORE = re.compile(
    r"(?:Python|YAML|Linux|PostgreSQL|SQLite|PgBouncer|bubblewrap|[Vv]ersion|to|instead of)[ -][\d. –]*$"
)
UNIT_AFTER = re.compile(r" ?(?:[nµm]?s|[KMG]i?B|%|×|times|instead|less)(?!\w)|[–/]\d")

COMMENT = re.compile(r"(?:^|\s)# .*")
BRACKETED = re.compile(r"\((?=(?:[1-6]\.\d|A\d))[^()]*\)")


ANY = re.compile("|".join(pattern.pattern for pattern in (SECTION, PATTERN, WORKLOAD, DECISION, ELSEWHERE)))


class Line(NamedTuple):
    place: str
    text: str


def lines_of(file: Path, first: int, text: str) -> Iterator[Line]:
    for number, line in enumerate(text.splitlines(), first):
        yield Line(f"{source.shown(file)}:{number}", line)


def lines_of_code(file: Path) -> Iterator[Line]:
    """Comments, docstrings, and of other strings what they cite in brackets."""
    for line in lines_of(file, 1, source.text(file)):
        if comment := COMMENT.search(line.text):
            yield Line(line.place, comment[0])
    documentation = set()
    for node in ast.walk(source.tree(file)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            documentation.add(node.value)
            yield from lines_of(file, node.lineno, node.value.value)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in documentation:
            for cited in BRACKETED.finditer(node.value):
                yield Line(f"{source.shown(file)}:{node.lineno}", cited[0])


def lines_of_page(file: Path) -> Iterator[Line]:
    """Of a page what it cites in brackets: its other numbers are measures and versions."""
    for line in lines_of(file, 1, source.text(file)):
        cites = [*BRACKETED.finditer(line.text), *DECISION.finditer(line.text), *WORKLOAD.finditer(line.text)]
        for cited in cites:
            yield Line(line.place, cited[0])


def lines() -> Iterator[Line]:
    for file in source.files("src", "tests", "tools", "bench", "examples"):
        if not ANY.search(source.text(file)):
            continue
        if file.suffix == ".py":
            yield from lines_of_code(file)
        elif file.suffix in {".yaml", ".sql"}:
            mark = "#" if file.suffix == ".yaml" else "--"
            yield from (line for line in lines_of(file, 1, source.text(file)) if line.text.lstrip().startswith(mark))
    for file in source.files(suffix=".md"):
        yield from lines_of_page(file)


@functools.cache
def headings() -> set[str]:
    pages = [
        source.text(source.ROOT / "docs" / "reference" / name) for name in ("definition.md", "execution.md", "http.md")
    ]
    return {number for page in pages for number in HEADING.findall(page)}


@functools.cache
def patterns() -> set[str]:
    return set(PATTERN_ROW.findall(source.text(source.ROOT / "docs" / "reference" / "patterns.md")))


@functools.cache
def workloads() -> set[str]:
    return set(re.findall(r"^\| (W\d) \|", source.text(source.ROOT / "bench" / "README.md"), re.MULTILINE))


@functools.cache
def decisions() -> set[str]:
    return {file.name[:4] for file in source.files("docs/decisions")}


def leads_nowhere(text: str) -> list[str]:
    """The citations in a line that the documentation has no place for."""
    found = [
        match[0]
        for match in SECTION.finditer(text)
        if match[0] not in headings()
        and not NAME_BEFORE.search(text[: match.start()])
        and not UNIT_AFTER.match(text[match.end() :])
    ]
    found += [match[0] for match in PATTERN.finditer(text) if match[1] not in patterns()]
    found += [match[0] for match in WORKLOAD.finditer(text) if match[0] not in workloads()]
    found += [match[0] for match in DECISION.finditer(text) if match[1] not in decisions()]
    return found + [match[0] for match in ELSEWHERE.finditer(text)]


def test_the_numbered_rules_are_all_there() -> None:
    assert {f"1.{n}" for n in range(1, 11)} <= headings()
    assert {f"2.{n}" for n in range(1, 18)} <= headings()
    assert {f"A{n}" for n in range(15)} <= headings()
    assert len(patterns()) == 43


def test_every_citation_leads_to_a_heading() -> None:
    read = list(lines())
    assert sum(bool(SECTION.search(line.text)) for line in read) > 200, "the citations are no longer found"
    problems = [
        f"{line.place} {cited}: {line.text.strip()[:90]}" for line in read for cited in leads_nowhere(line.text)
    ]
    assert not problems, source.report(
        "citations that lead nowhere:",
        problems,
        "cite a numbered heading of definition.md, execution.md or http.md, a decision, or a page by its name",
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("joins on groups (2.5, A7)", []),
        ("the order of 2.6 and 1.10", []),
        ("2.99 says so", ["2.99"]),
        ("a rule nobody wrote: A15", ["A15"]),
        ("the fine print of page" + " 3", ["page" + " 3"]),
        ("a hostile document (S" + "10)", ["(S" + "10"]),
        ("`foreach` (spec" + " 1.4)", ["spec" + " 1"]),
        ("WCP-44 is no pattern", ["WCP-44"]),
        ("W2 is a workload", []),
        ("W9 is none", ["W9"]),
        ("decision " + "0999", ["decision " + "0999"]),
        ("Python 3.12 takes 3.5 MB, Linux 5.14 took 4.5 ns", []),
    ],
)
def test_what_counts_as_a_citation(text: str, expected: list[str]) -> None:
    assert leads_nowhere(text) == expected
