"""An operator's changes to a run that stands still: edit its data, skip a visit, jump to another node, set
an input (6.4).

Promises: a refusal changes nothing, and says what is in the way and what to do. A failed visit that is skipped or jumps
takes its failure back as a retry does, with everything it took down (`reopen`), and is refused for the same reasons.
"""

from __future__ import annotations

from typing import Any

from treadle.expression.values import json_equal
from treadle.graph.jumps import Stack, stacks_of
from treadle.kernel import cancel, complete, deliver, reopen
from treadle.kernel.deciding import Deciding, Refused
from treadle.kernel.depth import is_too_deep, too_deep
from treadle.kernel.evolve_tokens import scope_frame
from treadle.kernel.reopen_plan import FAILED, check_run, plan
from treadle.kernel.route import Origin
from treadle.kernel.scope import read
from treadle.kernel.state import ENDED, Token
from treadle.kernel.targets import targets
from treadle.kernel.writing import BadOutput, check_output, write_problem
from treadle.model import commands as c
from treadle.model.events import Write
from treadle.model.ids import Frame, Frames, TokenId
from treadle.model.states import Mode, RunStatus, TokenState, Waiting

Json = Any

_STILL = (RunStatus.PAUSED, RunStatus.FAILED)
_NOT_AT_WORK = (*FAILED, TokenState.CANCELLED, TokenState.PENDING)


def edit_run(d: Deciding, command: c.EditRun) -> None:
    """Write into the run's own scope, or into that of a visit's branch."""
    _check_status(d, "edited", _STILL)
    frames: Frames = ()
    if command.branch is not None:
        token = _unended(d, command.branch, "edited")
        if token.held:
            raise _brought(token, "edited")
        frames = token.frames
    writes = targets(command.writes)
    scope = scope_frame(d.state, frames)
    problem = write_problem(d, frames, scope, writes)
    if problem is not None:
        raise Refused("SCHEMA" if problem.startswith("state_schema") else "BAD_REQUEST", problem)
    if not _is_so_already(d, scope, writes):
        d.context_edited(writes, scope, command.by, command.reason)


def _is_so_already(d: Deciding, scope: Frame | None, writes: list[Write]) -> bool:
    """Whether the same edit has been made before: a repeated delivery changes nothing."""
    existing = d.state.scopes.get(scope)
    if existing is None or (
        d.state.paused_at is not None and any((scope, path) not in d.state.edited for path, _ in writes)
    ):
        return False
    return all(json_equal(read([existing], path), value) for path, value in writes)


def skip_token(d: Deciding, command: c.SkipToken) -> None:
    """Complete a visit with the operator's output."""
    _check_status(d, "skipped", (*_STILL, RunStatus.RUNNING))
    token = _unended(d, command.token, "skipped")
    if token.held:
        raise _brought(token, "skipped")
    _check_output(d, token, command.output)
    by, reason = command.by, command.reason

    def record() -> None:
        d.token_skipped(token.id, command.output, by, reason)

    if token.state in FAILED:
        _take_back(d, token, "skipped", by, record)
    else:
        cancel.stop_attempt(d, token)
        record()
    complete.complete_visit(d, token, command.output)


def jump_token(d: Deciding, command: c.JumpToken) -> None:
    """End a visit, and make one at another node of the same nesting."""
    _check_status(d, "moved", _STILL)
    if command.to not in d.graph.nodes:
        raise Refused("NOT_FOUND", f"{d.graph.workflow_name!r} has no node {command.to!r}")
    token = _unended(d, command.token, "moved")
    _check_nesting(d, token, command.to)
    limit = d.graph.definition.limits.max_tokens_per_run
    if d.state.visits >= limit:
        raise Refused(
            "LIMIT_EXCEEDED", f"max_tokens_per_run is {limit} and the visit of {command.to!r} would exceed it"
        )
    by, reason, error = command.by, command.reason, token.error

    def record() -> None:
        d.token_jumped(token.id, command.to, by, reason)

    if token.state in FAILED:
        _take_back(d, token, "moved", by, record)
    else:
        record()
    origin = Origin(token.id, d.node(token), token.path, token.frames, token.loops, error)
    target, where, path = d.graph.nodes[command.to], token.frames, token.path
    cancel.cancel_token(d, token, by, reason or f"jump to {command.to}")
    deliver.create(d, target, None, origin, frames=where, path=path, loops=token.loops)


def set_input(d: Deciding, command: c.SetInput) -> None:
    """Set what further attempts of a visit are given."""
    _check_status(d, "given an input", _STILL)
    if is_too_deep(command.input):
        raise Refused("BAD_REQUEST", too_deep("the input"))
    kept = d.state.fallen.get(command.token)
    token = kept.token if kept is not None else _unended(d, command.token, "given an input")
    why = _never_again(d, token)
    if why is not None:
        raise Refused("INVALID_STATE", f"visit {token.id} at {token.node!r} will not try again: {why}")
    if token.given is None or not json_equal(token.given[0], command.input):
        d.token_input_set(token.id, command.input, command.by, command.reason)


