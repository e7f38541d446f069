"""Everybody outside: who starts runs, answers gates and callbacks, sends signals, operates, and talks nonsense.

In the safety phase they do as they please; when faults are over they become helpful (`help_out`), so that every run
that only waits for somebody can end.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from tests.simulator import changes, operators
from tests.simulator.generator.contents import SIGNALS
from tests.simulator.generator.generate import MAIN
from treadle.kernel.state import RunState, Token
from treadle.model import commands as c
from treadle.model.definition import Node
from treadle.model.effects import CallWebhook, OpenGate
from treadle.model.ids import RUN_GATE, RunId
from treadle.model.references import EntityRef, Person
from treadle.model.states import GateState, RunStatus, TokenState, Waiting

if TYPE_CHECKING:
    from tests.simulator.post import Letter
    from tests.simulator.world import World

ANSWER_MS = (1, 10, 60, 250)
HELP_AGAIN_MS = 400
UNDO_TRIES = 3


STILL = (RunStatus.FAILED, RunStatus.PAUSED)
FLURRY_MS = (0, 1, 8, 60, 250)


def is_for_several(node: Node) -> bool:
    """Whether several people have to agree about a gate."""
    task = node.task
    assign = task.steps[0].action.config.get("assign") if task is not None else None
    return isinstance(assign, dict) and "quorum" in assign


class People:
    """See the module's docstring."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._draw = world.draw
        self._signals = 0
        self._helped: dict[tuple[Any, ...], int] = {}
        self._undone: dict[tuple[RunId, int], int] = {}

    @staticmethod
    async def _pause(ms: int) -> None:
        await asyncio.sleep(ms / 1_000)

    # Clients

    async def start_runs(self) -> None:
        """The runs of this seed, over the first part of the safety phase."""
        plan = self._world.plan
        for number in range(plan.runs):
            self.start(f"run-{number}", f"key-{number}" if self._draw.chance(0.5) else None)
            await self._pause(self._draw.between(0, plan.safety_ms // 4))
        for number in range(self._draw.between(2, 6) if plan.limits_starts else 0):
            self.start(f"more-{number}", f"key of more {number}" if self._draw.chance(0.5) else None)
            await self._pause(self._draw.pick(FLURRY_MS))

    def input(self) -> dict[str, Any]:
        """The input of a run. Where runs may become items of another one, each is recognised by its id."""
        draw = self._draw
        value = {"n": draw.between(0, 3), "flag": draw.chance(0.5), "items": list(range(draw.between(0, 4)))}
        return {**value, "id": self._world.serial()} if self._world.plan.has("batch") else value

    def start(self, name: str, key: str | None) -> Letter:
        """Start one run; now and then the same request comes once more under another id."""
        draw = self._draw
        run, value = self._world.place(name, MAIN), self.input()
        version = 0 if self._world.plan.has("versions") and draw.chance(0.8) else 1
        entity = EntityRef(f"entity of {run}", "order", section="inbox") if self._world.plan.has("entity") else None
        command = c.StartRun(
            run=run, input=value, entity=entity, idempotency_key=key, seed=draw.between(0, 9), version=version
        )
        letter = self._world.post.send(run, command)
        if key is not None and self._world.faults.happens("duplicate_message", 3):
            again = self._world.place(f"{name}-again", MAIN)
            twin = c.StartRun(run=again, input=value, entity=entity, idempotency_key=key, version=version)
            self._world.post.send(again, twin)
        return letter

    async def deploy(self) -> None:
        """Further versions, one after the other; live runs of older ones may be asked to go on under it."""
        for upgrade in self._world.upgrades:
            await self._pause(self._draw.between(0, self._world.plan.safety_ms // 2))
            version = self._world.deploy(upgrade)
            if upgrade.workflow.on_deploy == "migrate_if_safe":
                for run in list(self._world.runs):
                    state = self._world.state(run)
                    if state.graph.workflow_name == upgrade.workflow.workflow and state.version < version:
                        self._world.post.send(run, c.MigrateRun(version, by="deploy"), tries=3)

    async def send_signals(self) -> None:
        """Signals to anybody, wanted or not."""
        while not self._world.faults.calm:
            await self._pause(self._draw.between(10, 400))
            if self._world.runs:
                key = self._draw.pick((None, None, 1, 2))
                self.signal(self._draw.pick(self._world.runs), self._draw.pick(SIGNALS), key)

    def signal(self, run: RunId, name: str, key: Any) -> None:
        """One signal, recognisable by its id."""
        self._signals += 1
        command = c.SendSignal(name, key, self._world.crew.answer(), f"signal-{self._signals}")
        self._world.post.send(run, command, tries=6)

    async def operate(self) -> None:
        """Operators and nonsense."""
        while not self._world.faults.calm:
            await self._pause(self._draw.between(5, 250))
            if self._world.runs and not self._world.faults.calm:
                run = self._draw.pick(self._runs_that_stand_still() or self._world.runs)
                state = self._world.state(run)
                command = operators.command(self._world, state)
                if isinstance(command, c.ForkRun):
                    self._world.post.send(command.run, command, tries=6, workflow=state.graph.workflow_name)
                elif command is not None:
                    self._world.post.send(run, command, tries=3)

    def _runs_that_stand_still(self) -> list[RunId]:
        """Now and then an operator looks after those first: they could be retried or changed."""
        plan = self._world.plan
        if plan.features & {"operator_edit", "operator_jump", "operator_input"} and self._draw.chance(0.4):
            return [run for run in self._world.runs if self._world.state(run).status in STILL]
        if not (plan.has("operator_retry") and self._draw.chance(0.3)):
            return []
        return [run for run in self._world.runs if self._world.state(run).status is RunStatus.FAILED]

    # Answers

    def attend(self, run: RunId, effect: OpenGate) -> None:
        """Somebody has seen a human task. A run that is out of time is looked after by operators."""
        if effect.token == RUN_GATE:
            return
        self._world.outside.spawn(self._answer_gate(run, effect))

    async def _answer_gate(self, run: RunId, effect: OpenGate) -> None:
        draw, post = self._draw, self._world.post
        await self._pause(draw.pick(ANSWER_MS))
        if draw.chance(0.2):
            return  # nobody feels responsible
        if is_for_several(self._world.node(run, effect.node)):
            await self._agree(run, effect)
            return
        if draw.chance(0.3):
            post.send(run, c.ClaimGate(effect.token, draw.pick(("ann", "bob"))), tries=3)
            await self._pause(draw.pick(ANSWER_MS))
            if draw.chance(0.3):
                post.send(run, c.DelegateGate(effect.token, "eve", by="ann", force=draw.chance(0.2)), tries=3)
            if draw.chance(0.3):
                post.send(run, c.ReleaseGate(effect.token, "bob", force=draw.chance(0.2)), tries=3)
        if draw.chance(0.1):
            post.send(
                run, c.CompleteGate(effect.token, {**self._world.crew.answer(), "v": "no number"}, "ann"), tries=3
            )
            await self._pause(draw.pick(ANSWER_MS))
        for _ in range(2 if self._world.faults.happens("double_answer", 5) else 1):
            answer = self._world.crew.answer()
            post.send(run, c.CompleteGate(effect.token, answer, draw.pick(("ann", "bob")), draw.chance(0.3)), tries=3)
            await self._pause(draw.between(0, 2))

    async def _agree(self, run: RunId, effect: OpenGate) -> None:
        """Some of three people answer, each with one of two opinions; one of them says why."""
        draw, post = self._draw, self._world.post
        opinions = (self._world.crew.answer(), self._world.crew.answer())
        for name in draw.some(("ann", "bob", "eve"), 0.8):
            person = Person(name) if draw.chance(0.5) else None
            post.send(run, c.CompleteGate(effect.token, draw.pick(opinions), name, person=person), tries=3)
            await self._pause(draw.between(0, 30))
        post.send(run, c.CommentGate(effect.token, "as discussed", "eve", id=f"comment {run} {effect.token}"), tries=3)

    def call_back(self, run: RunId, effect: CallWebhook) -> None:
        """An external worker has been called."""
        self._world.outside.spawn(self._answer_call(run, effect))

    async def _answer_call(self, run: RunId, effect: CallWebhook) -> None:
        draw, post, crew = self._draw, self._world.post, self._world.crew
        await self._pause(draw.pick(ANSWER_MS))
        if draw.chance(0.15):
            return
        if self._world.faults.happens("double_answer", 3):
            wrong = effect.attempt + draw.pick((-1, 1))
            post.send(run, c.ReceiveCallback(effect.token, wrong, crew.answer()), tries=3)
        for _ in range(2 if self._world.faults.happens("double_answer", 5) else 1):
            error = crew.error() if self._world.faults.happens("task_failure", 3) else None
            output = crew.answer() if error is None else None
            post.send(run, c.ReceiveCallback(effect.token, effect.attempt, output, error), tries=4)
            await self._pause(draw.between(0, 40))

    # When faults are over

    def help_out(self) -> None:
        """Give every run what it waits for."""
        for run in list(self._world.runs):
            state = self._world.state(run)
            if state.is_over_budget:
                self._help((run, "budget", state.seq), run, changes.raise_enough(self._world, state))
            elif state.status is RunStatus.PAUSED:
                self._help((run, "resume", state.seq), run, self._resume())
            elif state.status is RunStatus.COMPENSATION_FAILED:
                self._undo_again(run, state)
            else:
                for token in list(state.tokens.values()):
                    if token.state is TokenState.WAITING:
                        self._help_token(run, state, token)

    def needed(self) -> bool:
        """Whether an operator could still get a failed compensation done."""
        return any(
            self._world.state(run).status is RunStatus.COMPENSATION_FAILED and self._hopeful(run)
            for run in self._world.runs
        )

    def _hopeful(self, run: RunId) -> bool:
        records = self._world.state(run).records.values()
        return any(r.status == "failed" and self._undone.get((run, r.id), 0) < UNDO_TRIES for r in records)

    def _resume(self) -> c.Command:
        return c.ResumeRun() if self._draw.chance(0.5) else c.ExtendTimeout(60_000)

    def _undo_again(self, run: RunId, state: RunState) -> None:
        for record in list(state.records.values()):
            tried = self._undone.get((run, record.id), 0)
            if record.status == "failed" and tried < UNDO_TRIES and self._due((run, "undo", record.id)):
                self._undone[run, record.id] = tried + 1
                if tried + 1 == UNDO_TRIES and record.child is None:
                    self._world.post.send(run, c.SkipCompensation(record.id))
                else:
                    self._world.post.send(run, c.RetryCompensation(record.id))
                return

    def _help_token(self, run: RunId, state: RunState, token: Token) -> None:
        key = (run, token.id, token.attempt, token.waiting)
        if token.waiting is Waiting.HUMAN and token.gate is GateState.OPEN:
            several = len(token.asked.answers) if token.asked is not None else 0
            by = f"helper {several}" if several else "helper"
            self._help((*key, several), run, c.CompleteGate(token.id, self._world.crew.answer(), by, force=True))
        elif token.waiting is Waiting.EXTERNAL:
            self._help(key, run, c.ReceiveCallback(token.id, token.attempt, self._world.crew.answer()))
        elif token.waiting is Waiting.SIGNAL and self._due(key):
            self.signal(run, token.detail["signal"], token.detail["key"])
        elif token.waiting is Waiting.TRIGGER and self._due(key):
            for transition in state.graph.nodes[token.node].triggers:
                trigger = transition.definition.trigger
                if trigger is not None and trigger.signal is not None:
                    self.signal(run, trigger.signal, trigger.key)

    def _help(self, key: tuple[Any, ...], run: RunId, command: c.Command) -> None:
        if self._due(key):
            self._world.post.send(run, command)

    def _due(self, key: tuple[Any, ...]) -> bool:
        now = self._world.schedule.now
        if now - self._helped.get(key, -HELP_AGAIN_MS) < HELP_AGAIN_MS:
            return False
        self._helped[key] = now
        return True
