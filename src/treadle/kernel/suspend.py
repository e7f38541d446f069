"""Suspending actions: the token waits for a clock, a person, a signal, a child run or a webhook worker (2.7)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, TypedDict

from treadle.errors import EvaluationError
from treadle.graph.execution_graph import GraphNode
from treadle.kernel import complete, failure, invited, timers
from treadle.kernel.deciding import Deciding
from treadle.kernel.join_first import choose_by_start
from treadle.kernel.placing import placed
from treadle.kernel.signal_match import oldest_kept
from treadle.kernel.state import Signal, Token
from treadle.model import effects as x
from treadle.model.errors import Error
from treadle.model.ids import RunId
from treadle.model.states import Waiting

Json = Any


class _Unfit(Exception):
    """The action's configuration does not fit this input."""


def config_value(d: Deciding, token: Token, node: GraphNode, key: str, value: Json) -> Json:
    """The value of one config field: its source over the token's scope, else the input's field of that name."""
    source = node.config.get(key)
    if source is not None:
        return source.evaluate(d.view(token))
    return value.get(key) if isinstance(value, dict) else None


def suspend(d: Deciding, token: Token, node: GraphNode, value: Json) -> None:
    """Begin the node's wait."""
    try:
        _STARTERS[node.suspends or ""](d, token, node, value)
    except (EvaluationError, _Unfit) as problem:
        text = f"{node.suspends} of {node.ref!r}: {problem}"
        kind = problem.kind if isinstance(problem, EvaluationError) else "TASK_FAILED"
        failure.fail_token(d, token, Error(kind, text))


def _start(d: Deciding, token: Token, value: Json) -> int:
    attempt = token.attempt + 1
    d.token_started(token.id, attempt, input=value)
    return attempt


def deadline(d: Deciding, token: Token, node: GraphNode, extra: int | None = None) -> None:
    """Start the clock of an attempt that waits."""
    task = node.task
    execution = task.steps[0].action.execution if task is not None else None
    given = (node.deadline_ms, execution.timeout_ms if execution is not None else None, extra)
    limits = [limit for limit in given if limit is not None]
    if limits:
        timers.start_attempt(d, min(limits), token)


def _duration(d: Deciding, token: Token, node: GraphNode, key: str, value: Json) -> int | None:
    ms = config_value(d, token, node, key, value)
    if ms is None:
        return None
    if isinstance(ms, bool) or not isinstance(ms, int | float) or ms <= 0:
        raise _Unfit(f"{key} is {ms!r}; it must be a number of milliseconds above 0")
    return int(ms)


def _wait(d: Deciding, token: Token, node: GraphNode, value: Json) -> None:
    ms = config_value(d, token, node, "ms", value)
    until = config_value(d, token, node, "until", value)
    due = _due(d, ms, until)
    _start(d, token, value)
    d.token_waiting(token.id, Waiting.TIMER, until=due)
    timers.start(d, due, "wait", token)
    deadline(d, token, node)


def _due(d: Deciding, ms: Json, until: Json) -> int:
    if isinstance(ms, int | float) and not isinstance(ms, bool) and ms >= 0:
        return d.now + int(ms)
    if isinstance(until, int | float) and not isinstance(until, bool):
        return int(until)
    if isinstance(until, str):
        try:
            moment = datetime.fromisoformat(until)
        except ValueError:
            raise _Unfit(f"until is {until!r}; it must be an ISO 8601 time or milliseconds since the epoch") from None
        return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
    raise _Unfit(f"needs ms ≥ 0 or until, got ms={ms!r} until={until!r}")


def _human(d: Deciding, token: Token, node: GraphNode, value: Json) -> None:
    due_ms = _duration(d, token, node, "due_ms", value)
    remind_ms = _reminders(config_value(d, token, node, "remind_ms", value))
    due = d.now + due_ms if due_ms is not None else None
    asked = _question(d, token, node, value)
    escalate = _escalation(d, token, node)
    _start(d, token, value)
    d.gate_opened(token.id, value, due=due, escalate=escalate, **asked)
    d.token_waiting(token.id, Waiting.HUMAN, until=due)
    d.effect(x.OpenGate(token.id, node.ref))
    if due is not None:
        timers.start(d, due, "gate_due", token)
    if remind_ms is not None:
        timers.start(d, d.now + remind_ms, "gate_remind", token)
    if escalate is not None:
        timers.start(d, escalate["at"], "gate_escalate", token)
    deadline(d, token, node)


