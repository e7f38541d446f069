"""Budgets: what a run and its children may spend together, looked at before every attempt (6.8).

Theory of operation. A run that has a budget, or is called by one that has, keeps a `BudgetState`; any other run
keeps None there and pays one comparison for each attempt. Spending is counted where it is recorded: a visit when its
first attempt begins, cost and tokens with an answer (`note`). Before an attempt begins, `may_begin` looks.

A child has no limit of its parent's to look at, because its brothers and sisters spend from the same budget at the same
time. So it asks:

    child                               parent                                grandparent
    an attempt is about to begin
      └─ ReportSpending {spent, ask} ─► its own limits allow it?
                                          └─ ReportSpending {spent, ask} ───► its own limits allow it?
    begin ◄──── AllowAttempt {ask} ◄────────── AllowAttempt {ask} ◄─────────────┘

Promises
 1. Nothing begins once spent ≥ limit, here or in a run above, as far as the run above has heard. So a budget is
    exceeded by at most what is in flight.
 2. A question that is not allowed gets no answer, and nobody has to remember it. When the run that stands still goes
    on, it tells its children to look again, and they ask again.
 3. A question may be delivered twice: its name (`Ask.key`) is counted as one visit.
 4. Compensation asks nothing and spends nothing.
"""

from __future__ import annotations

from typing import Any

from treadle.kernel.deciding import Deciding, RunFails
from treadle.kernel.evolve_budget import is_near
from treadle.kernel.state import Token
from treadle.model import effects as x
from treadle.model.errors import Error
from treadle.model.ids import RUN_GATE, RunId, TokenId
from treadle.model.spending import DIGITS, PARTS, Ask, Spending, spending_of
from treadle.model.states import Mode, Waiting

Json = Any


def may_begin(d: Deciding, token: Token, *, allowed: bool = False) -> bool:
    """Whether the next attempt of a visit may begin. If not, the visit stays pending: the run stands still, or a run
    above is asked. `allowed`: the run above has answered."""
    if d.graph.nodes[token.node].task is None:
        return True  # it passes through, and nothing is attempted
    first = token.attempt == 0
    if stop_if_spent(d, first=first):
        return False
    if not allowed and is_below_another(d):
        _tell_parent(d, Ask(token.id, token.attempt + 1, first, (d.state.run,)))
        return False
    warn(d, visits=1 if first else 0)
    return True


def stop_if_spent(d: Deciding, *, first: bool) -> bool:
    """Stop the run as its budget says, if a part is spent. `first`: another visit would begin, not only another attempt
    of one. Returns whether it has stopped; raises RunFails if it fails."""
    found = exceeded(d, first=first)
    if found is None:
        return False
    limits = d.graph.definition.budget
    assert limits is not None
    part, spent, limit = found
    warn(d)  # time passes unnoticed: it may be near its limit and over it in one look
    d.budget_exceeded(part, spent, limit)
    text = f"budget.{part} is {_number(limit)} and {_number(spent)} is spent"
    if limits.on_exceeded == "fail":
        raise RunFails(Error("LIMIT_EXCEEDED", f"{text}; raise budget.{part} in the definition, or spend less"))
    text = f"{text}; raise the budget or abort the run"
    d.run_paused("budget", text)
    if limits.on_exceeded == "gate":
        d.effect(x.OpenGate(RUN_GATE, "", text))
    return True


def exceeded(d: Deciding, *, first: bool) -> tuple[str, float, float] | None:
    """The first part that is spent, how much of it, and its limit."""
    limits, budget = d.graph.definition.budget, d.state.budget
    if limits is None or budget is None:
        return None
    for part in PARTS:
        limit = budget.limit_of(part, limits)
        if limit is None or (part == "visits" and not first):
            continue
        spent = budget.spent_of(part, d.now)
        if spent >= limit:
            return part, spent, limit
    return None


def warn(d: Deciding, visits: int = 0) -> None:
    """Warn of every part of which most is spent, once. `visits` are about to begin."""
    limits, budget = d.graph.definition.budget, d.state.budget
    if limits is None or budget is None:
        return
    for part in PARTS:
        more = visits if part == "visits" else 0
        if part not in budget.warned and is_near(budget, limits, part, d.now, more):
            limit = budget.limit_of(part, limits)
            assert limit is not None
            d.budget_warned(part, budget.spent_of(part, d.now) + more, limit)


def note(d: Deciding, token: Token, report: Json, part: int) -> None:
    """Record what an attempt has spent, as its answer reports it. It is kept whether a budget counts it or not."""
    d.token_progress(token.id, token.attempt, "spent", report, part, spent=spending_of(report))
    if token.mode is Mode.FORWARD:
        counted(d)


def counted(d: Deciding) -> None:
    """Something was counted: warn, and tell the run above."""
    if d.state.budget is not None:
        warn(d)
        if is_below_another(d):
            _tell_parent(d, None)


def note_child(d: Deciding, token: TokenId, child: RunId, total: Spending) -> bool:
    """Record what a child has spent since its last report. A report that comes twice or out of order adds nothing.
    Returns whether something was added."""
    budget = d.state.budget
    if budget is None:
        return False
    before = budget.children.get(child, Spending())
    cost, tokens = round(max(total.cost - before.cost, 0), DIGITS), max(total.tokens - before.tokens, 0)
    if not cost and not tokens:
        return False
    _progress(d, token, Spending(cost, tokens, child=child))
    warn(d)
    return True


def is_below_another(d: Deciding) -> bool:
    """Whether a budget of a run above counts what this one spends."""
    return d.state.parent is not None and d.state.parent.budgeted


def allow(d: Deciding, token: TokenId, child: RunId, ask: Ask) -> bool:
    """Whether a child's attempt may begin, as far as this run decides. A visit is counted with the permission."""
    budget = d.state.budget
    if budget is None:
        return False
    known = ask.key in budget.allowed
    if not known and not d.running:
        if exceeded(d, first=ask.first) is not None or budget.exceeded is not None:
            return False  # it stands still; when it goes on, the child asks again
    elif not known and stop_if_spent(d, first=ask.first):
        return False
    if ask.first and not known:
        _progress(d, token, Spending(visits=1, child=child, ask=ask.key))
    warn(d)
    return True


def _progress(d: Deciding, token: TokenId, amount: Spending) -> None:
    found = d.state.tokens.get(token)
    data = {"run": amount.child, "cost": amount.cost, "tokens": amount.tokens, "visits": amount.visits}
    told = {name: value for name, value in data.items() if value}
    d.token_progress(token, found.attempt if found is not None else 0, "spent", told, 0, spent=amount)


def pass_up(d: Deciding, ask: Ask | None) -> None:
    """Tell the run above, if it counts what this one and its children spend, and hand a child's question on."""
    _tell_parent(d, Ask(ask.token, ask.attempt, ask.first, (*ask.runs, d.state.run)) if ask is not None else None)


def _tell_parent(d: Deciding, ask: Ask | None) -> None:
    parent, budget = d.state.parent, d.state.budget
    assert parent is not None and budget is not None
    d.effect(x.TellSpending(parent.run, parent.token, budget.spent, ask))


def wake_children(d: Deciding) -> None:
    """Tell the children to look again: this run goes on, and allows more perhaps."""
    if d.state.budget is None:
        return
    for token in d.state.tokens.values():
        if token.waiting is Waiting.SUBWORKFLOW and token.child is not None:
            d.effect(x.PermitChild(token.child))


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else str(value)
