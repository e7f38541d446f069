"""Human gates: a person answers, claims or hands on a task (2.7). The first answer counts; the same again is
accepted."""

from __future__ import annotations

from treadle.kernel import suspend
from treadle.kernel.deciding import Deciding, Refused
from treadle.kernel.depth import is_too_deep, too_deep
from treadle.kernel.on_answer import answered_before, known_visit
from treadle.model import commands as c
from treadle.model import effects as x
from treadle.model import events as e
from treadle.model.states import GateState, RunStatus, Waiting


def complete_gate(d: Deciding, command: c.CompleteGate) -> None:
    """A person has answered."""
    token = d.state.tokens.get(command.token)
    before = answered_before(d, command.token, token.attempt if token is not None else None, command.data)
    if before == "same":
        return
    if before == "different" or token is None or token.gate is not GateState.OPEN:
        if token is None and not 0 < command.token <= d.state.last_token:
            raise Refused("NOT_FOUND", f"run {d.state.run} has no visit {command.token}")
        why = "it has another answer" if before else "it is not waiting for one"
        raise Refused("INVALID_STATE", f"gate of visit {command.token} cannot be answered: {why}")
    node = d.node(token)
    if is_too_deep(command.data):
        raise Refused("BAD_REQUEST", too_deep("the answer"))
    problem = node.form.problem(command.data) if node.form is not None else None
    if problem is not None:
        raise Refused("SCHEMA", f"answer to {node.ref!r}: {problem}")
    suspend.started_by(d, token, f"answer to {node.ref}")
    d.emit(e.GateCompleted(d.seq, d.now, token.id, command.data, command.by))
    d.effect(x.CloseGate(token.id))
    if d.state.status is not RunStatus.PAUSED:
        suspend.resume_with(d, token, command.data, f"person {command.by}" if command.by else "person")


def claim_gate(d: Deciding, command: c.ClaimGate) -> None:
    """A person takes a human task on."""
    token = known_visit(d, command.token)
    if token.gate is not GateState.OPEN:
        raise Refused("INVALID_STATE", f"gate of visit {command.token} is not open")
    holder = (token.detail or {}).get("claimed_by")
    if holder == command.by:
        return
    if holder is not None:
        raise Refused("INVALID_STATE", f"gate of visit {command.token} is claimed by {holder!r}")
    d.emit(e.TokenWaiting(d.seq, d.now, token.id, Waiting.HUMAN, None, None, None, {"claimed_by": command.by}))
    suspend.started_by(d, token, f"claim of {token.node}")


def delegate_gate(d: Deciding, command: c.DelegateGate) -> None:
    """Whoever holds a human task, or an operator, passes it on."""
    token = known_visit(d, command.token)
    if token.gate is not GateState.OPEN:
        raise Refused("INVALID_STATE", f"gate of visit {command.token} is not open")
    if (token.detail or {}).get("claimed_by") == command.to:
        return
    detail = {"claimed_by": command.to, "delegated_by": command.by}
    d.emit(e.TokenWaiting(d.seq, d.now, token.id, Waiting.HUMAN, None, None, None, detail))