class _Question(TypedDict):
    title: str | None
    form: Json
    assign: Json
    description: str | None


def _question(d: Deciding, token: Token, node: GraphNode, value: Json) -> _Question:
    """What a person is asked, and who."""
    title = config_value(d, token, node, "title", value)
    description = config_value(d, token, node, "description", value) if "description" in node.config else None
    assign = config_value(d, token, node, "assign", value)
    problem = invited.problem_with(assign)
    if problem is not None:
        raise _Unfit(problem)
    source = node.config.get("form")
    form = source.evaluate(d.view(token)) if source is not None else None
    words = str(description) if description is not None else None
    return _Question(title=title, form=form, assign=assign, description=words)


def open_again(d: Deciding, token: Token, value: Json) -> None:
    """Ask a question again in a fork, with this input: its clocks go on, and it is asked as the fork's data say."""
    assert token.asked is not None
    before = token.asked.opened
    try:
        asked = _question(d, token, d.node(token), value)
    except (EvaluationError, _Unfit):
        asked = _Question(title=before.title, form=before.form, assign=before.assign, description=before.description)
    due, at = (_due_at(d, token, purpose) for purpose in ("gate_due", "gate_escalate"))
    escalate = {**before.escalate, "at": at} if before.escalate is not None and at is not None else before.escalate
    d.gate_opened(token.id, value, due=due, escalate=escalate, **asked)
    d.effect(x.OpenGate(token.id, token.node))


def _due_at(d: Deciding, token: Token, purpose: str) -> int | None:
    return next((d.state.timers[t].due for t in token.timers if d.state.timers[t].purpose == purpose), None)


def _reminders(times: Json) -> int | None:
    """How long until the first reminder; None: there is none."""
    if times is None:
        return None
    listed = times if isinstance(times, list) else [times]
    if not listed or not all(_is_duration(ms) for ms in listed):
        raise _Unfit(f"remind_ms is {times!r}; it must be a number of milliseconds above 0, or a list of them")
    return next_reminder(times, 0)


def next_reminder(times: Json, sent: int) -> int | None:
    """How long after the last reminder the next one is due: always as long for a single number; for a list as long as
    from one of its moments to the next, counted from the opening of the gate."""
    if not isinstance(times, list):
        return int(times)
    moments = [0, *sorted({int(ms) for ms in times})]
    return moments[sent + 1] - moments[sent] if sent + 1 < len(moments) else None


def _is_duration(ms: Json) -> bool:
    return isinstance(ms, int | float) and not isinstance(ms, bool) and ms >= 1


def _escalation(d: Deciding, token: Token, node: GraphNode) -> Json:
    """When a gate is escalated, and to whom: {at, to}; None: never."""
    source = node.config.get("escalate")
    config = source.evaluate(d.view(token)) if source is not None else None
    if config is None:
        return None
    after: Json = config.get("after_ms") if isinstance(config, dict) else None
    to: Json = config.get("to") if isinstance(config, dict) else None
    if not _is_duration(after) or to is None or invited.problem_with(to) is not None or invited.quorum_of(to):
        raise _Unfit(f"escalate is {config!r}; it must be {{after_ms, to}} with `to` as in `assign`")
    return {"at": d.now + int(after), "to": to}