# Checks


def _check_status(d: Deciding, what: str, allowed: tuple[RunStatus, ...]) -> None:
    status = d.state.status
    if status in allowed:
        return
    hint = "pause it first" if status is RunStatus.RUNNING else "fork it at an earlier point instead"
    raise Refused("INVALID_STATE", f"run {d.state.run} is {status}, so nothing in it can be {what}: {hint}")


def _unended(d: Deciding, identity: TokenId, what: str) -> Token:
    """A visit that is live, or has failed and may be taken back."""
    token = d.state.tokens.get(identity)
    if token is not None:
        if token.mode is Mode.COMPENSATION:
            raise Refused("INVALID_STATE", f"visit {identity} undoes another one: skip its compensation instead")
        return token
    if not 0 < identity <= d.state.last_token:
        raise Refused("NOT_FOUND", f"run {d.state.run} has no visit {identity}")
    kept = d.state.fallen.get(identity)
    if kept is not None:
        text = f"visit {identity} at {kept.token.node!r} is {kept.token.state}"
        raise Refused("INVALID_STATE", f"{text}: it comes back when the failure that took it down is retried")
    ended = ENDED[d.state.ended[identity - 1]]
    why = ": its failure was handled, or its join has fired" if ended in FAILED else ""
    raise Refused("INVALID_STATE", f"visit {identity} is {ended}, so it cannot be {what}{why}")


def _brought(token: Token, what: str) -> Refused:
    text = f"visit {token.id} at {token.node!r} has returned and waits at a join with what it brought"
    return Refused("INVALID_STATE", f"{text}, so it cannot be {what}: fork the run with another output of it")


def _check_output(d: Deciding, token: Token, output: Json) -> None:
    """Refuse an output that would make the visit fail."""
    if is_too_deep(output):
        raise Refused("BAD_REQUEST", too_deep("the output"))
    node = d.node(token)
    problem = node.output_schema.problem(output) if node.output_schema is not None else None
    if problem is not None:
        raise Refused("SCHEMA", f"output of {node.ref!r}: {problem}")
    try:
        check_output(d, token, output)
    except BadOutput as bad:
        raise Refused(bad.error.kind, bad.error.message) from None
    if node.definition.terminates is not None and d.state.status is RunStatus.PAUSED:
        raise Refused("INVALID_STATE", f"completing {node.ref!r} ends the run, which is paused: resume it first")


def _take_back(d: Deciding, token: Token, what: str, by: str, record: reopen.Instead) -> None:
    """Take back the failure of a visit, as a retry does. `record` makes the visit live."""
    check_run(d, f"visit {token.id} at {token.node!r}", what)
    reopen.carry_out(d, plan(d, [token.failure]), by, 0, instead=(token.id, record))


def _check_nesting(d: Deciding, token: Token, to: str) -> None:
    groups = [d.state.groups[identity] for identity, _ in token.frames]
    stacks = stacks_of(d.graph)[to]
    if any(_fits(stack, [group.names for group in groups]) for stack in stacks):
        return
    inside = " in ".join(repr(group.names[0].partition(":")[2]) for group in reversed(groups)) or "no fan-out"
    wanted = " or ".join(sorted(_shown(stack) for stack in stacks)) or "no place that a token can reach"
    text = f"{to!r} lies inside {wanted}, visit {token.id} at {token.node!r} inside {inside}"
    raise Refused("INVALID_STATE", f"{text}: jump to a node of the same fan-out, or fork the run")


def _fits(stack: Stack, names: list[tuple[str, ...]]) -> bool:
    return len(stack) == len(names) and all(name in around for name, around in zip(stack, names, strict=True))


def _shown(stack: Stack) -> str:
    return " in ".join(repr(name.partition(":")[2]) for name in reversed(stack)) or "no fan-out"


def _never_again(d: Deciding, token: Token) -> str | None:
    """Why a visit makes no further attempt; None: it may."""
    if token.held:
        return "it has returned and waits at a join"
    if token.state in _NOT_AT_WORK or _is_between(token):
        return None
    if token.id in d.state.deferred:
        item = d.state.deferred[token.id]
        if item.error is None:
            return "its answer has come, and is applied when the run resumes"
    retry = d.node(token).definition.retry
    if retry is None or token.attempt >= retry.max_attempts:
        return "it is at work in its last attempt; wait until it has failed, or skip it"
    return None


def _is_between(token: Token) -> bool:
    """Whether no attempt is under way: the visit pauses before the next one, or queues for a mutex."""
    return token.waiting is Waiting.MUTEX or (token.waiting is Waiting.TIMER and token.error is not None)
