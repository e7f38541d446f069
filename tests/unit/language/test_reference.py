"""The reference pages: every field and every code is described, and every example does what its page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.unit.language.definitions import loaded
from treadle.language.canvas.nodes import FIELDS
from treadle.language.grammar.budget import BUDGET
from treadle.language.grammar.kinds import KINDS
from treadle.language.grammar.node import ENTITY, NODE
from treadle.language.grammar.retry import RETRY_POLICY
from treadle.language.grammar.synchronization import SYNCHRONIZATION
from treadle.language.grammar.task import STEP, TASK
from treadle.language.grammar.transition import CANCELS, FOREACH, TRANSITION, TRIGGER
from treadle.language.grammar.workflow import LIMITS, WORKFLOW
from treadle.language.problem import ADVICE, ERRORS, WARNINGS
from treadle.language.record import Record
from treadle.language.text import read_text

PAGES = Path(__file__).parents[3] / "docs" / "reference"
DEFINITION = (PAGES / "definition.md").read_text("utf-8")
PROBLEMS = (PAGES / "problems.md").read_text("utf-8")
TABLES = [WORKFLOW, LIMITS, BUDGET, NODE, ENTITY, TASK, STEP, RETRY_POLICY, TRANSITION, FOREACH, TRIGGER, CANCELS]
NOT_WRITTEN_BY_HAND = {"by_item"}


@pytest.mark.parametrize("record", [*TABLES, SYNCHRONIZATION, *KINDS.values()], ids=lambda record: record.name)
def test_every_field_is_described(record: Record) -> None:
    names = {field.name for field in record.fields} - NOT_WRITTEN_BY_HAND
    assert [name for name in sorted(names) if not re.search(rf"\b{name}\b", DEFINITION)] == []


def test_every_other_spelling_and_every_kind_is_mentioned() -> None:
    spelled = [spelling for record in TABLES for field in record.fields for spelling in field.also]
    for word in (*spelled, *KINDS, *FIELDS):
        assert re.search(rf"\b{word}\b", DEFINITION), word


SECTIONS = {
    match[1]: match[2] for match in re.finditer(r"^### ([A-Z_]+)\n(.*?)(?=^##|\Z)", PROBLEMS, re.MULTILINE | re.DOTALL)
}


def test_every_code_has_a_section_with_a_remedy() -> None:
    assert set(SECTIONS) == ERRORS | WARNINGS | ADVICE
    assert [code for code, text in SECTIONS.items() if "**Remedy.**" not in text] == []


@pytest.mark.parametrize("code", sorted(set(SECTIONS) - {"UNKNOWN_FUNCTION", "SIGNATURE"}))
def test_the_example_of_a_code_earns_it_where_the_page_says(code: str) -> None:
    example = re.search(r"```yaml\n# at (.*?)\n(.*?)```", SECTIONS[code], re.DOTALL)
    assert example is not None
    (source,) = read_text(example[2], "problems.md")
    problems = loaded({"workflow": "example", **source.value}, callbacks=False).problems
    assert (code, example[1]) in [(problem.code, problem.at) for problem in problems]
