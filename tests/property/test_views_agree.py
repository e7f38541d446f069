"""What is shown of a run agrees with what the engine believes of it, at every event of any history."""

from __future__ import annotations

from copy import deepcopy
from random import Random
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tests.driving import Driven
from tests.property.playing import disturb, examples, pay_debts, started, told
from treadle.kernel.evolve import evolve, replay
from treadle.kernel.lifecycle import LIVE
from treadle.kernel.standing import unspawned
from treadle.kernel.state import ENDED, RunState
from treadle.runtime.view.detail import counts_of, waits_of
from treadle.runtime.view.difference import difference_of
from treadle.runtime.view.groups import row_of_group
from treadle.runtime.view.readings import RunReading
from treadle.runtime.view.snapshot import snapshot_of
from treadle.runtime.view.waits import reason_of

Json = Any
randoms = st.randoms(use_true_random=False)


def played(random: Random) -> Driven:
    driven = started(random)
    disturb(driven, random, lambda _driven, _command: None)
    if random.random() < 0.5:
        pay_debts(driven, random, lambda _driven, _command: None)
    return driven


@examples(200)
@given(randoms)
def test_the_log_of_visits_agrees_with_the_state_after_every_event(random: Random) -> None:
    driven = played(random)
    reading = RunReading(driven.graph)
    for event in driven.history:
        reading.apply([event])
        state, log = reading.state, reading.log
        live = {t.id: (t.state, reason_of(t), t.attempts) for t in state.tokens.values() if t.state in LIVE}
        shown = {v.visit: (v.status, _reason(v), v.attempts) for v in log.visits.values() if v.live}
        assert live == shown, told(driven, [f"at event {event.seq}"])
        ended = {v.visit: v.status for v in log.visits.values() if not v.live}
        assert ended == {n + 1: ENDED[code] for n, code in enumerate(state.ended) if code}, told(driven, [])
        assert sum(counts_of(state).values()) == len(log.visits)


def _reason(visit: Any) -> Any:
    return "queue" if visit.status == "dispatched" else visit.waiting


@examples(200)
@given(randoms)
def test_the_groups_shown_have_the_failed_branches_of_the_state(random: Random) -> None:
    check_groups(played(random))


def check_groups(driven: Driven) -> None:
    """The groups shown, at every event of a history."""
    reading = RunReading(driven.graph)
    for event in driven.history:
        reading.apply([event])
        for identity, group in reading.state.groups.items():
            record = reading.log.groups[identity]
            assert set(record.failed) == set(group.failed), told(driven, [f"group {identity} at event {event.seq}"])
            row = row_of_group(reading, record)
            assert (row.total, row.open) == (group.total, group.open)
            assert row.arrived + row.failed + row.missing + row.ended == row.total
            assert min(row.arrived, row.failed, row.live, row.missing, row.ended) >= 0
            held = {b for site in group.sites for b in site.waiting if b not in group.failed}
            assert held <= set(record.arrived), told(driven, [f"group {identity} at event {event.seq}"])
            if all(site.status == "open" for site in group.sites):  # no arrival was used or absorbed
                shown = set(record.arrived) - set(record.failed)
                assert shown == held, told(driven, [f"group {identity} at event {event.seq}"])
            assert unspawned(group) <= row.missing


@examples(150)
@given(randoms)
def test_every_wait_says_what_would_end_it(random: Random) -> None:
    driven = started(random)
    reading = RunReading(driven.graph)

    def look(_driven: Driven, _command: Any) -> None:
        if len(driven.history) == reading.seq:
            return
        reading.apply(driven.history[reading.seq :])
        waits, more = waits_of(reading)
        assert not more
        waiting = {t.id for t in reading.state.tokens.values() if t.state in LIVE and reason_of(t) is not None}
        assert {wait.visit for wait in waits if wait.visit} == waiting
        for wait in waits:
            msgspec.json.encode(wait)
            assert wait.ends_by, told(driven, [f"visit {wait.visit} waits for {wait.awaits}"])

    disturb(driven, random, look)


@examples(100)
@given(randoms)
def test_a_state_shown_is_the_same_however_it_was_folded(random: Random) -> None:
    driven = played(random)
    state = RunState(driven.graph)
    for length, event in enumerate(driven.history, 1):
        evolve(state, event)
        if random.random() < 0.3:
            assert snapshot_of(state, event.at) == snapshot_of(replay(driven.graph, driven.history[:length]), event.at)


@examples(100)
@given(randoms)
def test_a_difference_applied_to_the_first_state_gives_the_second(random: Random) -> None:
    driven = played(random)
    begin, end = sorted(random.choices(range(1, len(driven.history) + 1), k=2))
    before = snapshot_of(replay(driven.graph, driven.history[:begin]), 0)
    after = snapshot_of(replay(driven.graph, driven.history[:end]), 0)
    changed = msgspec.to_builtins(difference_of(before, after))
    made = _applied(msgspec.to_builtins(before), changed)
    wanted = msgspec.to_builtins(after)
    for part in ("status", "output", "error", *_KEYS):
        assert made[part] == wanted[part], told(driven, [f"{part} from {begin} to {end}"])
    assert _scopes(made) == _scopes(wanted), told(driven, [f"data from {begin} to {end}"])


_KEYS = {"visits": "visit", "groups": "group", "joins": "join", "gates": "visit", "timers": "timer"}


def _applied(state: dict[str, Json], changed: dict[str, Json]) -> dict[str, Json]:
    made = deepcopy(state)
    for one in changed["run_fields"]:
        made[one["field"]] = one["to"]
    for part, key in _KEYS.items():
        gone = {each[key] for each in changed[part]["removed"]}
        made[part] = [each for each in made[part] if each[key] not in gone] + changed[part]["added"]
        for one in changed[part]["changed"]:
            for each in made[part]:
                if str(each[key]) == one["ref"]:
                    each[one["field"]] = one["to"]
        made[part].sort(key=lambda each: _place(each, key))
    for one in changed["data"]:
        _write(made, one)
    return made


def _place(each: dict[str, Json], key: str) -> Any:
    if key != "join":
        return each[key]
    return (each["group"] is None, each["group"] or 0, 0 if each["group"] else each["join"])


def _write(made: dict[str, Json], one: dict[str, Json]) -> None:
    place = (one["group"], one["branch"])
    scopes = [made["scope"], *made["branches"]]
    scope = next((each for each in scopes if (each["group"], each["branch"]) == place), None)
    if scope is None:
        scope = {"group": place[0], "branch": place[1], "state": {}, "output": {}, "nodes": {}}
        made["branches"].append(scope)
    *path, last = [step.replace("~1", "/").replace("~0", "~") for step in one["place"].split("/")[1:]]
    here = scope
    for step in path:
        here = here[step]
    if one["change"] == "removed":
        here.pop(last)
    else:
        here[last] = one["after"]


def _scopes(state: dict[str, Json]) -> dict[Any, Json]:
    """By place; an empty scope is no scope."""
    found = {(each["group"], each["branch"]): each for each in [state["scope"], *state["branches"]]}
    return {place: each for place, each in found.items() if each["state"] or each["output"] or each["nodes"]}
