"""The waits of a run's visits, in words and as data: for what, since when, until when, and what would end each. Pure.

Owns the words. Must not read a store or a clock: times are instants, and saying how long that is from now is the
reader's. Must not decide: that a wait ends in one of these ways is the kernel's rule, told here again.
"""

from __future__ import annotations

from typing import Any

from treadle.graph.execution_graph import GraphNode
from treadle.kernel.defined import defining
from treadle.kernel.group_state import Group, SiteState
from treadle.kernel.state import RunState, Timer, Token
from treadle.model.ids import RUN_GATE
from treadle.model.states import RunStatus, TokenState, Waiting
from treadle.runtime.view.joins import missing_branches, needed_of, strategy_words
from treadle.runtime.view.shapes import EndsBy, WaitView
from treadle.runtime.view.visit_log import VisitRecord

Json = Any

MISSING_MAX = 20
"""Branches that are named where a join waits for them; the group has them all."""


def reason_of(token: Token) -> Waiting | None:
    """Why a visit waits; None: it does not. Work that nobody has taken up yet waits in its queue."""
    if token.state is TokenState.DISPATCHED:
        return Waiting.QUEUE
    return token.waiting if token.state is TokenState.WAITING else None


def wait_of(state: RunState, token: Token, record: VisitRecord) -> WaitView | None:
    """The wait of a visit; None if it does not wait."""
    reason = reason_of(token)
    if reason is None:
        return None
    paused = state.status is RunStatus.PAUSED
    ends = _ENDS[reason](state, token, record)
    timers = [] if reason is Waiting.SIBLINGS else _timers(state, token, paused)
    triggers = _triggers(state, token) if not token.held else []
    ends = [*_resume(paused), *ends, *triggers, *timers]
    until = min((end.at for end in ends if end.at is not None), default=None)
    return WaitView(token.id, token.node, reason.value, record.since, _detail(token, record), ends_by=ends, until=until)


def wait_of_run(state: RunState) -> WaitView | None:
    """The wait of a run that is out of time or over its budget: somebody gives it more, or aborts it."""
    if not state.has_gate:
        return None
    since = state.paused_at or state.started_at
    if state.is_over_budget:
        ends = EndsBy("operator", "an operator raises the budget or aborts the run", commands=["budget", "abort"])
        return WaitView(RUN_GATE, "", Waiting.HUMAN.value, since, {"title": "the run is over its budget"}, [ends])
    ends = EndsBy("operator", "an operator extends or aborts the run", commands=["extend", "abort"])
    detail = {"title": "the run is out of time"}
    return WaitView(RUN_GATE, "", Waiting.HUMAN.value, since, detail, [ends])


def _detail(token: Token, record: VisitRecord) -> Json:
    """What is known of the wait beside its reason."""
    found: dict[str, Json] = dict(token.detail) if isinstance(token.detail, dict) else {}
    if token.asked is not None and token.waiting is Waiting.HUMAN:
        question = token.asked
        found = {"title": question.opened.title, "assign": question.opened.assign, **found}
        if question.escalated is not None:
            found["escalated_to"] = question.escalated
        if question.answers:
            found["answers"] = len(question.answers)
    if record.queue is not None and token.state is TokenState.DISPATCHED:
        found["queue"] = record.queue
    if token.error is not None:
        found["after"] = {"kind": token.error.kind, "message": token.error.message}
    return found


def _resume(paused: bool) -> list[EndsBy]:
    words = "the run is paused: nothing goes on before an operator resumes it"
    return [EndsBy("operator", words, commands=["resume"])] if paused else []


def _human(_state: RunState, token: Token, _record: VisitRecord) -> list[EndsBy]:
    claimed = token.detail.get("claimed_by") if isinstance(token.detail, dict) else None
    asked = claimed or (token.asked.opened.assign if token.asked is not None else None)
    who = _people(asked)
    return [EndsBy("answer", f"an answer by {who}" if who else "an answer by anybody", who=asked)]


def _people(asked: Json) -> str:
    if isinstance(asked, str):
        return asked
    if isinstance(asked, list):
        return ", ".join(str(name) for name in asked)
    if isinstance(asked, dict):
        named = [*(asked.get("users") or ()), *(f"group {name}" for name in asked.get("groups") or ())]
        return ", ".join(str(name) for name in named)
    return ""


def _signal(_state: RunState, token: Token, _record: VisitRecord) -> list[EndsBy]:
    detail = token.detail if isinstance(token.detail, dict) else {}
    name, key = str(detail.get("signal")), detail.get("key")
    keyed = f" with key {key!r}" if detail.get("keyed") else ""
    return [EndsBy("signal", f"signal {name!r}{keyed}", signal=name, key=key)]


def _timer(_state: RunState, _token: Token, _record: VisitRecord) -> list[EndsBy]:
    return []  # `_timers` names it


def _subworkflow(_state: RunState, token: Token, record: VisitRecord) -> list[EndsBy]:
    child = token.child or record.child
    name = f" of {token.workflow!r}" if token.workflow else ""
    return [EndsBy("child", f"the end of run {child}{name}", run=child)]


