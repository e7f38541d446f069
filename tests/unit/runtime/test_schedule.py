"""Schedules: what is wrong with one, when it is due on every kind of day, and what is done about it."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.errors import DefinitionError
from treadle.runtime.schedule.definition import Schedule, check_schedule, read_schedule
from treadle.runtime.schedule.times import CATCH_UP_MAX, missed, next_due, occurrence_key, starts_at

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
BERLIN, NEW_YORK = "Europe/Berlin", "America/New_York"


def schedule(cron: str | None = None, timezone: str = "UTC", **fields: Any) -> Schedule:
    return Schedule(name="nightly", workflow="report", cron=cron, timezone=timezone, **fields)


def ms(text: str, timezone: str = "UTC") -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(timezone)).timestamp()) * 1000


def between(one: Schedule, start: str, end: str) -> list[str]:
    """Local times with offset of every occurrence in between, found forwards."""
    zone, found = ZoneInfo(one.timezone), []
    at, last = ms(start, one.timezone), ms(end, one.timezone)
    while (due := next_due(one, at)) is not None and due <= last:
        found.append(datetime.fromtimestamp(due / 1000, zone).strftime("%H:%M%z"))
        at = due
    assert [
        datetime.fromtimestamp(due / 1000, zone).strftime("%H:%M%z") for due in _backwards(one, start, end)
    ] == found
    return found


def _backwards(one: Schedule, start: str, end: str) -> list[int]:
    return missed(one, ms(start, one.timezone), ms(end, one.timezone)).dues


def problems(value: Any) -> list[str]:
    with pytest.raises(DefinitionError) as caught:
        read_schedule(value)
    return [str(problem) for problem in caught.value.problems]


def test_a_schedule_is_read_from_json() -> None:
    given = {"name": "n", "workflow": "w", "cron": "0 6 * * MON-FRI", "timezone": BERLIN, "overlap": "queue"}
    assert read_schedule(given) == Schedule(**given)  # type: ignore[arg-type]
    assert check_schedule(read_schedule(given)) == []


def test_everything_wrong_with_a_schedule_is_said_at_once() -> None:
    found = problems(
        {
            "workflow": "w",
            "crn": "* * * * *",
            "cron": "61 * * * *",
            "every_ms": 5,
            "timezone": "Europe/Berln",
            "overlap": "maybe",
            "catch_up": "some",
            "jitter_ms": -1,
        }
    )
    assert [text.partition(":")[0] for text in found] == [
        "crn",
        "overlap",
        "catch_up",
        "name",
        "jitter_ms",
        "cron",
        "cron",
        "every_ms",
        "timezone",
    ]
    assert "did you mean `cron`?" in found[0]
    assert "bad minute" in found[6]
    assert "did you mean `Europe/Berlin`?" in found[8]


@pytest.mark.parametrize(
    ("cron", "complaint"),
    [
        ("* * * *", "has 4 fields"),
        ("0 0 0 * * *", "has 6 fields"),
        ("0 24 * * *", "bad hour"),
        ("0 0 30 2 *", "bad day-of-month"),
        ("@fortnightly", "is none of @hourly"),
        ("", "has 0 fields"),
    ],
)
def test_a_bad_cron_expression_is_told_what_is_bad(cron: str, complaint: str) -> None:
    assert complaint in str(check_schedule(schedule(cron))[0])


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({}, "cron"),
        ({"cron": "@daily", "every_ms": 5_000}, "cron"),
        ({"every_ms": 5_000, "jitter_ms": 5_000}, "jitter_ms"),
        ({"cron": "@daily", "overlap": "often"}, "overlap"),
        ({"cron": "@daily", "workflow": " "}, "workflow"),
        ({"cron": "@daily", "timezone": "../etc/passwd"}, "timezone"),
    ],
)
def test_one_mistake_is_one_problem(fields: Any, wrong: str) -> None:
    one = Schedule(**{"name": "n", "workflow": "w", **fields})
    assert [problem.field for problem in check_schedule(one)] == [wrong]


def test_what_is_no_object_is_a_problem() -> None:
    assert "is an object, not list" in problems([])[0]


def test_an_interval_counts_from_1970_and_not_from_whenever_it_was_made() -> None:
    every = schedule(every_ms=10_000)
    assert next_due(every, 0) == 10_000
    assert next_due(every, 9_999) == 10_000
    assert next_due(every, 10_000) == 20_000
    assert missed(every, 5_000, 40_000).dues == [10_000, 20_000, 30_000, 40_000]


@pytest.mark.parametrize(
    ("timezone", "day", "offsets"),
    [(BERLIN, "2026-03-29", ("+0100", "+0200")), (NEW_YORK, "2026-03-08", ("-0500", "-0400"))],
)
def test_a_time_in_the_missing_hour_happens_at_the_first_minute_after_it(
    timezone: str, day: str, offsets: tuple[str, str]
) -> None:
    start, end, after = f"{day} 00:30", f"{day} 06:00", offsets[1]
    assert between(schedule("30 2 * * *", timezone), start, end) == [f"03:00{after}"]
    assert between(schedule("15,30 2 * * *", timezone), start, end) == [f"03:00{after}"]
    assert between(schedule("0 2,3 * * *", timezone), start, end) == [f"03:00{after}"]
    assert between(schedule("0 4 * * *", timezone), start, end) == [f"04:00{after}"]


@pytest.mark.parametrize(("timezone", "day"), [(BERLIN, "2026-03-29"), (NEW_YORK, "2026-03-08")])
def test_a_pattern_has_no_times_in_the_missing_hour_and_none_is_made_up(timezone: str, day: str) -> None:
    found = between(schedule("*/30 * * * *", timezone), f"{day} 01:00", f"{day} 04:00")
    assert [text[:5] for text in found] == ["01:30", "03:00", "03:30", "04:00"]
    assert between(schedule("*/30 2 * * *", timezone), f"{day} 00:00", f"{day} 06:00") == []


AUTUMN = [(BERLIN, "2026-10-25", 2), (NEW_YORK, "2026-11-01", 1)]


@pytest.mark.parametrize(("timezone", "day", "hour"), AUTUMN)
@pytest.mark.parametrize("cron", ["30 {h} * * *", "0,30 {h} * * *", "*/20 {h} * * *", "5 */1 * * *", "15 0-5 * * *"])
def test_a_wall_time_that_comes_twice_happens_once(timezone: str, day: str, hour: int, cron: str) -> None:
    found = between(schedule(cron.format(h=hour), timezone), f"{day} 00:00", f"{day} 06:00")
    assert found
    assert len({text[:5] for text in found}) == len(found)


@pytest.mark.parametrize(("timezone", "day", "hour"), AUTUMN)
def test_a_pattern_for_every_hour_goes_on_through_the_hour_that_comes_twice(timezone: str, day: str, hour: int) -> None:
    one = schedule("*/30 * * * *", timezone)
    found = between(one, f"{day} 00:00", f"{day} 04:00")
    assert [text[:5] for text in found].count(f"0{hour}:30") == 2
    dues = _backwards(one, f"{day} 00:00", f"{day} 04:00")
    assert {later - earlier for earlier, later in pairwise(dues)} == {30 * MINUTE}


@pytest.mark.parametrize(("timezone", "day", "hour"), AUTUMN)
def test_in_the_second_pass_of_an_hour_the_first_is_over(timezone: str, day: str, hour: int) -> None:
    one = schedule(f"30 {hour} * * *", timezone)
    first = ms(f"{day} 0{hour}:30", timezone)
    second_pass = first + 45 * MINUTE
    assert missed(one, first - HOUR, second_pass).dues == [first]
    assert next_due(one, second_pass) == first + DAY + HOUR


CRONS = [
    "30 2 * * *",
    "*/7 * * * *",
    "0 1-4 * * *",
    "15 */2 * * SUN",
    "0 0 1 * *",
    "@hourly",
    "*/20 2,3 * * *",
    "59 23 L * *",
]


@given(
    cron=st.sampled_from(CRONS),
    timezone=st.sampled_from([BERLIN, NEW_YORK, "UTC", "Australia/Lord_Howe", "Asia/Kathmandu"]),
    start=st.datetimes(datetime(2025, 1, 1), datetime(2027, 1, 1)),
    hours=st.integers(0, 80),
)
def test_found_backwards_is_found_forwards(cron: str, timezone: str, start: datetime, hours: int) -> None:
    one = schedule(cron, timezone)
    at = int(start.replace(tzinfo=UTC).timestamp() * 1000)
    end, found, last = at + hours * HOUR, [], at
    while (due := next_due(one, last)) is not None and due <= end:
        assert due > last
        found.append(due)
        last = due
    backwards = missed(one, at, end)
    assert backwards.dues == found[-CATCH_UP_MAX:]
    assert backwards.more == (len(found) > CATCH_UP_MAX)


def test_what_was_missed_is_bounded_however_long_ago_the_last_one_was() -> None:
    passed = missed(schedule("* * * * *"), 0, ms("2026-01-01 00:00"))
    assert len(passed.dues) == CATCH_UP_MAX
    assert passed.more
    assert passed.dues[-1] == ms("2026-01-01 00:00")


def test_jitter_is_a_fixed_share_of_each_occurrence() -> None:
    one = schedule("@hourly", jitter_ms=10 * MINUTE)
    dues = missed(one, 0, 20 * HOUR).dues
    delays = [starts_at(one, due) - due for due in dues]
    assert delays == [starts_at(one, due) - due for due in dues]
    assert all(0 <= delay <= 10 * MINUTE for delay in delays)
    assert len(set(delays)) > 10
    assert starts_at(schedule("@hourly"), HOUR) == HOUR


def test_an_occurrence_has_a_key_of_its_own() -> None:
    assert occurrence_key("nightly", 3_600_000) == "schedule:nightly:3600000"
