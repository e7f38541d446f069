"""Schedules: their fields, and the check of a schedule before it is stored.

Owns the fields and their meaning. Promises that all problems of a schedule are reported at once. The engine checks
whether its workflow exists; `times` computes the due times; `plan` decides what to do about them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Literal, get_args

import msgspec
from msgspec import Struct, field

from treadle.actions.plain import NotPlain, plain
from treadle.errors import DefinitionError
from treadle.expression.names import name_problem
from treadle.runtime.schedule.times import cron_complaint, zone_of

Json = Any
Overlap = Literal["skip", "queue", "allow", "cancel_previous"]
CatchUp = Literal["none", "last", "all"]

KIND = "schedule"
"""The kind of the documents that hold schedules."""
EVERY_MIN_MS = 1_000
"""Work that must happen more often belongs in a loop inside a run."""
JITTER_MAX_MS = 86_400_000


class Schedule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Start `workflow` at the times of `cron` in `timezone`, or every `every_ms` since 1970."""

    name: str
    workflow: str
    cron: str | None = None
    """Five fields: minute, hour, day of month, month, day of week; or @hourly, @daily, @weekly, @monthly, @yearly."""
    every_ms: int | None = None
    timezone: str = "UTC"
    input: dict[str, Json] = field(default_factory=dict)
    overlap: Overlap = "skip"
    """If an earlier run has not ended when the next is due: leave the next out, start it afterwards, start it anyway,
    or cancel the earlier run."""
    catch_up: CatchUp = "last"
    """Which due times are started that passed while no engine was running: none, the newest, or all of them (at most
    `CATCH_UP_MAX`)."""
    jitter_ms: int = 0
    """Each start is delayed by a fixed share of this, different for every schedule and time, so that many schedules do
    not start at once."""
    paused: bool = False


class ScheduleProblem(Struct, frozen=True):
    """One thing to change about a schedule."""

    field: str
    message: str
    hint: str | None = None

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" + (f" ({self.hint})" if self.hint else "")


def read_schedule(value: Json) -> Schedule:
    """A schedule from plain JSON. Raises DefinitionError with every problem."""
    problems, known = _read_fields(value)
    named = {"name", "workflow"} - known.keys() - {problem.field for problem in problems}
    problems += [ScheduleProblem(missing, "is required") for missing in sorted(named)]
    draft = Schedule(**{"name": "unnamed", "workflow": "unnamed", **known})
    wrong = {problem.field for problem in problems}
    problems += [problem for problem in check_schedule(draft) if problem.field not in wrong]
    if problems:
        raise DefinitionError(problems)
    return draft


def check_schedule(schedule: Schedule) -> list[ScheduleProblem]:
    """Every problem of a schedule; empty if it can be stored."""
    return [*_check_words(schedule), *_check_times(schedule)]


def _read_fields(value: Json) -> tuple[list[ScheduleProblem], dict[str, Any]]:
    if not isinstance(value, Mapping):
        return [ScheduleProblem("schedule", f"is an object, not {type(value).__name__}")], {}
    types = {each.name: each.type for each in msgspec.structs.fields(Schedule)}
    problems: list[ScheduleProblem] = []
    known: dict[str, Any] = {}
    for name, part in value.items():
        if name not in types:
            close = get_close_matches(str(name), types, n=1)
            problems.append(ScheduleProblem(str(name), "is unknown", f"did you mean `{close[0]}`?" if close else None))
            continue
        try:
            known[name] = msgspec.convert(part, types[name])
        except msgspec.ValidationError as problem:
            problems.append(ScheduleProblem(name, str(problem)))
    return problems, known


def _check_words(schedule: Schedule) -> list[ScheduleProblem]:
    found = [
        ScheduleProblem(name, "is required")
        for name, text in (("name", schedule.name), ("workflow", schedule.workflow))
        if not text.strip()
    ]
    if (hidden := name_problem(schedule.name)) is not None:
        found.append(ScheduleProblem("name", hidden))
    try:
        plain(schedule.input)
    except NotPlain as problem:
        found.append(ScheduleProblem("input", str(problem)))
    for name, value, allowed in (
        ("overlap", schedule.overlap, get_args(Overlap)),
        ("catch_up", schedule.catch_up, get_args(CatchUp)),
    ):
        if value not in allowed:
            found.append(ScheduleProblem(name, f"{value!r} is none of {', '.join(allowed)}"))
    if not 0 <= schedule.jitter_ms <= JITTER_MAX_MS:
        found.append(ScheduleProblem("jitter_ms", f"is between 0 and {JITTER_MAX_MS}, a day"))
    elif schedule.every_ms is not None and schedule.jitter_ms >= schedule.every_ms > 0:
        found.append(ScheduleProblem("jitter_ms", "is shorter than `every_ms`, or starts would overtake each other"))
    return found


def _check_times(schedule: Schedule) -> list[ScheduleProblem]:
    found: list[ScheduleProblem] = []
    if (schedule.cron is None) == (schedule.every_ms is None):
        found.append(ScheduleProblem("cron", "either `cron` or `every_ms` says when, and not both"))
    if schedule.cron is not None and (complaint := cron_complaint(schedule.cron)) is not None:
        hint = "five fields: minute, hour, day of month, month, day of week; `30 6 * * MON-FRI`"
        found.append(ScheduleProblem("cron", complaint, hint))
    if schedule.every_ms is not None and schedule.every_ms < EVERY_MIN_MS:
        found.append(ScheduleProblem("every_ms", f"is at least {EVERY_MIN_MS}", "loop inside a run instead"))
    if zone_of(schedule.timezone) is None:
        found.append(
            ScheduleProblem("timezone", f"{schedule.timezone!r} is no time zone known here", _zone_hint(schedule))
        )
    return found


def _zone_hint(schedule: Schedule) -> str:
    from zoneinfo import available_timezones  # reads a folder: only after a mistyped name

    close = get_close_matches(schedule.timezone, available_timezones(), n=1)
    return f"did you mean `{close[0]}`?" if close else "a name such as `Europe/Berlin`"


def hash_of(body: Json) -> str:
    """A digest of a document's content that does not depend on the order of its keys."""
    return hashlib.sha256(msgspec.json.encode(body, order="sorted")).hexdigest()


def tag_of(name: str) -> str:
    """The tag of the runs of a schedule."""
    return f"schedule:{name}"
