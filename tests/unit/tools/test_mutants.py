"""The planted bugs still fit the sources, and planting one leaves the working tree alone."""

from __future__ import annotations

import pytest

from tests.mutants.bug import DoesNotFit, Mutant
from tests.mutants.catalogue import MUTANTS
from tests.mutants.hunt import SOURCES, check_fits, copied, place_of
from tests.mutants.runtime_catalogue import RUNTIME_MUTANTS

ALL = [*MUTANTS, *RUNTIME_MUTANTS]


def test_every_planted_bug_still_fits_its_source() -> None:
    problems = check_fits(ALL)
    assert not problems, "patches in tests/mutants that want to be fitted anew:\n" + "\n".join(problems)


def test_every_planted_bug_is_a_program() -> None:
    for mutant in ALL:
        file = place_of(SOURCES, mutant)
        compile(mutant.planted(file.read_text("utf-8")), f"{mutant.name} in {file}", "exec")


def test_every_planted_bug_has_a_name_of_its_own_and_changes_something() -> None:
    assert len({mutant.name for mutant in ALL}) == len(ALL)
    assert all(mutant.old != mutant.new for mutant in ALL)


@pytest.mark.parametrize("text", ["", "x = 1\nx = 1\n"])
def test_a_patch_that_fits_nowhere_or_twice_is_refused(text: str) -> None:
    with pytest.raises(DoesNotFit, match="not once"):
        Mutant("m", "f.py", "x = 1", "x = 2").planted(text)


def test_a_copy_is_a_copy() -> None:
    mutant = MUTANTS[0]
    before = place_of(SOURCES, mutant).read_text("utf-8")
    with copied(SOURCES) as sources:
        file = place_of(sources, mutant)
        file.write_text(mutant.planted(file.read_text("utf-8")), "utf-8")
    assert place_of(SOURCES, mutant).read_text("utf-8") == before and not sources.exists()
