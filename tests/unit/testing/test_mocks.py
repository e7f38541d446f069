"""Which outcome an execution takes."""

from __future__ import annotations

from treadle.model.ids import RunId, TokenId
from treadle.testing.world.mocks import ExecutionId, MockPlace, Script
from treadle.testing.world.outcomes import Outcome

JUDGE = MockPlace("judge")


def script(**outcomes: list[int]) -> Script:
    """`judge_0x2=[1]` is the mock of `judge[0.2]`."""
    mocks = {
        address.replace("_", "[").replace("x", ".") + ("]" if "_" in address else ""): [outcome(n) for n in numbers]
        for address, numbers in outcomes.items()
    }
    made = Script(mocks)
    made.learn({"judge"})
    return made


def outcome(number: int) -> Outcome:
    return Outcome(output=number)


def execution(token: int, attempt: int = 1) -> ExecutionId:
    return ExecutionId(RunId("r"), TokenId(token), attempt)


def test_the_most_specific_mock_wins() -> None:
    mocks = script(judge=[1], judge_2=[2], judge_0x2=[3])
    assert mocks.next_outcome(JUDGE, ()) == outcome(1)
    assert mocks.next_outcome(JUDGE, (0, 1)) == outcome(1)
    assert mocks.next_outcome(JUDGE, (1, 2)) == outcome(2)
    assert mocks.next_outcome(JUDGE, (0, 2)) == outcome(3)


def test_a_list_is_counted_per_key_and_its_last_outcome_repeats() -> None:
    mocks = script(judge=[1, 2], judge_0=[7, 8])
    assert [mocks.next_outcome(JUDGE, (1,)) for _ in range(3)] == [outcome(1), outcome(2), outcome(2)]
    assert mocks.next_outcome(JUDGE, (0,)) == outcome(7)


def test_a_branch_that_no_mock_fits_has_none() -> None:
    mocks = script(judge_0=[1])
    assert mocks.covers(JUDGE)
    assert mocks.next_outcome(JUDGE, (1,)) is None
    assert not mocks.covers(MockPlace("judge", compensation=True))


def test_a_re_execution_repeats_what_was_lost_and_no_list_moves_on() -> None:
    mocks = script(judge=[1, 2, 3])
    assert mocks.reading(execution(1)).take(JUDGE, ()) == outcome(1)
    assert mocks.reading(execution(1)).take(JUDGE, ()) == outcome(1)
    assert mocks.reading(execution(1, attempt=2)).take(JUDGE, ()) == outcome(2)
    again = mocks.reading(execution(1))
    assert [again.take(JUDGE, ()), again.take(JUDGE, ())] == [outcome(1), outcome(3)]


def test_a_released_execution_comes_to_its_release_when_it_is_repeated() -> None:
    mocks = script(judge=[1])
    reading = mocks.reading(execution(1))
    reading.take(JUDGE, ())
    reading.amend(outcome(9))
    assert mocks.reading(execution(1)).take(JUDGE, ()) == outcome(9)
