"""The planted bugs still fit the kernel, and planting one leaves the working tree alone."""

from __future__ import annotations

import pytest

from tests.mutants.catalogue import MUTANTS, Mutant
from tests.mutants.hunt import KERNEL, SOURCES, DoesNotFit, check_fits, copied, planted


def test_every_planted_bug_still_fits_the_kernel() -> None:
    problems = check_fits(MUTANTS)
    assert not problems, "patches in tests/mutants/catalogue.py that want to be fitted anew:\n" + "\n".join(problems)


def test_every_planted_bug_has_a_name_of_its_own_and_changes_something() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    assert all(mutant.old != mutant.new for mutant in MUTANTS)


@pytest.mark.parametrize("text", ["", "x = 1\nx = 1\n"])
def test_a_patch_that_fits_nowhere_or_twice_is_refused(text: str) -> None:
    with pytest.raises(DoesNotFit, match="not once"):
        planted(Mutant("m", "f.py", "x = 1", "x = 2"), text)


def test_a_copy_is_a_copy() -> None:
    mutant = MUTANTS[0]
    before = (SOURCES / KERNEL / mutant.file).read_text("utf-8")
    with copied(SOURCES) as sources:
        file = sources / KERNEL / mutant.file
        file.write_text(planted(mutant, file.read_text("utf-8")), "utf-8")
    assert (SOURCES / KERNEL / mutant.file).read_text("utf-8") == before and not sources.exists()
