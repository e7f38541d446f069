"""Human gates: a person answers, claims or hands on a task (2.7). The first answer counts; the same again is
accepted."""

from __future__ import annotations

from treadle.kernel import objections, suspend
from treadle.kernel.deciding import Deciding, Refused
from treadle.kernel.on_answer import answered_before, known_visit
from treadle.kernel.state import Token
from treadle.model import commands as c
from treadle.model import effects as x
from treadle.model.ids import RUN_GATE, TokenId
from treadle.model.states import GateState, RunStatus


def complete_gate(d: Deciding, command: c.CompleteGate) -> None:
    """Handle a person's answer."""
    _not_the_runs(d, command.token)
    token = d.state.tokens.get(command.token)
    before = answered_before(d, command.token, token.attempt if token is not None else None, command.data)
    if before == "same":
        return
    if before == "different" or token is None or token.gate is not GateState.OPEN:
        if token is None and not 0 < command.token <= d.state.last_token:
            raise Refused("NOT_FOUND", f"run {d.state.run} has no visit {command.token}")
        why = "it has another answer" if before else "it is not waiting for one"
        raise Refused("INVALID_STATE", f"gate of visit {command.token} cannot be answered: {why}")
    instead_of = _instead_of(token, command.by, command.force)
    node = d.node(token)
    objection = objections.to_answer(d.state, command)
    if objection is not None:
        raise Refused(objection.kind, objection.message)
    suspend.started_by(d, token, f"answer to {node.ref}")
    d.gate_completed(token.id, command.data, command.by, instead_of)
    d.effect(x.CloseGate(token.id))
    if d.state.status is not RunStatus.PAUSED:
        suspend.resume_with(d, token, command.data, f"person {command.by}" if command.by else "person")


def claim_gate(d: Deciding, command: c.ClaimGate) -> None:
    """Let a person take on a human task."""
    token = _open(d, command.token)
    if _holder(token) == command.by:
        return
    _instead_of(token, command.by, force=False)
    d.gate_claimed(token.id, command.by)
    d.effect(x.NoteClaim(token.id, command.by))
    suspend.started_by(d, token, f"claim of {token.node}")


def release_gate(d: Deciding, command: c.ReleaseGate) -> None:
    """Give back a claimed human task. If nobody has claimed it, nothing changes."""
    token = _open(d, command.token)
    if _holder(token) is None:
        return
    instead_of = _instead_of(token, command.by, command.force)
    d.gate_released(token.id, command.by, instead_of)
    d.effect(x.NoteClaim(token.id))


def delegate_gate(d: Deciding, command: c.DelegateGate) -> None:
    """Pass a claimed human task on to somebody else; one that nobody has claimed may be given to somebody."""
    token = _open(d, command.token)
    if _holder(token) == command.to:
        return
    instead_of = _instead_of(token, command.by, command.force)
    d.gate_delegated(token.id, command.to, command.by, instead_of)
    d.effect(x.NoteClaim(token.id, command.to))


def _open(d: Deciding, visit: TokenId) -> Token:
    _not_the_runs(d, visit)
    token = known_visit(d, visit)
    if token.gate is not GateState.OPEN:
        raise Refused("INVALID_STATE", f"gate of visit {visit} is not open")
    return token


def _not_the_runs(d: Deciding, visit: TokenId) -> None:
    if visit == RUN_GATE and d.state.is_out_of_time:
        text = f"run {d.state.run} is out of time: extend it or abort it; there is nothing else to answer"
        raise Refused("INVALID_STATE", text)


def _holder(token: Token) -> str | None:
    holder = token.detail.get("claimed_by") if token.detail is not None else None
    return str(holder) if holder is not None else None


def _instead_of(token: Token, by: str | None, force: bool) -> str | None:
    """The person somebody acts instead of, by force; None if the task is theirs or nobody's. Refuses without force."""
    holder = _holder(token)
    if holder is None or holder == by:
        return None
    if not force:
        text = f"gate of visit {token.id} is claimed by {holder!r}, who answers it, releases it or passes it on"
        raise Refused("INVALID_STATE", f"{text}; anybody else must force it")
    return holder
