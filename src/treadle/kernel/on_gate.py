"""Human gates: a person answers, claims, hands on or comments a task (2.7, 5.5).

The first answer counts, or with a quorum the first data that enough people have given. The same answer by the same
person again is accepted without an effect; any other is refused with who answered, when and what.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from treadle.expression.values import json_equal
from treadle.expression.words import clip
from treadle.kernel import failure, invited, objections, suspend
from treadle.kernel.deciding import Deciding, Refused
from treadle.kernel.defined import defining
from treadle.kernel.gate_state import GateQuestion, PersonAnswer
from treadle.kernel.on_answer import known_visit
from treadle.kernel.state import Token
from treadle.model import commands as c
from treadle.model import effects as x
from treadle.model.errors import Error
from treadle.model.ids import RUN_GATE, TokenId
from treadle.model.references import Person
from treadle.model.states import GateState, RunStatus

Json = Any
COMMENT_MAX = 20_000
"""Characters of a comment: some ten pages. More is an attachment."""
_SHOWN_MAX = 300
"""Characters of an earlier answer in a refusal: enough to recognise it."""


def complete_gate(d: Deciding, command: c.CompleteGate) -> None:
    """Handle a person's answer."""
    _not_the_runs(d, command.token)
    by = command.person.name if command.person is not None else command.by
    token = d.state.tokens.get(command.token)
    if _is_repeated(d, token, command, by):
        return
    if token is None or token.gate is not GateState.OPEN or token.asked is None or token.id in d.state.deferred:
        if token is None and not 0 < command.token <= d.state.last_token:
            raise Refused("NOT_FOUND", f"run {d.state.run} has no visit {command.token}")
        text = f"gate of visit {command.token} cannot be answered: it is not waiting for an answer"
        raise Refused("INVALID_STATE", text)
    _refuse_uninvited(token, command.person)
    instead_of = _instead_of(token, by, command.force or _is_admin(command.person))
    _refuse_long(command.comment)
    objection = objections.to_answer(d.state, command)
    if objection is not None:
        raise Refused(objection.kind, objection.message, objection.problems)
    if invited.quorum_of(token.asked.opened.assign) is not None:
        _answer_one_of_many(d, token, command, by)
        return
    suspend.started_by(d, token, f"answer to {d.node(token).ref}")
    _completed(d, token, command.data, by, instead_of, command.comment)


def _completed(
    d: Deciding, token: Token, data: Json, by: str | None, instead_of: str | None = None, comment: str | None = None
) -> None:
    d.gate_completed(token.id, data, by, instead_of=instead_of, comment=comment)
    d.effect(x.CloseGate(token.id))
    if d.state.status is not RunStatus.PAUSED:
        suspend.resume_with(d, token, data, f"person {by}" if by else "person")


def _is_repeated(d: Deciding, token: Token | None, command: c.CompleteGate, by: str | None) -> bool:
    """Whether this person has given this answer before. Refuses another answer than the one that counts, and one by
    somebody else."""
    given = d.state.answers.get(command.token)
    if given is not None and given.at is not None and (token is None or token.attempt == given.attempt):
        counted = PersonAnswer(by="" if given.by is None else given.by, data=given.data, at=given.at)
        own = next((answer for answer in given.each if answer.by == by), None)
        same_person = own is not None or (not given.each and given.by == by)
    elif token is not None and token.gate is GateState.OPEN and token.asked is not None and by is not None:
        own = next((answer for answer in token.asked.answers if answer.by == by), None)
        if own is None:
            return False
        counted, same_person = own, True
    else:
        return False
    if same_person and json_equal((own or counted).data, command.data):
        return True
    raise Refused("INVALID_STATE", f"gate of visit {command.token} {_said(own or counted)}")


