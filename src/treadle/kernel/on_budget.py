"""Commands about budgets (6.8): an operator raises one, a child run reports and asks, a parent allows. The rules are in
`budget`."""

from __future__ import annotations

from treadle.kernel import begin, budget, on_operator
from treadle.kernel.deciding import Deciding, Refused
from treadle.model import commands as c
from treadle.model import effects as x
from treadle.model.ids import RunId
from treadle.model.spending import PARTS, Ask
from treadle.model.states import RunStatus, TokenState


def raise_budget(d: Deciding, command: c.RaiseBudget) -> None:
    """Add to the limits. A run that stands still because of its budget goes on; one that a person paused does not."""
    if command.id is not None and command.id in d.state.seen:
        return
    if d.state.status not in (RunStatus.RUNNING, RunStatus.PAUSED):
        raise Refused("INVALID_STATE", f"run {d.state.run} is {d.state.status}: it spends nothing more")
    _check(d, command)
    d.budget_raised(
        command.by,
        cost=command.cost,
        tokens=command.tokens,
        visits=command.visits,
        elapsed_ms=command.elapsed_ms,
        command=command.id,
    )
    if d.state.is_over_budget:
        on_operator.resume(d, command.by, None)


def _check(d: Deciding, command: c.RaiseBudget) -> None:
    state = d.state
    limits, spending = d.graph.definition.budget, state.budget
    if limits is None or spending is None:
        remedy = ""
        if state.parent is not None and state.parent.budgeted:
            remedy = f"; it spends from that of run {state.parent.run}, or of one above: raise it there"
        raise Refused("INVALID_STATE", f"run {state.run} has no budget of its own{remedy}")
    given = [(part, getattr(command, part)) for part in PARTS]
    if not any(more for _, more in given):
        raise Refused("BAD_REQUEST", f"say what to raise and by how much: {', '.join(PARTS)}")
    for part, more in given:
        if more < 0:
            raise Refused("BAD_REQUEST", f"{part}: a budget is raised by a positive amount, got {more}")
        if more and spending.limit_of(part, limits) is None:
            limited = ", ".join(name for name in PARTS if spending.limit_of(name, limits) is not None)
            raise Refused("BAD_REQUEST", f"the budget of run {state.run} has no limit on {part}; it limits {limited}")


def report_spending(d: Deciding, command: c.ReportSpending) -> None:
    """Count what a child has spent, and answer its question if this run and those above allow the attempt."""
    if d.state.budget is None or d.state.status not in (RunStatus.RUNNING, RunStatus.PAUSED):
        return
    news = budget.note_child(d, command.token, command.child, command.spent)
    ask = command.ask
    if ask is not None and budget.allow(d, command.token, command.child, ask):
        if budget.is_below_another(d):
            budget.pass_up(d, ask)
        else:
            _answer(d, ask.runs, ask)
    elif news and budget.is_below_another(d):
        budget.pass_up(d, None)


def allow_attempt(d: Deciding, command: c.AllowAttempt) -> None:
    """Begin the attempt that a run above allows, or hand the permission on to the child that has asked. Without a
    question: begin everything that may begin now."""
    ask = command.ask
    if ask is None:
        budget.wake_children(d)
        if d.running:
            d.ready.extend(t.id for t in d.state.tokens.values() if t.state is TokenState.PENDING)
        return
    if ask.runs:
        _answer(d, ask.runs, ask)
        return
    token = d.state.tokens.get(ask.token)
    if token is not None and token.attempt + 1 == ask.attempt:
        begin.begin(d, token, allowed=True)


def _answer(d: Deciding, runs: tuple[RunId, ...], ask: Ask) -> None:
    d.effect(x.PermitChild(runs[-1], Ask(ask.token, ask.attempt, ask.first, runs[:-1])))
