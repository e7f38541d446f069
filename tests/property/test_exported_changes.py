"""Random small runs that operators change in every way (6.2 to 6.5): each, and every fork of it, passes as exported
(6.6)."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.property.playing import seeds
from tests.recording import own_runs, recorded
from treadle import load_value
from treadle.model import commands as c
from treadle.model.errors import Error
from treadle.model.ids import RunId
from treadle.model.states import RUN_ENDED, RunStatus, TokenState, Waiting
from treadle.testing.recorded.export import export
from treadle.testing.recorded.past import RecordedRun
from treadle.testing.recorded.replay import replay
from treadle.testing.scenario.runner import run_text
from treadle.testing.world.new_world import make_world
from treadle.testing.world.outcomes import Outcome
from treadle.testing.world.projection import Visit
from treadle.testing.world.world import World

Json = Any
MOVES = 9
LEAF = load_value(
    {"workflow": "leaf", "nodes": {"only": {"action": {"kind": "python", "function": "x:y"}}}}, functions=None
)


def flow(random: Random, more: bool = False) -> Json:
    """A chain of tasks, gates, signals, clocks, webhooks and calls; some fanned out and joined, some in a loop."""
    nodes: Json = {}
    transitions: list[Json] = []
    length = random.randint(2, 4)
    for index in range(length):
        nodes[f"n{index}"] = node(random)
        if index == 0:
            continue
        width = random.choice([1, 1, 2, 3])
        if width == 1:
            transitions.append({"from": _end(nodes, index - 1), "to": f"n{index}"})
            continue
        transitions.append({"id": f"t{index}", "from": _end(nodes, index - 1), "to": f"n{index}", "spawn_count": width})
        nodes[f"j{index}"] = {}
        on_failure = random.choice(["exclude", "fail", "include_errors"])
        join = {"sibling_group": f"t{index}", "on_branch_failure": on_failure}
        if random.random() < 0.2:
            join["strategy"] = "any"
        transitions.append({"from": f"n{index}", "to": f"j{index}", "synchronization": join})
    if more:
        nodes["further"] = {}
        transitions.append({"from": _end(nodes, length - 1), "to": "further"})
    found: Json = {"workflow": "flow", "start": "n0", "nodes": nodes, "transitions": transitions}
    if random.random() < 0.2:
        found["on_unhandled_failure"] = "let_others_finish"
    return found


def _end(nodes: Json, index: int) -> str:
    return f"j{index}" if f"j{index}" in nodes else f"n{index}"


def node(random: Random) -> Json:
    kind = random.choice(["task", "task", "task", "task", "gate", "signal", "wait", "webhook", "call"])
    action = {
        "task": {"kind": "python", "function": "x:y"},
        "gate": {"kind": "human"},
        "signal": {"kind": "signal", "name": "go"},
        "wait": {"kind": "wait", "ms": 70},
        "webhook": {"kind": "webhook", "url": "https://worker.example/run"},
        "call": {"kind": "workflow_call", "workflow": "leaf"},
    }[kind]
    found: Json = {"action": action, "output_mapping": {"state.v": "$.v"}}
    if kind == "task" and random.random() < 0.3:
        found["retry"] = {"max_attempts": 2, "backoff": "none", "initial_delay_ms": 30}
    if kind == "task" and random.random() < 0.25:
        found["compensate"] = {"action": {"kind": "python", "function": "x:y"}}
    return found


def outcome(random: Random) -> Outcome:
    after_ms = random.randint(1, 90)
    if random.random() < 0.25:
        return Outcome(error=Error("TASK_FAILED", "no", retryable=random.random() < 0.5), after_ms=after_ms)
    return Outcome({"v": random.randrange(9)}, after_ms=after_ms)


def change(world: World, random: Random, versions: list[int]) -> None:
    """One thing that somebody does to one of the runs. What is refused changes nothing."""
    runs = own_runs(world) if random.random() < 0.8 else world.runs
    own = own_runs(world)
    run = random.choice([run for run in runs if run in own or world.projection(run).status not in RUN_ENDED] or own)
    projection = world.projection(run)
    visits = list(projection.visits.values())
    visit: Visit | None = random.choice(visits) if visits else None
    commands: list[c.Command] = [c.PauseRun(), c.ResumeRun(), c.RetryRun(), c.SendSignal("go", None, {"v": 3}, None)]
    commands.append(c.EditRun({"state.v": random.randrange(9)}))
    if visit is not None:
        commands += [
            c.SkipToken(visit.token, {"v": 8}),
            c.JumpToken(visit.token, random.choice(list(world.state(run).graph.nodes))),
            c.SetInput(visit.token, {"given": 1}),
            c.RetryToken(visit.token),
            c.EditRun({"state.v": 4}, branch=visit.token),
            c.CancelToken(visit.token),
        ]
    if versions and projection.started is not None and projection.started.workflow == "flow":
        commands.append(c.MigrateRun(random.choice(versions)))
    for waiting in visits:
        if waiting.waiting is Waiting.HUMAN and waiting.live:
            commands += [c.CompleteGate(waiting.token, {"v": 5}, "ann")] * 3
        if waiting.waiting is Waiting.EXTERNAL and waiting.live:
            commands += [c.ReceiveCallback(waiting.token, waiting.attempt, {"v": 6})] * 3
        if waiting.state in (TokenState.FAILED, TokenState.TIMED_OUT):
            commands += [c.RetryToken(waiting.token), c.RetryRun()]
    if projection.status is RunStatus.PAUSED:
        commands += [c.ResumeRun()] * 4
    if len(own_runs(world)) < 4 and projection.started is not None and projection.started.parent is None:
        fork = c.ForkRun(run=RunId(""), origin=run, at=random.choice([None, random.randint(1, len(projection.events))]))
        commands += [fork, fork]
    command = random.choice(commands)
    if isinstance(command, c.ForkRun):
        world.fork(command)
    else:
        world.send(run, command)


def played(seed: int) -> list[RecordedRun]:
    """A random run that is changed at random, and its forks."""
    random = Random(seed)
    first, again = flow(random), Random(seed)
    tasks = [ref for ref, node in first["nodes"].items() if node.get("action", {}).get("kind") == "python"]
    script = {ref: tuple(outcome(random) for _ in range(5)) for ref in (*tasks, "only")}
    undone = [ref for ref in tasks if "compensate" in first["nodes"][ref]]
    script |= {f"compensate({ref})": (Outcome({}, after_ms=7),) for ref in undone}
    with make_world("memory", script, None) as world:
        world.deploy(LEAF.require())
        world.deploy(load_value(first, functions=None).require())
        versions = [1]
        assert isinstance(world.start("flow", {"topic": "tea"}), str)
        if random.random() < 0.4:
            further = load_value(flow(again, more=True), functions=None).require()
            versions.append(world.deploy(further).version)
        for _ in range(random.randint(2, MOVES)):
            world.advance(random.choice([0, 1, 17, 60, 200]))
            world.settle()
            change(world, random, versions)
            world.settle()
        if random.random() < 0.5:
            world.drive()
        return [recorded(world, run) for run in own_runs(world)]


def test_changed_runs_and_their_forks_pass_as_exported() -> None:
    for seed in seeds(40):
        for past in played(seed):
            text = export(past)
            [result] = run_text(text)
            assert result.ok, f"seed {seed}, run {past.run}: {result}"
            assert "Not expected" not in text, f"seed {seed}, run {past.run}\n{text}"


def test_changed_runs_replay_as_they_were_against_their_own_definition() -> None:
    for seed in seeds(25):
        for past in played(seed):
            if past.versions:
                continue  # it was migrated: against one definition alone it may go otherwise
            result = replay(past, past.workflows())
            assert result.same, f"seed {seed}, run {past.run}: {result}"
