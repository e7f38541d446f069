"""One falsified history for every rule about an operator's retry: what comes back is too little, too much, or wrong."""

from __future__ import annotations

from tests.driving import TASK
from tests.sim.forgeries import AT, GROUP, ONE, THREE, TWO, Forged, joined, one_arrived
from tests.sim.watching import Watching, changed, renumber, watching, without
from treadle.model import commands as c
from treadle.model import events as e
from treadle.model.effects import Effect
from treadle.model.errors import Error
from treadle.model.ids import TokenId
from treadle.model.states import Waiting

BOOM = Error("BOOM", "boom")


def failed() -> Watching:
    """Of two branches the first has arrived and the second has failed; the join has failed with it, and so has the
    run."""
    return watching(joined(on_branch_failure="fail")).finish(2).do(c.FailAttempt(THREE, 1, BOOM))


def executed_again(events: list[e.Event], _effects: list[Effect]) -> None:
    """What had arrived is not held again, but tried again."""
    place = next(place for place, event in enumerate(events) if isinstance(event, e.TokenWaiting))
    events[place] = e.TokenRetryScheduled(events[place].seq, AT, TWO, 2, AT, None, "operator")


def with_an_inner_join() -> Watching:
    """A branch fails in which another fan-out is under way: the inner join dies with it."""
    nodes = {"a": {}, "b": {}, "l": TASK, "r": TASK, "m": TASK, "z": TASK}
    outer = {"sibling_group": "t", "on_branch_failure": "fail"}
    transitions = [
        {"id": "t", "from": "a", "to": "b", "spawn_count": 1, "sibling_group": "t"},
        {"from": "b", "to": "l"},
        {"id": "u", "from": "b", "to": "r", "spawn_count": 2},
        {"from": "r", "to": "m", "synchronization": {"sibling_group": "u"}},
        {"from": "l", "to": "z", "synchronization": outer},
        {"from": "m", "to": "z", "synchronization": outer},
    ]
    watched = watching({"nodes": nodes, "transitions": transitions})
    left = watched.driven.tokens("l", 0)[0].id
    return watched.do(c.FailAttempt(left, 1, BOOM))


def without_the_inner_join(events: list[e.Event], _effects: list[Effect]) -> None:
    events[:] = [event for event in events if not (isinstance(event, e.JoinReopened) and not event.failure)]
    renumber(events)


REOPENED = [
    Forged("reopened", "had brought [1] and comes back held=False", lambda: failed().do(c.RetryRun(), executed_again)),
    Forged("reopened", "is left behind", lambda: failed().do(c.RetryRun(), without(e.TokenWaiting))),
    Forged("reopened", "went down with 1", lambda: failed().do(c.RetryRun(), without(e.JoinReopened))),
    Forged("reopened", "no failure 999", lambda: failed().do(c.RetryRun(), changed(e.JoinReopened, failure=999))),
    Forged("reopened", "is open, and is reopened", lambda: one_arrived().show(e.JoinReopened(0, AT, "z", GROUP))),
    Forged(
        "reopened",
        "no failure had taken it down",
        lambda: failed().show(e.TokenWaiting(0, AT, TokenId(0), Waiting.SIBLINGS, arrival=99)),
    ),
    Forged(
        "reopened",
        "at m is left behind",
        lambda: with_an_inner_join().do(c.RetryRun(), without_the_inner_join),
    ),
    Forged(
        "lifecycle",
        "is failed and waits for timer",
        lambda: failed().show(e.TokenWaiting(0, AT, THREE, Waiting.TIMER)),
    ),
    Forged(
        "lifecycle",
        "tries again by itself",
        lambda: failed().show(e.TokenRetryScheduled(0, AT, THREE, 2, AT)),
    ),
    Forged(
        "reopened",
        "went down with no failure",
        lambda: (
            one_arrived()
            .do(c.CancelToken(THREE))
            .show(e.TokenRetryScheduled(0, AT, THREE, 2, AT, None, "operator"), cause=c.RetryToken(ONE))
        ),
    ),
]