def _said(answer: PersonAnswer) -> str:
    at = datetime.fromtimestamp(answer.at / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    shown = clip(msgspec.json.encode(answer.data).decode(), _SHOWN_MAX)
    return f"was answered by {answer.by or 'somebody'} at {at} with {shown}"


def _answer_one_of_many(d: Deciding, token: Token, command: c.CompleteGate, by: str | None) -> None:
    """Record the answer of one person of a quorum, and complete the gate if that decides it."""
    assert token.asked is not None
    if by is None:
        text = f"gate of visit {token.id} waits for several people: say who answers"
        raise Refused("BAD_REQUEST", text)
    suspend.started_by(d, token, f"answer to {d.node(token).ref}")
    d.gate_answered(token.id, command.data, by, command.comment)
    outcome = invited.verdict(token.asked)
    if outcome == "agreed":
        _completed(d, token, command.data, by)
    elif outcome == "failed":
        if _takes_first(d, token):
            first = token.asked.answers[0]
            _completed(d, token, first.data, first.by)
            return
        d.effect(noted(token))
        if d.state.status is not RunStatus.PAUSED:
            fail_quorum(d, token)
    else:
        d.effect(noted(token))


def _takes_first(d: Deciding, token: Token) -> bool:
    """Whether the first answer counts when people cannot agree (`on_quorum_failed: first`)."""
    task = defining(d.state, token).task
    return task is not None and task.steps[0].action.config.get("on_quorum_failed") == "first"


def fail_quorum(d: Deciding, token: Token) -> None:
    """Fail the attempt of a visit whose people cannot agree any more."""
    assert token.asked is not None
    people, enough = invited.quorum_of(token.asked.opened.assign) or (0, 0)
    answers = token.asked.answers
    text = f"{len(answers)} of {people} people have answered {token.node!r}, and no answer can have {enough} equal"
    details = {"answers": [{"by": answer.by, "data": answer.data} for answer in answers]}
    failure.attempt_failed(d, token, Error("QUORUM_UNREACHABLE", text, details=details))


def claim_gate(d: Deciding, command: c.ClaimGate) -> None:
    """Let a person take on a human task."""
    token = _open(d, command.token)
    if _holder(token) == command.by:
        return
    _refuse_uninvited(token, command.person)
    _instead_of(token, command.by, force=False)
    _refuse_for_many(token, "claimed")
    d.gate_claimed(token.id, command.by)
    d.effect(noted(token))
    suspend.started_by(d, token, f"claim of {token.node}")


def release_gate(d: Deciding, command: c.ReleaseGate) -> None:
    """Give back a claimed human task. If nobody has claimed it, nothing changes."""
    token = _open(d, command.token)
    if _holder(token) is None:
        return
    instead_of = _instead_of(token, command.by, command.force or _is_admin(command.person))
    d.gate_released(token.id, command.by, instead_of)
    d.effect(noted(token))


def delegate_gate(d: Deciding, command: c.DelegateGate) -> None:
    """Pass a claimed human task on to somebody else; one that nobody has claimed may be given to somebody."""
    token = _open(d, command.token)
    if _holder(token) == command.to:
        return
    _refuse_uninvited(token, command.person)
    instead_of = _instead_of(token, command.by, command.force or _is_admin(command.person))
    _refuse_for_many(token, "passed on")
    d.gate_delegated(token.id, command.to, command.by, instead_of)
    d.effect(noted(token))


def comment_gate(d: Deciding, command: c.CommentGate) -> None:
    """Record what a person says about a human task. It stays open."""
    if command.id is not None and command.id in d.state.seen:
        return
    token = _open(d, command.token)
    if not command.text.strip() and not command.attachments:
        raise Refused("BAD_REQUEST", "a comment needs a text or an attachment")
    _refuse_long(command.text)
    for name in command.attachments:
        if name not in d.state.artifacts:
            raise Refused("NOT_FOUND", f"run {d.state.run} has no artifact {name!r}: upload it first")
    d.gate_commented(token.id, command.text, command.by, attachments=command.attachments, command=command.id)
    d.effect(noted(token))


def keep_artifact(d: Deciding, command: c.KeepArtifact) -> None:
    """Add an artifact of a person, such as an attachment. It never replaces one that the run itself has written."""
    if d.state.status not in (RunStatus.RUNNING, RunStatus.PAUSED):
        raise Refused("INVALID_STATE", f"run {d.state.run} is {d.state.status}")
    before = d.state.artifacts.get(command.name)
    if before is not None:
        if before["digest"] == command.digest and before["content_type"] == command.content_type:
            return
        if "by" not in before:
            text = f"run {d.state.run} has written the artifact {command.name!r} itself: choose another name"
            raise Refused("DUPLICATE", text)
    d.artifact_written(
        RUN_GATE, command.name, command.digest, size=command.size, content_type=command.content_type, by=command.by
    )


def remind(d: Deciding, token: Token) -> None:
    """Send a reminder of an open gate."""
    assert token.asked is not None
    d.gate_reminded(token.id, token.asked.reminded + 1)
    d.effect(x.RemindGate(token.id))
    d.effect(noted(token))


def escalate(d: Deciding, token: Token) -> None:
    """Ask more people, because nobody has answered for long."""
    assert token.asked is not None
    d.gate_escalated(token.id, token.asked.opened.escalate["to"])
    d.effect(x.EscalateGate(token.id))
    d.effect(noted(token))


def noted(token: Token) -> x.NoteGate:
    """The parts of an open gate that lists show, as they are now."""
    asked: GateQuestion | None = token.asked
    assert asked is not None
    return x.NoteGate(
        token.id,
        _holder(token),
        asked.escalated,
        reminded=asked.reminded,
        commented=asked.commented,
        answered=len(asked.answers),
    )


def _open(d: Deciding, visit: TokenId) -> Token:
    _not_the_runs(d, visit)
    token = known_visit(d, visit)
    if token.gate is not GateState.OPEN:
        raise Refused("INVALID_STATE", f"gate of visit {visit} is not open")
    return token


def _not_the_runs(d: Deciding, visit: TokenId) -> None:
    if visit == RUN_GATE and d.state.is_over_budget and d.state.has_gate:
        text = f"run {d.state.run} is over its budget: raise it or abort the run; there is nothing else to answer"
        raise Refused("INVALID_STATE", text)
    if visit == RUN_GATE and d.state.is_out_of_time:
        text = f"run {d.state.run} is out of time: extend it or abort it; there is nothing else to answer"
        raise Refused("INVALID_STATE", text)


def _holder(token: Token) -> str | None:
    holder = token.detail.get("claimed_by") if token.detail is not None else None
    return str(holder) if holder is not None else None


def _is_admin(person: Person | None) -> bool:
    return person is not None and person.admin


def _refuse_uninvited(token: Token, person: Person | None) -> None:
    if person is None or token.asked is None or invited.may_answer(token.asked, _holder(token), person):
        return
    text = f"gate of visit {token.id} is answered by the people it is assigned to, or by an admin"
    raise Refused("FORBIDDEN", f"{text}; {person.name!r} is not one of them")


def _refuse_for_many(token: Token, what: str) -> None:
    if token.asked is not None and invited.quorum_of(token.asked.opened.assign) is not None:
        text = f"gate of visit {token.id} waits for the answers of several people: it cannot be {what}"
        raise Refused("INVALID_STATE", text)


def _refuse_long(text: str | None) -> None:
    if text is not None and len(text) > COMMENT_MAX:
        raise Refused("BAD_REQUEST", f"a comment has at most {COMMENT_MAX} characters; attach longer texts")


def _instead_of(token: Token, by: str | None, force: bool) -> str | None:
    """The person somebody acts instead of, by force; None if the task is theirs or nobody's. Refuses without force."""
    holder = _holder(token)
    if holder is None or holder == by:
        return None
    if not force:
        text = f"gate of visit {token.id} is claimed by {holder!r}, who answers it, releases it or passes it on"
        raise Refused("INVALID_STATE", f"{text}; anybody else answers, releases or passes it on by force (--force)")
    return holder
