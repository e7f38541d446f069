"""Random graphs under random scripts: what must hold between two commands holds, and every run can be brought to its
end."""

from __future__ import annotations

from collections import Counter
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from tests.driving import Driven
from tests.property.playing import disturb, examples, holds, pay_debts, seeds, started, told
from treadle.model import events as e
from treadle.model.states import RUN_ENDED

randoms = st.randoms(use_true_random=False)

ENDS = {"token.completed", "token.failed", "token.timed_out", "token.cancelled"}
DECIDED = {"join.fired", "join.failed", "join.dead"}


@examples(700)
@given(randoms)
def test_every_invariant_holds_after_every_command(random: Random) -> None:
    driven = started(random)
    holds(driven, driven.commands[0][1])
    disturb(driven, random, holds)


@examples(500)
@given(randoms)
def test_a_run_whose_debts_are_all_paid_comes_to_its_end(random: Random) -> None:
    driven = started(random)
    disturb(driven, random, lambda _driven, _command: None)
    pay_debts(driven, random, holds)
    assert driven.state.status in RUN_ENDED, told(
        driven, [f"nobody owes the run anything and it is {driven.state.status}"]
    )
    found = audit(driven)
    assert not found, told(driven, found)


def test_large_runs_keep_every_invariant_and_end() -> None:
    for seed in seeds(1500):
        random = Random(seed)
        driven = started(random)
        disturb(driven, random, holds)
        pay_debts(driven, random, holds)
        ended = [] if driven.state.status in RUN_ENDED else [f"the run hangs: {driven.state.status}"]
        found = [*ended, *audit(driven)]
        assert not found, told(driven, [f"seed {seed}", *found])


def audit(driven: Driven) -> list[str]:
    """What a whole history must show, read from the events alone."""
    found = [f"event {n} has number {event.seq}" for n, event in enumerate(driven.history, 1) if event.seq != n]
    joins = Counter((event.group, event.target) for event in driven.history if event.type in DECIDED and event.group)  # type: ignore[attr-defined]
    joins.subtract((event.group, event.target) for event in driven.history if isinstance(event, e.JoinReopened))
    found += [
        f"the join of group {group} at {target} was decided {n} times" for (group, target), n in joins.items() if n > 1
    ]
    found += _visits(driven)
    owed = {"attempts": driven.outside.attempts, "gates": driven.outside.gates, "timers": driven.outside.timers}
    found += [f"the run is over and the world still has {name} {value}" for name, value in owed.items() if value]
    return found


BACK = e.TokenRetryScheduled | e.TokenWaiting | e.TokenSkipped | e.TokenJumped
"""Events by which an operator brings back a visit that had ended."""


def _visits(driven: Driven) -> list[str]:
    """Every visit that was created has ended, once more than an operator's retry has brought it back."""
    live: Counter[int] = Counter()
    for event in driven.history:
        token = getattr(event, "token", None) or 0
        if isinstance(event, e.TokenCreated):
            live[token] += 1
        elif event.type in ENDS and token:
            live[token] -= 1
        elif isinstance(event, BACK) and token and not live[token]:
            live[token] += 1
    return [f"visit {token} is left {balance} times" for token, balance in sorted(live.items()) if balance]
