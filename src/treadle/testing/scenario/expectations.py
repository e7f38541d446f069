"""Checks an expectation against what was observed; each difference is one line for a person.

Owns the meaning of every key of `expect`. Promises that only what is given is checked, and that all
differences are reported at once. Must not look behind `Observed`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from treadle.model.events import WARNINGS
from treadle.testing.scenario.comparing import Difference, Differences, matches, partial_keys, shown
from treadle.testing.scenario.entity_expected import entity_differences
from treadle.testing.scenario.form import ErrorExpected, Expectation, WaitExpected
from treadle.testing.scenario.observed import Observed, ObservedRun
from treadle.testing.world.address import Address, parse_address
from treadle.testing.world.projection import Visit

Json = Any


def differences(expectation: Expectation, observed: Observed) -> list[Difference]:
    """Everything in which the world is not as expected."""
    found: list[Difference] = []
    for key, check in _CHECKS.items():
        value = getattr(expectation, key)
        if value is not None:
            found += check(value, observed)
    return found


def _status(expected: str, observed: Observed) -> Differences:
    projection = observed.run.projection
    if projection.status.value != expected:
        why = f" ({projection.error.kind}: {projection.error.message})" if projection.error else ""
        yield Difference("status", expected, projection.status.value + why)


def _error(expected: ErrorExpected, observed: Observed) -> Differences:
    error = observed.run.projection.error
    if error is None:
        yield Difference("error", expected.kind or shown(expected.message_contains), "no error")
        return
    if expected.kind is not None and error.kind != expected.kind:
        yield Difference("error.kind", expected.kind, f"{error.kind} ({error.message})")
    if expected.message_contains is not None and expected.message_contains not in error.message:
        yield Difference("error.message", f"something with {shown(expected.message_contains)}", shown(error.message))


def _visits(expected: dict[str, int], observed: Observed) -> Differences:
    listed: set[tuple[str, bool]] = set()
    for text, count in expected.items():
        found = [visit for _run, visit in observed.visits(text) if visit.begun is not None]
        address = parse_address(text, observed.run.refs) or Address(text)
        listed.add((address.node, address.compensation))
        if len(found) != count:
            yield Difference(f"visits.{text}", str(count), str(len(found)))
    rest = Counter(
        visit.name for visit in observed.run.projection.begun() if (visit.node, visit.compensation) not in listed
    )
    for name, count in rest.items():
        yield Difference(f"visits.{name}", "none (not listed)", str(count))


def _attempts(expected: dict[str, int], observed: Observed) -> Differences:
    for text, count in expected.items():
        visit = _latest(text, observed)
        if visit is None or visit.attempts != count:
            yield Difference(f"attempts.{text}", str(count), str(visit.attempts) if visit else "no such visit")


def _order(expected: list[str], observed: Observed) -> Differences:
    begun = observed.run.projection.begun()
    wanted = [parse_address(text, observed.run.refs) for text in expected]
    fits = len(begun) == len(wanted) and all(
        address is not None and visit.fits(address) for visit, address in zip(begun, wanted, strict=True)
    )
    if not fits:
        yield Difference("order", shown(expected), shown([visit.name for visit in begun]))


def _paths(expected: dict[str, list[str]], observed: Observed) -> Differences:
    for text, paths in expected.items():
        actual = {visit.path for _run, visit in observed.visits(text) if visit.begun is not None}
        if actual != set(paths):
            yield Difference(f"paths.{text}", shown(sorted(paths)), shown(sorted(actual)))


def _state(expected: Json, observed: Observed) -> Differences:
    yield from _each_key("state", expected, observed.run.context()["state"])


def _output(expected: Json, observed: Observed) -> Differences:
    run = observed.run
    actual = run.projection.output if run.projection.output is not None else run.context()["output"]
    yield from _each_key("output", expected, actual)


def _each_key(what: str, expected: Json, actual: Json) -> Differences:
    """Each given key equals exactly; what is not an object is compared whole."""
    partial = partial_keys(expected)
    given = partial if partial is not None else expected
    if not isinstance(given, dict) or not isinstance(actual, dict | None):
        if not matches(expected, actual):
            yield Difference(what, shown(expected), shown(actual))
        return
    for key, value in given.items():
        found = (actual or {}).get(key)
        if not matches(value, found):
            yield Difference(f"{what}.{key}", shown(value), shown(found))


def _node_output(expected: dict[str, Json], observed: Observed) -> Differences:
    for text, value in expected.items():
        visit = _latest(text, observed)
        if visit is None or not matches(value, visit.output):
            yield Difference(f"node_output.{text}", shown(value), shown(visit.output) if visit else "no such visit")


def _waiting(expected: list[WaitExpected], observed: Observed) -> Differences:
    run = observed.run
    waiting = run.waiting()
    missed = [wait for wait in expected if not any(_waits(wait, visit, run) for visit, _reason in waiting)]
    extra = [visit for visit, _reason in waiting if not any(_waits(wait, visit, run) for wait in expected)]
    if missed or extra:
        wanted = sorted({_show_wait(wait.node, wait.reason, wait.awaiting) for wait in expected})
        actual = sorted({_show_wait(str(visit), reason, run.awaiting(visit)) for visit, reason in waiting})
        yield Difference("waiting", ", ".join(wanted) or "nothing", ", ".join(actual) or "nothing")


def _waits(wait: WaitExpected, visit: Visit, run: ObservedRun) -> bool:
    address = parse_address(wait.node, run.refs)
    return (
        address is not None
        and visit.fits(address)
        and visit.waiting == wait.reason
        and (wait.awaiting is None or run.awaiting(visit) == wait.awaiting)
    )


def _show_wait(node: str, reason: str, awaiting: int | None) -> str:
    return f"{node} for {reason}" + (f" (awaiting {awaiting})" if awaiting is not None else "")


def _tokens(expected: dict[str, int], observed: Observed) -> Differences:
    actual = Counter(visit.state.value for visit in observed.run.projection.visits.values())
    for state, count in expected.items():
        if actual[state] != count:
            yield Difference(f"tokens.{state}", str(count), str(actual[state]))


def _types(observed: Observed) -> list[str]:
    return [event.type for event in observed.run.projection.events]


def _events(expected: list[str], observed: Observed) -> Differences:
    history = iter(_types(observed))
    for position, wanted in enumerate(expected):
        if wanted not in history:  # consumes the iterator up to the match: a subsequence
            place = f"after {' → '.join(expected[:position])}" if position else "in the history"
            yield Difference(f"events[{position}]", f"{wanted} {place}", "none there")
            return


def _no_events(expected: list[str], observed: Observed) -> Differences:
    counts = Counter(_types(observed))
    for kind in expected:
        if counts[kind]:
            yield Difference(f"no_events.{kind}", "none", str(counts[kind]))


def _event_counts(expected: dict[str, int], observed: Observed) -> Differences:
    counts = Counter(_types(observed))
    for kind, count in expected.items():
        if counts[kind] != count:
            yield Difference(f"event_counts.{kind}", str(count), str(counts[kind]))


def _warnings(expected: list[str], observed: Observed) -> Differences:
    actual = set(_types(observed)) & WARNINGS
    if actual != set(expected):
        yield Difference("warnings", shown(sorted(set(expected))), shown(sorted(actual)))


def _elapsed(expected: int, observed: Observed) -> Differences:
    projection = observed.run.projection
    began = projection.forked or projection.started
    assert began is not None
    until = projection.ended_at if projection.ended_at is not None else observed.now
    if until - began.at != expected:
        yield Difference("elapsed_ms", str(expected), str(until - began.at))


def _runs(expected: dict[str, Expectation], observed: Observed) -> Differences:
    for name, expectation in expected.items():
        runs = observed.named.get(name, ())
        if not runs:
            yield Difference(f"runs.{name}", "a run", f"none of {', '.join(sorted(observed.named))}")
        for run in runs:
            for difference in differences(expectation, observed.focused(run)):
                yield difference.within(f"runs.{name}")


def _dispatches(expected: dict[str, int], observed: Observed) -> Differences:
    for text, count in expected.items():
        actual = sum(run.dispatches(visit) for run, visit in observed.visits(text))
        if actual != count:
            yield Difference(f"dispatches.{text}", str(count), str(actual))


def _queued(expected: list[str], observed: Observed) -> Differences:
    actual = observed.queue()
    if actual != expected:
        yield Difference("queued", shown(expected), shown(actual))


def _spent(expected: dict[str, float], observed: Observed) -> Differences:
    actual = observed.run.spent()
    for part, amount in expected.items():
        if actual.get(part, 0) != amount:
            yield Difference(f"spent.{part}", shown(amount), shown(actual.get(part, 0)))


def _latest(text: str, observed: Observed) -> Visit | None:
    found = [visit for _run, visit in observed.visits(text)]
    return found[-1] if found else None


_CHECKS: dict[str, Callable[[Any, Observed], Differences]] = {
    "status": _status,
    "error": _error,
    "visits": _visits,
    "attempts": _attempts,
    "order": _order,
    "paths": _paths,
    "state": _state,
    "output": _output,
    "node_output": _node_output,
    "waiting": _waiting,
    "tokens": _tokens,
    "events": _events,
    "no_events": _no_events,
    "event_counts": _event_counts,
    "warnings": _warnings,
    "elapsed_ms": _elapsed,
    "runs": _runs,
    "entity": entity_differences,
    "dispatches": _dispatches,
    "queued": _queued,
    "spent": _spent,
}
