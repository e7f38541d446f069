"""Firing a durable timer: its purpose decides what it means. An unknown timer was cleared meanwhile and is ignored."""

from __future__ import annotations

from treadle.kernel import failure, finish, join, on_answer, on_gate, standing, suspend, timers, triggers
from treadle.kernel.deciding import Deciding, Refused, RunFails
from treadle.kernel.defined import defining
from treadle.kernel.state import Timer, Token
from treadle.model import commands as c
from treadle.model import effects as x
from treadle.model.errors import Error
from treadle.model.ids import RUN_GATE
from treadle.model.states import GateState, RunStatus


def fire_timer(d: Deciding, command: c.FireTimer) -> None:
    """Handle a timer that is due. The timers of a paused run are frozen; resuming sets them anew."""
    timer = d.state.timers.get(command.timer)
    if timer is None:
        return
    if d.state.status is RunStatus.PAUSED:
        return
    if timer.due > d.now:
        raise Refused("BAD_REQUEST", f"timer {command.timer} is due at {timer.due}, it is {d.now}")
    token = d.state.tokens[timer.token] if timer.token is not None else None
    d.timer_fired(timer.id, timer.purpose, timer.token)
    if token is not None:
        _TOKEN_TIMERS[timer.purpose](d, token, timer)
    elif timer.purpose == "sync":
        _sync(d, timer)
    else:
        _run(d)


def _wait(d: Deciding, token: Token, _timer: Timer) -> None:
    suspend.started_by(d, token, f"timer of {token.node}")
    suspend.resume_with(d, token, {}, "timer")


def _retry(d: Deciding, token: Token, _timer: Timer) -> None:
    d.token_resumed(token.id, "retry")
    d.ready.append(token.id)


def _attempt(d: Deciding, token: Token, _timer: Timer) -> None:
    text = f"attempt {token.attempt} of {token.node!r} did not answer in time"
    failure.attempt_failed(d, token, Error("TASK_TIMEOUT", text, retryable=True))


def _lease(d: Deciding, token: Token, _timer: Timer) -> None:
    on_answer.lose_worker(d, c.LoseWorker(token.id, token.attempt, token.recoveries))


def _trigger(d: Deciding, token: Token, timer: Timer) -> None:
    assert timer.target is not None
    triggers.occur(d, token, d.graph.transitions[timer.target], None)


def _gate_due(d: Deciding, token: Token, _timer: Timer) -> None:
    """Handle a gate that nobody has answered in time: with its default answer, or with a failure."""
    node = defining(d.state, token)
    source = node.config.get("on_expiry")
    policy = source.evaluate(d.view(token)) if source is not None else "fail"
    default = policy.get("default") if isinstance(policy, dict) else None
    d.gate_expired(token.id, default)
    d.effect(x.CloseGate(token.id))
    if isinstance(policy, dict):
        suspend.started_by(d, token, f"expiry of {token.node}")
        suspend.resume_with(d, token, default, "expiry")
        return
    d.token_resumed(token.id, "expiry")
    text = f"nobody answered {node.ref!r} in time"
    failure.attempt_failed(d, token, Error("TASK_TIMEOUT", text, retryable=True))


def _gate_remind(d: Deciding, token: Token, _timer: Timer) -> None:
    """Send a reminder, and set the next one, until somebody answers."""
    if token.gate is not GateState.OPEN or token.asked is None:
        return
    on_gate.remind(d, token)
    times = suspend.config_value(d, token, defining(d.state, token), "remind_ms", token.input)
    wait_ms = suspend.next_reminder(times, token.asked.reminded)
    if wait_ms is not None:
        timers.start(d, d.now + wait_ms, "gate_remind", token)


def _gate_escalate(d: Deciding, token: Token, _timer: Timer) -> None:
    if token.gate is GateState.OPEN:
        on_gate.escalate(d, token)


_TOKEN_TIMERS = {
    "wait": _wait,
    "retry": _retry,
    "attempt": _attempt,
    "lease": _lease,
    "trigger": _trigger,
    "gate_due": _gate_due,
    "gate_remind": _gate_remind,
    "gate_escalate": _gate_escalate,
}


def _sync(d: Deciding, timer: Timer) -> None:
    assert timer.group is not None and timer.target is not None
    group = d.state.groups.get(timer.group)
    if group is None:
        return
    state = standing.site_of(group, timer.target)
    if state.status == "open":
        join.time_out(d, group, state, d.graph.sites[state.index])


def _run(d: Deciding) -> None:
    """Handle the run's own deadline, as its `on_timeout` says."""
    policy = d.graph.definition.on_timeout
    text = f"the run has not ended by its deadline, {d.now - d.state.started_at} ms after it started"
    error = Error("WORKFLOW_TIMEOUT", text)
    if policy == "human_gate":
        d.run_paused("timeout", error.message)
        d.effect(x.OpenGate(RUN_GATE, "", error.message))
    elif policy == "cancel":
        finish.time_out_run(d, error)
    else:
        raise RunFails(error)
