"""One gate with everything about it: the question, its comments and attachments, the answers so far.

Owns the view that `Client.gate` and `GET /gates/{run}/{visit}` give. It is put together out of the run's state and of
the part of its history since the gate was opened. Must not decide anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from treadle.errors import CommandRefused
from treadle.kernel.state import RunState
from treadle.model import events as e
from treadle.model.ids import RUN_GATE, TokenId
from treadle.model.states import GateState
from treadle.runtime.execute.artifacts import Artifact
from treadle.store.gates import can

if TYPE_CHECKING:
    from treadle.runtime.run import Run

Json = Any
_PAGE = 5_000
"""Events read at a time."""


class GateComment(Struct, frozen=True):
    """What a person has said about a gate."""

    text: str
    by: str | None
    at: int
    attachments: list[str]
    """Names of artifacts of the run."""


class GateAnswer(Struct, frozen=True):
    """One person's answer."""

    data: Json
    by: str | None
    at: int
    comment: str | None = None


class GateView(Struct, kw_only=True):
    """A gate: its row, and more."""

    gate: str
    """RUN/VISIT"""
    run: str
    visit: int
    node: str
    workflow: str
    opened: int
    title: str | None
    assign: Json
    due: int | None
    claimed_by: str | None
    escalated: Json
    """The people it was escalated to; None: it was not."""
    reminded: int
    """Reminders sent."""
    commented: int
    answered: int
    """Answers of a quorum so far."""
    can: list[str]
    """What a person may do."""
    seq: int
    """The number of its `gate.opened`: a gate that is asked again is another one."""
    status: str
    """open, completed, expired, or closed: with its visit."""
    description: str | None
    """Markdown."""
    form: Json
    """JSON Schema of the answer; null: any."""
    input: Json
    """The input that is shown beside the form."""
    escalate: Json
    """{at, to}: when it is escalated, and to whom."""
    reminders: list[int]
    """When reminders were sent."""
    comments: list[GateComment]
    attachments: list[Artifact]
    """Artifacts that comments name."""
    answers: list[GateAnswer]
    """The answers of a quorum, in order."""
    answer: GateAnswer | None
    """The answer that counts."""


class GateOutcome(Struct, frozen=True):
    """What became of one of several answers."""

    run: str
    visit: int
    ok: bool
    problem: CommandRefused | None = None


async def view_of_gate(run: Run, visit: int) -> GateView:
    """The newest gate of a visit, open or not. Raises CommandRefused(NOT_FOUND)."""
    state = await run.state()
    token = state.tokens.get(TokenId(visit))
    if visit == RUN_GATE and state.has_gate:
        return _of_run(state, await _last_pause(run))
    opened = token.asked.opened if token is not None and token.asked is not None else None
    return await _viewed(run, state, visit, opened.seq - 1 if opened is not None else 0, "")


async def _viewed(run: Run, state: RunState, visit: int, after: int, node: str) -> GateView:
    """The gate whose history begins after an event; the node if the caller knows it."""
    found, since = await _since(run, visit, after)
    if not since:
        raise CommandRefused("NOT_FOUND", f"run {run.id} has no gate at visit {visit}")
    token = state.tokens.get(TokenId(visit))
    view = _folded(state, token.node if token is not None else node or found, since)
    if token is not None and token.gate is GateState.OPEN:
        view.can = list(can(TokenId(visit)))
    elif view.status == "open":
        view.status = "closed"
    if named := {name for comment in view.comments for name in comment.attachments}:
        known = await run.artifacts()
        view.attachments = [known[name] for name in sorted(named) if name in known]
    return view


async def view_again(run: Run, before: GateView) -> GateView:
    """The same gate as it is now; its history is read from its opening on."""
    if before.visit == RUN_GATE:
        return await view_of_gate(run, before.visit)
    return await _viewed(run, await run.state(), before.visit, before.seq - 1, before.node)


async def _since(run: Run, visit: int, after: int) -> tuple[str, list[e.Event]]:
    """The node of a visit, if the history is read from its beginning, and the events of its newest gate."""
    node, found = "", list[e.Event]()
    while batch := await run.history(after, _PAGE):
        after = batch[-1].seq
        for event in batch:
            if getattr(event, "token", None) != visit:
                continue
            if isinstance(event, e.TokenCreated):
                node = event.node
            elif event.type.startswith("gate."):
                found = [event] if isinstance(event, e.GateOpened) else [*found, event]
    return node, found


async def _last_pause(run: Run) -> e.RunPaused:
    """The pause of a run that is out of time."""
    after, found = 0, None
    while batch := await run.history(after, _PAGE):
        after = batch[-1].seq
        found = next((one for one in reversed(batch) if isinstance(one, e.RunPaused)), found)
    assert found is not None
    return found


def _folded(state: RunState, node: str, since: Sequence[e.Event]) -> GateView:
    opened = since[0]
    assert isinstance(opened, e.GateOpened)
    view = _empty(state, opened.token, node, opened.at)
    view.seq = opened.seq
    view.title, view.description, view.form, view.input = opened.title, opened.description, opened.form, opened.input
    view.assign, view.due, view.escalate = opened.assign, opened.due, opened.escalate
    for event in since[1:]:
        _fold(view, event)
    view.commented, view.answered = len(view.comments), len(view.answers)
    return view


def _fold(view: GateView, event: e.Event) -> None:
    match event:
        case e.GateClaimed():
            view.claimed_by = event.by
        case e.GateReleased():
            view.claimed_by = None
        case e.GateDelegated():
            view.claimed_by = event.to
        case e.GateCommented():
            view.comments.append(GateComment(event.text, event.by, event.at, list(event.attachments)))
        case e.GateAnswered():
            view.answers.append(GateAnswer(event.data, event.by, event.at, event.comment))
        case e.GateReminded():
            view.reminded = event.number
            view.reminders.append(event.at)
        case e.GateEscalated():
            view.escalated = event.to
        case e.GateCompleted():
            view.status, view.answer = "completed", GateAnswer(event.data, event.by, event.at, event.comment)
        case e.GateExpired():
            view.status = "expired"


def _of_run(state: RunState, paused: e.RunPaused) -> GateView:
    """The gate of a run that is out of time or over its budget: give it more, or abort it."""
    view = _empty(state, RUN_GATE, "", paused.at)
    view.title, view.can = paused.reason, list(can(RUN_GATE, paused.reason))
    return view


def _empty(state: RunState, token: TokenId, node: str, at: int) -> GateView:
    return GateView(
        gate=f"{state.run}/{token}",
        run=state.run,
        visit=token,
        node=node,
        workflow=state.graph.workflow_name,
        opened=at,
        title=None,
        assign=None,
        due=None,
        claimed_by=None,
        escalated=None,
        reminded=0,
        commented=0,
        answered=0,
        can=[],
        seq=0,
        status="open",
        description=None,
        form=None,
        input=None,
        escalate=None,
        reminders=[],
        comments=[],
        attachments=[],
        answers=[],
        answer=None,
    )
