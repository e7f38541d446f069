"""The planted bugs still fit the sources, and planting one leaves the working tree alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants import reach
from tests.mutants.bug import DoesNotFit, Mutant
from tests.mutants.catalogue import MUTANTS
from tests.mutants.change_catalogue import CHANGE_MUTANTS
from tests.mutants.hunt import SOURCES, check_fits, copied, first_changed, place_of
from tests.mutants.lease_catalogue import LEASE_MUTANTS
from tests.mutants.reach import Reaching, Recorder, function_at, reaching
from tests.mutants.runtime_catalogue import RUNTIME_MUTANTS
from treadle.kernel.depth import is_too_deep

ALL = [*MUTANTS, *CHANGE_MUTANTS, *RUNTIME_MUTANTS, *LEASE_MUTANTS]


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


NESTED = """\
a = 1

class Outer:
    b = 2

    async def method(self):
        def inner():
            return 3
        if inner():
            return 4


def plain():
    return [x for x in range(5)]
"""


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (1, ""),
        (4, ""),
        (6, "Outer.method"),
        (8, "Outer.method.<locals>.inner"),
        (10, "Outer.method"),
        (14, "plain"),
    ],
)
def test_a_line_belongs_to_the_innermost_function_as_python_names_it(line: int, name: str) -> None:
    assert function_at(NESTED, line) == name


def test_a_change_is_where_the_first_line_differs() -> None:
    assert first_changed("a\nb\nc\n", "a\nx\nc\n") == 2
    assert first_changed("a\n", "a\nb\n") == 2


def test_what_a_test_calls_is_recorded_and_what_failed_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reach, "RECORD", tmp_path / "reach.json")
    recorder = Recorder()
    assert reaching("kernel/depth.py", "is_too_deep") is None, "nothing is recorded yet"
    for name in ("good", "bad"):
        with recorder.during(name):
            is_too_deep({})
    with recorder.during("elsewhere"):
        first_changed("a", "b")
    recorder.leave_out("bad")
    recorder.write(reach.RECORD)
    found = reaching("kernel/depth.py", "is_too_deep")
    assert found is not None and [one.name for one in found] == ["good"]
    assert reaching("kernel/depth.py", "too_deep") == [] and reaching("kernel/depth.py", "") is None


def test_a_scenario_is_known_by_its_name() -> None:
    assert Reaching("tests/scenarios/loops.scenario.yaml::a loop", 0.1).is_scenario
    assert not Reaching("tests/runtime/test_core.py::test_x", 0.1).is_scenario
