"""Due times of schedules: cron in a time zone, and plain intervals. Pure arithmetic on milliseconds since 1970.

When clocks are set forward or back:
  - A wall time happens at most once: in the hour that comes twice, the first time. The exception is a pattern for every
    hour (`*/15 * * * *`, `0 * * * *`): it follows real time and goes on through both, so that no interval doubles.
  - A fixed time (neither minute nor hour begins with `*`) that falls into the skipped hour happens at the first minute
    after it. A pattern has no times in the skipped hour, and none is made up.
Intervals (`every_ms`) count from 1970 in real time and know no time zone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import NamedTuple, Protocol
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

CATCH_UP_MAX = 100
"""Passed times that are looked at one by one: four days of an hourly schedule. Older ones are only known to exist."""
SHIFT_MAX = timedelta(hours=3)
"""More than the clocks of any zone are set at once: the order of wall times and of instants can differ by this much."""
SECOND = timedelta(seconds=1)
FIELDS = 5
MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}


class Timed(Protocol):
    """The fields of a schedule that determine its due times."""

    @property
    def name(self) -> str: ...
    @property
    def cron(self) -> str | None: ...
    @property
    def every_ms(self) -> int | None: ...
    @property
    def timezone(self) -> str: ...
    @property
    def jitter_ms(self) -> int: ...


class Missed(NamedTuple):
    """Times that have passed, oldest first; `more`: there were earlier ones beyond the limit."""

    dues: list[int]
    more: bool


def next_due(schedule: Timed, after_ms: int) -> int | None:
    """The first due time after a moment; None if there is none in the next fifty years."""
    if schedule.every_ms is not None:
        return (after_ms // schedule.every_ms + 1) * schedule.every_ms
    wall = _Wall(schedule)
    best: int | None = None
    for shown in wall.times(wall.shows(after_ms) - wall.shift):
        if best is not None and shown > wall.shows(best) + wall.shift:
            break  # a later wall time cannot be an earlier instant any more
        for due in wall.instants(shown):
            if due > after_ms and (best is None or due < best):
                best = due
    return best


def missed(schedule: Timed, last_ms: int, now_ms: int, limit: int = CATCH_UP_MAX) -> Missed:
    """The due times in (last, now], the newest `limit` of them."""
    if schedule.every_ms is not None:
        latest = now_ms // schedule.every_ms * schedule.every_ms
        counted = range(latest, last_ms, -schedule.every_ms)
        return Missed(list(counted[:limit])[::-1], more=len(counted) > limit)
    wall = _Wall(schedule)
    found: set[int] = set()
    floor = wall.shows(last_ms) - wall.shift
    for shown in wall.times(wall.shows(now_ms) + wall.shift + SECOND, reverse=True):
        if len(found) > limit:
            floor = max(floor, wall.shows(sorted(found)[-limit - 1]) - wall.shift)
        if shown < floor:
            break
        found.update(due for due in wall.instants(shown) if last_ms < due <= now_ms)
    return Missed(sorted(found)[-limit:], more=len(found) > limit)


def starts_at(schedule: Timed, due_ms: int) -> int:
    """The moment an occurrence is started: its due time plus its share of the jitter."""
    if not schedule.jitter_ms:
        return due_ms
    drawn = int.from_bytes(hashlib.sha256(occurrence_key(schedule.name, due_ms).encode()).digest()[:8])
    return due_ms + drawn % (schedule.jitter_ms + 1)


def occurrence_key(name: str, due_ms: int) -> str:
    """The idempotency key of the run that an occurrence starts: however often it is decided, one run starts."""
    return f"schedule:{name}:{due_ms}"


def cron_complaint(text: str) -> str | None:
    """The problem of a cron expression, or None."""
    expression = MACROS.get(text.strip().lower(), text)
    if expression.startswith("@"):
        return f"{text!r} is none of {', '.join(MACROS)}"
    if len(expression.split()) != FIELDS:
        return f"{text!r} has {len(expression.split())} fields"
    try:
        next(CronSim(expression, datetime(2000, 1, 1, tzinfo=UTC)))
    except CronSimError as problem:
        wrong = str(problem)
        return f"{text!r}: {wrong[:1].lower()}{wrong[1:]}"
    except StopIteration:
        return f"{text!r} never comes"
    return None


@lru_cache(maxsize=256)
def zone_of(name: str) -> tzinfo | None:
    """The time zone with that name; None if this machine knows none."""
    if name.upper() == "UTC":
        return UTC  # needs no database
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError):
        return None


class _Wall:
    """The wall clock of a schedule: the time it shows, and the instants at which it shows it.

    cronsim sees wall times only. With time zones of its own it skips times where clocks are set by half an hour.
    """

    def __init__(self, schedule: Timed) -> None:
        assert schedule.cron is not None, "a schedule has `cron` or `every_ms`: check_schedule says so"
        zone = zone_of(schedule.timezone)
        assert zone is not None, "a schedule's time zone exists: check_schedule says so"
        self.zone = zone
        self.expression = MACROS.get(schedule.cron.strip().lower(), schedule.cron)
        minute, hour = self.expression.split()[:2]
        self.every_hour = hour == "*"
        self.fixed = not minute.startswith("*") and not hour.startswith("*")
        self.shift = timedelta() if zone is UTC else SHIFT_MAX

    def shows(self, at_ms: int) -> datetime:
        return datetime.fromtimestamp(at_ms / 1000, self.zone).replace(tzinfo=None, fold=0)

    def times(self, start: datetime, *, reverse: bool = False) -> Iterator[datetime]:
        return CronSim(self.expression, start, reverse=reverse)

    def instants(self, shown: datetime) -> list[int]:
        """No, one or both instants at which the wall clock shows a time: see the module's docstring."""
        first, second = (shown.replace(tzinfo=self.zone, fold=fold) for fold in (0, 1))
        if first.utcoffset() == second.utcoffset():
            return [_ms(first)]
        if self._exists(first):
            return [_ms(first), _ms(second)] if self.every_hour else [_ms(first)]
        while self.fixed and not self._exists(first):
            first += timedelta(minutes=1)
        return [_ms(first)] if self.fixed else []

    def _exists(self, moment: datetime) -> bool:
        return moment.astimezone(UTC).astimezone(self.zone).replace(fold=0) == moment.replace(fold=0)


def _ms(moment: datetime) -> int:
    return round(moment.timestamp()) * 1000
