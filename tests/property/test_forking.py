"""Forks of random runs at random points (6.3): they begin consistent, go on to an end, and leave the run they come from
as it was. What had returned is never executed again; with the same outcomes a fork ends as the run did."""

from __future__ import annotations

from random import Random

from tests.driving import Driven, graph_of, problems
from tests.property.playing import disturb, fixed_seeds, holds, pay_debts, seeds, started, told
from tests.property.test_oracle_scope import INPUT, Sketch, play
from treadle.kernel.evolve import replay
from treadle.model import events as e
from treadle.model.codec import pack_events
from treadle.model.ids import RunId, TokenId
from treadle.model.states import RunStatus, Waiting

FORK = RunId("fork-1")
AGAIN = (e.RunResumed, e.TokenRetryScheduled, e.RunCompensating)


def returned(history: list[e.Event]) -> set[TokenId]:
    """Visits that have ended, or have brought their result to a join."""
    found: set[TokenId] = set()
    for event in history:
        if isinstance(event, e.TokenCompleted | e.TokenFailed | e.TokenTimedOut | e.TokenCancelled):
            found.add(event.token)
        elif isinstance(event, e.TokenWaiting):
            (found.add if event.reason is Waiting.SIBLINGS else found.discard)(event.token)
        elif isinstance(event, e.TokenRetryScheduled | e.TokenJumped):
            found.discard(event.token)
    return found


def test_a_fork_of_any_run_at_any_point_is_consistent_and_leaves_the_run_alone() -> None:
    for seed in seeds(150):
        random = Random(seed)
        origin = started(random)
        disturb(origin, random, lambda _driven, _command: None)
        before = pack_events(origin.history)
        point = random.choice(origin.ends)
        origin.now += random.choice([0, 0, 500])
        forked, decision = origin.fork(FORK, at=point)
        assert pack_events(origin.history) == before, f"seed {seed}: the run has changed"
        if decision.rejection is not None:
            past = replay(origin.graph, origin.history[:point])
            assert past.status is RunStatus.COMPENSATING, told(origin, [f"seed {seed}: {decision.rejection}"])
            continue
        found = problems(forked)
        assert not found, told(forked, [f"seed {seed}, point {point}", *found])
        assert decision.cuts == [end for end in origin.ends if end <= point]
        if not forked.ended:
            pay_debts(forked, random, holds)
        assert replay(forked.graph, forked.history) == forked.state, f"seed {seed}: folding gives another state"


def test_what_had_returned_is_never_executed_again_in_a_fork() -> None:
    for seed in seeds(100):
        random = Random(seed)
        origin = started(random)
        disturb(origin, random, lambda _driven, _command: None)
        point = random.choice(origin.ends)
        forked, decision = origin.fork(FORK, at=point)
        if decision.rejection is not None or forked.ended:
            continue
        pay_debts(forked, random, lambda _driven, _command: None)
        if any(isinstance(event, AGAIN) for event in forked.history[point:]):
            continue  # an operator, or an undoing, may execute it again
        done = returned(forked.history[:point])
        again = [e for e in forked.history[point:] if e.type == "token.dispatched" and e.token in done]  # type: ignore[attr-defined]
        assert not again, told(forked, [f"seed {seed}: executed again: {again}"])


def test_a_fork_without_changes_and_with_the_same_outcomes_ends_as_the_run_did() -> None:
    for seed in fixed_seeds(250):
        random = Random(seed)
        sketch = Sketch(random)
        sketch.whole()
        origin = Driven(graph_of(sketch.document)).start(INPUT)
        play(origin, random)
        forked, decision = origin.fork(FORK, at=random.randint(1, len(origin.history)))
        assert decision.rejection is None, decision.rejection
        if not forked.ended:
            play(forked, random)
        assert forked.state.status is origin.state.status, told(forked, [f"seed {seed}"])
        assert forked.state.output == origin.state.output, told(forked, [f"seed {seed}"])
        assert forked.state.context() == origin.state.context(), told(forked, [f"seed {seed}"])