def _signal(d: Deciding, token: Token, node: GraphNode, value: Json) -> None:
    name = config_value(d, token, node, "name", value)
    if not isinstance(name, str):
        raise _Unfit(f"needs a name, got {name!r}")
    key = config_value(d, token, node, "key", value)
    buffer = config_value(d, token, node, "buffer", value)
    _start(d, token, value)
    keyed = "key" in node.config or (isinstance(value, dict) and "key" in value)
    detail = {"signal": name, "key": key, "keyed": keyed, "buffer": buffer}
    d.token_waiting(token.id, Waiting.SIGNAL, detail=detail)
    deadline(d, token, node)
    signal = oldest_kept(d, token, None, name)
    if signal is not None:
        take_signal(d, token, signal)


def take_signal(d: Deciding, token: Token, signal: Signal) -> None:
    """A visit of a `signal` action gets the signal it waits for."""
    d.signal_taken(signal.id, token.id)
    started_by(d, token, f"signal {signal.name}")
    resume_with(d, token, signal.data, f"signal {signal.name}")


def _workflow_call(d: Deciding, token: Token, node: GraphNode, value: Json) -> None:
    name = config_value(d, token, node, "workflow", value)
    version = config_value(d, token, node, "version", value)
    graph = d.catalog.lookup(name, version)
    problem = None
    if graph is None:
        problem = Error("NOT_FOUND", f"workflow {name!r}{f' version {version}' if version else ''} is not deployed")
    elif d.state.depth + 1 > d.state.depth_max:
        text = f"max_nesting_depth is {d.state.depth_max} and the call of {name!r} would be level {d.state.depth + 1}"
        problem = Error("LIMIT_EXCEEDED", text)
    elif graph.input_schema is not None:
        refusal = graph.input_schema.problem(value)
        problem = Error("SCHEMA", f"input of {name!r}: {refusal}") if refusal is not None else None
    attempt = _start(d, token, value)
    if problem is not None or graph is None:
        failure.attempt_failed(d, token, problem or Error("NOT_FOUND", f"workflow {name!r}"))
        return
    version = (
        version or graph.version or None
    )  # the version that was checked starts, even if another is deployed meanwhile
    child = RunId(f"{d.state.run}.{token.id}" + (f"~{attempt}" if attempt > 1 else ""))
    if graph.flow is not None:
        child = placed(child, name, graph.shards)
    inherit = bool(config_value(d, token, node, "inherit_artifacts", value))
    d.child_started(token.id, child, name, version)
    detail = {"child": child, "workflow": name}
    d.token_waiting(token.id, Waiting.SUBWORKFLOW, detail=detail)
    depth, depth_max = d.state.depth + 1, d.state.depth_max
    catches = catches_failure(node)
    d.effect(
        x.StartChild(
            token.id,
            child,
            name,
            value,
            depth=depth,
            depth_max=depth_max,
            version=version,
            inherit_artifacts=inherit,
            catches=catches,
            attempt=attempt,
            trace=d.state.trace,
            budgeted=d.state.budget is not None,
        )
    )
    deadline(d, token, node)


def catches_failure(node: GraphNode) -> bool:
    """Whether a call takes its child's failure as a result (`on_failure: catch`)."""
    return node.task is not None and node.task.steps[0].action.config.get("on_failure") == "catch"


def _webhook(d: Deciding, token: Token, node: GraphNode, value: Json) -> None:
    timeout = _duration(d, token, node, "timeout_ms", value)
    attempt = token.attempt + 1
    d.token_dispatched(token.id, attempt, value)
    d.token_started(token.id, attempt)
    d.token_waiting(token.id, Waiting.EXTERNAL)
    d.effect(x.CallWebhook(token.id, attempt, node.ref, value))
    deadline(d, token, node, timeout)


_STARTERS = {
    "wait": _wait,
    "human": _human,
    "signal": _signal,
    "workflow_call": _workflow_call,
    "webhook": _webhook,
}


def resume_with(d: Deciding, token: Token, output: Json, by: str) -> None:
    """Resume a token with what it waited for, and complete its visit with that."""
    d.token_resumed(token.id, by)
    complete.complete_visit(d, token, output)


def started_by(d: Deciding, token: Token, by: str) -> None:
    """Note that this branch was claimed, answered, signalled or due: it may be the first (A14)."""
    choose_by_start(d, token.frames, by)
