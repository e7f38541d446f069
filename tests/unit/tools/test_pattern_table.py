"""docs/reference/patterns.md says what tests/patterns proves today: no pattern missing, none claimed that fails."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

from tools import pattern_table
from tools.pattern_table import COUNT, FAMILIES, BadHeader, Pattern, Proof


@pytest.mark.slow
def test_the_page_is_up_to_date() -> None:
    found, wanted = pattern_table.PAGE.read_text("utf-8"), pattern_table.current()
    differing = "\n".join(
        difflib.unified_diff(found.splitlines(), wanted.splitlines(), "the page", "what passes", n=0, lineterm="")
    )
    assert found == wanted, f"run: ./dev python tools/pattern_table.py\n{differing}"


def test_every_pattern_is_in_exactly_one_family() -> None:
    assert sorted(number for family in FAMILIES.values() for number in family) == list(range(1, COUNT + 1))


def test_every_pattern_has_a_file_that_introduces_it() -> None:
    assert sorted(pattern_table.read_patterns()) == list(range(1, COUNT + 1))


def test_a_pattern_with_one_failing_scenario_is_not_supported() -> None:
    pattern = Pattern(3, "Synchronization", "waits | for all", "synchronization: {…}", Path("wcp_03.scenario.yaml"))
    assert pattern_table.supported({3: Proof(7, 8), 4: Proof(0, 0), 5: Proof(2, 2)}) == 1
    row = pattern_table.row(3, pattern, Proof(7, 8))
    assert "✗ 7 of 8" in row and "Waits \\| for all" in row


def test_a_file_without_its_header_is_named(tmp_path: Path) -> None:
    file = tmp_path / "x.scenario.yaml"
    file.write_text("# WCP-3 Synchronization\n# Meaning: waits\n#   for all\nscenario: x\n")
    with pytest.raises(BadHeader, match=r"x\.scenario\.yaml"):
        pattern_table.read_pattern(file)
    file.write_text("# WCP-3 Synchronization\n# Meaning: waits\n#   for all\n# Construct: sync\nscenario: x\n")
    assert pattern_table.read_pattern(file).meaning == "waits for all"
