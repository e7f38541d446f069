"""What has succeeded is undone, exactly once and newest first, if the run fails, and never if it completes.

Owns a list of the successes the test itself has reported, late ones of cancelled visits included; nothing is read from
the kernel's records but which visit a compensation is for.
"""

from __future__ import annotations

from collections import Counter
from random import Random

from tests.driving import TASK, Driven, graph_of
from tests.property.blocks import INPUT, Blocks
from tests.property.playing import fixed_seeds, holds, told
from treadle.kernel.state import Token
from treadle.model import commands as c
from treadle.model.errors import Error
from treadle.model.ids import TokenId
from treadle.model.states import Mode, RunStatus, TokenState

STEPS_MAX = 2_000


def test_what_has_succeeded_is_undone_once_and_newest_first() -> None:
    ends: Counter[RunStatus] = Counter()
    for seed in fixed_seeds(1_000):
        random = Random(seed)
        blocks = Blocks(random)
        policy = random.choice(["on_failure", "on_failure_and_cancel"])
        document, _ = blocks.document(compensation=policy, on_compensation_failure="continue")
        document["nodes"]["END"] = dict(TASK)
        for node in document["nodes"].values():
            if "action" in node and random.random() < 0.6:
                node["compensate"] = dict(TASK)
        ledger = Ledger(Driven(graph_of(document)).start(INPUT), random, seed)
        ledger.play()
        ledger.close(policy)
        ends[ledger.driven.state.status] += 1
    assert ends[RunStatus.COMPENSATED] > ends.total() / 10 < ends[RunStatus.COMPLETED], f"a hollow pass: {ends}"


class Ledger:
    """One run, and the successes that were reported to it."""

    def __init__(self, driven: Driven, random: Random, seed: int) -> None:
        self.driven = driven
        self.random = random
        self.seed = seed
        self.risk = random.choice([0, 0.1, 0.3])
        self.pauses = random.random() < 0.5
        """What succeeds during a pause is applied at its end, so that then only what is undone is checked."""
        self.cancel_at = random.choice([None, None, random.randint(1, 15)])
        self.begun: dict[TokenId, tuple[int, str]] = {}
        """Attempts under way: visit → attempt and node."""
        self.owing: list[TokenId] = []
        """Successes of visits with a compensation, oldest first, that are not undone."""
        self.undoing: TokenId | None = None

    def play(self) -> None:
        for step in range(STEPS_MAX):
            command = self.next_command(step)
            if command is None:
                return
            self.driven.do(command)
            holds(self.driven, command)
            self.watch()
        raise AssertionError(self.told(f"not over after {STEPS_MAX} commands"))

    def next_command(self, step: int) -> c.Command | None:
        state, random = self.driven.state, self.random
        executing = [t for t in state.tokens.values() if t.state is TokenState.EXECUTING and t.id not in state.deferred]
        self.begun.update((t.id, (t.attempt, t.node)) for t in executing if t.mode is Mode.FORWARD)
        late = [token for token in self.begun if token not in state.tokens and token in state.stopping]
        if not executing and not late:
            return self.wake_up()
        if state.status is RunStatus.RUNNING and step == self.cancel_at:
            return c.CancelRun()
        if self.pauses and state.status is RunStatus.RUNNING and random.random() < 0.03:
            return c.PauseRun()
        if state.status is RunStatus.PAUSED and random.random() < 0.3:
            return c.ResumeRun()
        if late and (not executing or random.random() < 0.3):
            return self.report(random.choice(late), 0.3)
        token = random.choice(executing)
        return self.report(token.id, self.risk) if token.mode is Mode.FORWARD else self.undo(token)

    def wake_up(self) -> c.Command | None:
        state = self.driven.state
        if state.status is RunStatus.PAUSED:
            return c.ResumeRun()
        retry = next((timer for timer in state.timers.values() if timer.purpose == "retry"), None)
        if retry is None or state.status is not RunStatus.RUNNING:
            return None
        self.driven.now = max(self.driven.now, retry.due)
        return c.FireTimer(retry.id)

    def report(self, token: TokenId, risk: float) -> c.Command:
        attempt, node = self.begun.pop(token)
        if self.random.random() < risk:
            return c.FailAttempt(token, attempt, Error("NO", "as drawn"))
        if self.driven.graph.nodes[node].definition.compensate is not None:
            self.owing.append(token)
        return c.FinishAttempt(token, attempt, {})

    def watch(self) -> None:
        """A compensation that has just begun is for the newest success; what succeeds later comes after it."""
        found = [token for token in self.driven.state.tokens.values() if token.mode is Mode.COMPENSATION]
        assert len(found) <= 1, self.told("two things are undone at once")
        if found and found[0].id != self.undoing:
            self.undoing = found[0].id
            visit = self.undone_by(found[0])
            right = self.owing[-1:] == [visit] or (self.pauses and visit in self.owing)
            assert right, self.told(f"visit {visit} is undone, of {self.owing}")

    def undone_by(self, token: Token) -> TokenId:
        assert token.record is not None
        return self.driven.state.records[token.record].token

    def undo(self, token: Token) -> c.Command:
        self.owing.remove(self.undone_by(token))
        return c.FinishAttempt(token.id, token.attempt, {})

    def close(self, policy: str) -> None:
        """What is left to undo fits how the run has ended."""
        status = self.driven.state.status
        if status is RunStatus.COMPLETED:
            undone = [event for event in self.driven.types() if event == "compensation.started"]
            assert not undone, self.told("the run completed and something was undone")
            return
        kept = status is RunStatus.CANCELLED and policy == "on_failure"
        ends = (RunStatus.COMPENSATED, RunStatus.FAILED, RunStatus.CANCELLED)
        assert status in ends, self.told(f"the run hangs: {status}")
        assert kept or not self.owing, self.told(f"the run is {status} and visits {self.owing} are not undone")

    def told(self, problem: str) -> str:
        return told(self.driven, [f"seed {self.seed}: {problem}"])