def _external(_state: RunState, token: Token, _record: VisitRecord) -> list[EndsBy]:
    return [EndsBy("callback", f"the callback to attempt {token.attempt} of its webhook")]


def _queue(_state: RunState, _token: Token, record: VisitRecord) -> list[EndsBy]:
    words = f"a worker of queue {record.queue!r} takes it up" if record.queue else "an engine has room for it"
    return [EndsBy("worker", words, queue=record.queue)]


def _trigger(_state: RunState, _token: Token, _record: VisitRecord) -> list[EndsBy]:
    return []  # `_triggers` names them


def _mutex(state: RunState, token: Token, _record: VisitRecord) -> list[EndsBy]:
    name = str(token.detail["mutex"])
    mutex = state.mutexes.get(name)
    holders = [int(visit) for visit in mutex.holders] if mutex is not None else []
    before = mutex.queue.index(token.id) if mutex is not None and token.id in mutex.queue else 0
    held = f"visit {', '.join(map(str, holders))} leaves it" if holders else "its turn comes"
    line = f", {before} before it" if before else ""
    return [EndsBy("mutex", f"mutex {name!r}: {held}{line}", mutex=name, visits=holders)]


def _siblings(state: RunState, token: Token, _record: VisitRecord) -> list[EndsBy]:
    found = []
    for identity in token.arrivals:
        arrival = state.arrivals.get(identity)
        if arrival is None:
            continue
        if arrival.group is None:
            words = f"tokens that the join of {arrival.target!r} still waits for"
            found.append(EndsBy("arrivals", words, join=arrival.target))
            continue
        group = state.groups[arrival.group]
        site = next(site for site in group.sites if site.target == arrival.target)
        found.append(_at_join(state, group, site))
        if site.timer is not None and site.timer in state.timers and state.status is not RunStatus.PAUSED:
            due = state.timers[site.timer].due
            found.append(EndsBy("timer", f"the time of the join at {site.target!r} is over", at=due, join=site.target))
    return found


def _at_join(state: RunState, group: Group, site: SiteState) -> EndsBy:
    sync = state.graph.sites[site.index].sync
    needed = needed_of(sync.strategy, group.total)
    count = f"{site.arrived} of {needed}" if needed is not None else str(site.arrived)
    words = f"{count} branches have arrived at {site.target!r} ({strategy_words(sync)})"
    missing = missing_branches(group, site, MISSING_MAX)
    return EndsBy("arrivals", words, join=site.target, group=group.id, missing=missing)


def _timers(state: RunState, token: Token, paused: bool) -> list[EndsBy]:
    if paused:
        return []
    found = [state.timers[timer] for timer in token.timers if timer in state.timers]
    node = defining(state, token) if token.node in state.graph.nodes else None
    told = [_timer_ends(timer, token, node) for timer in found if timer.purpose in _TOLD]
    return sorted(told, key=lambda end: end.at or 0)


_TOLD = frozenset({"wait", "retry", "attempt", "gate_due", "trigger"})
"""Timers that end a wait; a reminder, an escalation or a lease does not."""


def _timer_ends(timer: Timer, token: Token, node: GraphNode | None) -> EndsBy:
    if timer.purpose == "wait":
        return EndsBy("timer", "its time has come", at=timer.due, then="goes on")
    if timer.purpose == "retry":
        return EndsBy("timer", f"attempt {token.attempt + 1} is due", at=timer.due, then="tries again")
    if timer.purpose == "trigger":
        words = f"transition {timer.target!r} is due"
        return EndsBy("timer", words, at=timer.due, then=f"transition {timer.target}", transition=timer.target)
    if timer.purpose == "gate_due":
        default = node is not None and node.task is not None and "on_expiry" in node.config
        then = "its `on_expiry` applies" if default else "fails with TASK_TIMEOUT"
        return EndsBy("timer", f"nobody has answered: {then}", at=timer.due, then=then)
    return EndsBy("timer", "its attempt is out of time: fails with TASK_TIMEOUT", at=timer.due, then="fails")


def _triggers(state: RunState, token: Token) -> list[EndsBy]:
    """Triggers of the node that end the visit or start a token beside it; those by the clock are timers."""
    node = state.graph.nodes.get(token.node)
    found = []
    for t in node.triggers if node is not None else ():
        trigger = t.definition.trigger
        if trigger is not None and trigger.signal is not None:
            words = f"signal {trigger.signal!r}: transition {t.id!r}"
            found.append(EndsBy("signal", words, signal=trigger.signal, transition=t.id))
        elif t.trigger_when is not None:
            found.append(EndsBy("condition", f"{t.trigger_when.text}: transition {t.id!r}", transition=t.id))
    return found


_ENDS = {
    Waiting.HUMAN: _human,
    Waiting.SIGNAL: _signal,
    Waiting.TIMER: _timer,
    Waiting.SUBWORKFLOW: _subworkflow,
    Waiting.EXTERNAL: _external,
    Waiting.QUEUE: _queue,
    Waiting.TRIGGER: _trigger,
    Waiting.MUTEX: _mutex,
    Waiting.SIBLINGS: _siblings,
}
