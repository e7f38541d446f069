"""Nested blocks of every kind, answered in a random order, end as the blocks say: the run completes or fails, and END
is reached exactly once or never."""

from __future__ import annotations

from hashlib import sha256
from random import Random

from tests.driving import Driven, graph_of
from tests.property.blocks import INPUT, Blocks, Branch, Outcome
from tests.property.playing import fixed_seeds, holds, told
from treadle.kernel.state import Token
from treadle.model import commands as c
from treadle.model import events as e
from treadle.model.errors import Error
from treadle.model.states import RunStatus, TokenState

STEPS_MAX = 3_000


def test_nested_blocks_end_as_their_branches_say() -> None:
    completed = 0
    for seed in fixed_seeds(1_000):
        random = Random(seed)
        document, leaves = Blocks(random).document()
        outcome = luck(seed, random.choice([0, 0.1, 0.3, 0.5]))
        driven = Driven(graph_of(document)).start(INPUT)
        answer_everything(driven, random, outcome)
        expected = leaves((), outcome)
        completed += expected
        reached = [event for event in driven.history if isinstance(event, e.TokenCreated) and event.node == "END"]
        got = (driven.state.status is RunStatus.COMPLETED, len(reached))
        assert got == (expected, int(expected)), told(
            driven, [f"seed {seed}: completed and visits of END are {got}, the blocks say {expected}"]
        )
    assert completed, "nothing ever succeeds: a hollow pass"


def luck(seed: int, risk: float) -> Outcome:
    """Tasks fail by chance, but always the same way in the same branch."""

    def outcome(node: str, branch: Branch) -> bool:
        drawn = sha256(f"{seed}/{node}/{branch}".encode()).digest()[:4]
        return int.from_bytes(drawn, "big") / 2**32 >= risk

    return outcome


def answer_everything(driven: Driven, random: Random, outcome: Outcome) -> None:
    """Somebody answers for one visit after another, with pauses and transient errors in between."""
    for _ in range(STEPS_MAX):
        if driven.ended:
            return
        command = next_command(driven, random, outcome)
        assert command is not None, told(driven, ["the run hangs: nobody owes it anything"])
        driven.do(command)
        holds(driven, command)
    raise AssertionError(told(driven, [f"not over after {STEPS_MAX} commands"]))


def next_command(driven: Driven, random: Random, outcome: Outcome) -> c.Command | None:
    state = driven.state
    executing = [t for t in state.tokens.values() if t.state is TokenState.EXECUTING and t.id not in state.deferred]
    if state.status is RunStatus.PAUSED:
        if not executing or random.random() < 0.3:
            return c.ResumeRun()
    elif random.random() < 0.03:
        return c.PauseRun()
    else:
        retries = [timer for timer in state.timers.values() if timer.purpose == "retry"]
        if retries and (not executing or random.random() < 0.4):
            timer = random.choice(retries)
            driven.now = max(driven.now, timer.due)
            return c.FireTimer(timer.id)
    return answer(driven, random.choice(executing), random, outcome) if executing else None


def answer(driven: Driven, token: Token, random: Random, outcome: Outcome) -> c.Command:
    if driven.graph.nodes[token.node].definition.retry and token.attempt == 1 and random.random() < 0.5:
        return c.FailAttempt(token.id, 1, Error("BUSY", "try again", retryable=True))
    if outcome(token.node, tuple(index for _, index in token.frames)):
        return c.FinishAttempt(token.id, token.attempt, {})
    return c.FailAttempt(token.id, token.attempt, Error("NO", "as drawn"))
