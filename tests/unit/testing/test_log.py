"""The compact history: one aligned line per event."""

from __future__ import annotations

from tests.unit.testing.histories import begun, completed, created, read, started
from treadle.model import events as e
from treadle.model.errors import Error
from treadle.model.ids import GroupId, TokenId
from treadle.model.states import Waiting
from treadle.testing.scenario.log import detail, render, short_type
from treadle.testing.scenario.parse_expect import EVENT_TYPES


def test_columns_are_aligned_and_an_event_is_one_line() -> None:
    lines = render(
        read(
            started(1_000),
            created(1, "ask"),
            *begun(1),
            created(2, "judge", "root.ask.0", ((1, 0),)),
            e.TokenWaiting(0, 1_250, TokenId(2), Waiting.SIBLINGS, awaiting=2),
        ),
        1_000,
    )
    assert len(lines) == 7
    assert lines[0].split() == ["#", "ms", "event", "visit", "path", "detail"]
    assert lines[6].split() == [
        "6",
        "250",
        "waiting",
        "2",
        "judge[0]",
        "root.ask.0",
        "for",
        "siblings",
        "awaiting",
        "2",
    ]
    column = lines[0].index("path")
    assert lines[2][column:].startswith("root") and lines[5][column:].startswith("root.ask.0")


def test_a_long_detail_does_not_break_the_table() -> None:
    lines = render(read(started(), created(1, "ask"), completed(1, {"text": "x" * 5_000})), 0)
    assert max(map(len, lines)) < 200
    assert lines[3].endswith("…"), "a cut is marked"


def test_nothing_is_cut_that_is_not_asked_for_and_never_an_error() -> None:
    error = Error("TASK_FAILED", "y" * 5_000)
    failed = read(started(), created(1, "ask"), *begun(1), e.TokenFailed(0, 0, TokenId(1), error))
    assert "y" * 5_000 in render(failed, 0)[-1]
    whole = render(read(started(), created(1, "ask"), completed(1, {"text": "x" * 5_000})), 0, None)
    assert "x" * 5_000 in whole[3]


def test_types_are_short_and_still_apart() -> None:
    assert short_type("token.dispatched") == "dispatched"
    assert len({short_type(kind) for kind in EVENT_TYPES}) == len(EVENT_TYPES)


def test_a_join_says_who_arrived_and_what_it_wrote() -> None:
    fired = e.JoinFired(1, 0, "decide", GroupId(1), arrived=2, total=3, writes=[(("state", "votes"), [1, 2])])
    assert detail(fired) == "→ decide  group 1  2 arrived, 0 failed of 3  state.votes=[1,2]"


def test_work_that_was_given_back_is_told_from_work_that_was_lost() -> None:
    assert detail(e.TokenDispatched(0, 0, TokenId(1), 1, None, "gpu", 1)).endswith("recovery 1")
    assert detail(e.TokenDispatched(0, 0, TokenId(1), 1, None, "gpu", 1, True)).endswith("recovery 1, forgiven")
