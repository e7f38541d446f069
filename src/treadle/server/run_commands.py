"""Commands to a run, its visits, groups and compensations, and signals.

Owns the addresses. Every handler sends one command and answers with the thing afterwards; the kernel decides.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from msgspec import Meta, Struct

from treadle.runtime.run import CompensationStatus, Run
from treadle.runtime.view.shapes import GroupRow, RunDetail, VisitDetail
from treadle.server.call import HttpAnswer, HttpCall
from treadle.server.problems import HttpProblem, not_found
from treadle.server.routes import OPERATOR, Route
from treadle.server.run_views import run_of


class WhyGiven(Struct):
    """The reason, for the history."""

    reason: str | None = None


class MoreTime(Struct):
    """More time for a run."""

    ms: Annotated[int, Meta(ge=1, le=100 * 366 * 86_400_000)]


class BudgetRaise(Struct):
    """Amounts that are added to the limits of a budget. With the same `id` they count once."""

    cost: Annotated[float, Meta(gt=0)] | None = None
    tokens: Annotated[int, Meta(ge=1)] | None = None
    visits: Annotated[int, Meta(ge=1)] | None = None
    elapsed_ms: Annotated[int, Meta(ge=1)] | None = None
    id: Annotated[str, Meta(min_length=1, max_length=200)] | None = None


class SignalSent(Struct):
    """A signal. With the same `id` it counts once."""

    name: Annotated[str, Meta(min_length=1, max_length=200)]
    key: Any = None
    data: Any = None
    id: Annotated[str, Meta(min_length=1, max_length=200)] | None = None


class SignalledRuns(Struct):
    """The runs that have taken a signal."""

    runs: list[str]


class BranchesGiven(Struct):
    """Branches to add to an open group: one for each item, or so many."""

    items: list[Any] | None = None
    count: Annotated[int, Meta(ge=1)] | None = None
    id: Annotated[str, Meta(min_length=1, max_length=200)] | None = None


async def require_engine(call: HttpCall) -> Run:
    """The run of the path, when somebody coordinates the store."""
    await call.service.require_engine()
    return run_of(call)


async def _answer(run: Run) -> HttpAnswer:
    return HttpAnswer(await run.detail())


async def cancel(call: HttpCall) -> HttpAnswer:
    run = await require_engine(call)
    await run.cancel(call.body.reason, by=call.who.user)
    return await _answer(run)


async def pause(call: HttpCall) -> HttpAnswer:
    run = await require_engine(call)
    await run.pause(call.body.reason, by=call.who.user, strict=True)
    return await _answer(run)


async def resume(call: HttpCall) -> HttpAnswer:
    run = await require_engine(call)
    await run.resume(by=call.who.user, strict=True)
    return await _answer(run)


async def extend(call: HttpCall) -> HttpAnswer:
    run = await require_engine(call)
    await run.extend(call.body.ms, by=call.who.user)
    return await _answer(run)


async def raise_budget(call: HttpCall) -> HttpAnswer:
    run, given = await require_engine(call), call.body
    await run.raise_budget(
        cost=given.cost or 0,
        tokens=given.tokens or 0,
        visits=given.visits or 0,
        elapsed_ms=given.elapsed_ms or 0,
        by=call.who.user,
        id=given.id,
    )
    return await _answer(run)


async def abort(call: HttpCall) -> HttpAnswer:
    run = await require_engine(call)
    await run.abort(by=call.who.user, strict=True)
    return await _answer(run)


async def retry(call: HttpCall) -> HttpAnswer:
    run = await require_engine(call)
    await run.retry(by=call.who.user)
    return await _answer(run)


async def signal(call: HttpCall) -> HttpAnswer:
    run, given = await require_engine(call), call.body
    await run.signal(given.name, given.data, key=given.key, id=given.id)
    return await _answer(run)


async def signal_all(call: HttpCall) -> HttpAnswer:
    await call.service.require_engine()
    given: SignalSent = call.body
    taken = await call.client.signal_all(given.name, given.data, key=given.key, id=given.id, sees=call.sees)
    return HttpAnswer(SignalledRuns([str(run) for run in taken]))


async def retry_visit(call: HttpCall) -> HttpAnswer:
    run, visit = await require_engine(call), call.number("visit")
    await run.visit(visit)
    await run.retry(visit, by=call.who.user)
    return HttpAnswer(await run.visit(visit))


async def cancel_visit(call: HttpCall) -> HttpAnswer:
    run, visit = await require_engine(call), call.number("visit")
    await run.cancel(call.body.reason, visit=visit, by=call.who.user)
    return HttpAnswer(await run.visit(visit))


async def _on_group(call: HttpCall, act: Callable[[Run, str], Awaitable[None]]) -> HttpAnswer:
    """A group is addressed by its number, or by a name: the newest group of that name."""
    run, address = await require_engine(call), call.path["group"]
    group = await _group(run, address)
    await act(run, group.names[0] if group is not None else address)
    if group is None:
        raise not_found(f"group {address!r} now")  # the run has taken the name, and found nothing to do
    after = await run.group(group.group, limit=1)
    return HttpAnswer(GroupRow(**{name: getattr(after, name) for name in GroupRow.__struct_fields__}))


async def _group(run: Run, address: str) -> GroupRow | None:
    """The group of an address; None: no group has had this name. Raises CommandRefused(NOT_FOUND) for a number."""
    if address.isascii() and address.isdigit() and len(address) < 16:
        return await run.group(int(address), limit=1)
    named = [row for row in await run.groups(limit=sys.maxsize) if address in row.names]
    return named[-1] if named else None


async def cancel_group(call: HttpCall) -> HttpAnswer:
    return await _on_group(call, lambda run, name: run.cancel(group=name, by=call.who.user))


async def add_branches(call: HttpCall) -> HttpAnswer:
    given: BranchesGiven = call.body
    if (given.items is None) == (given.count is None):
        raise HttpProblem("BAD_REQUEST", "a group grows by `items` or by a `count`", place="$", remedy="give one")
    return await _on_group(call, lambda run, name: run.add_siblings(name, given.items, count=given.count, id=given.id))


async def close_group(call: HttpCall) -> HttpAnswer:
    return await _on_group(call, lambda run, name: run.close_group(name, by=call.who.user))


async def _on_record(call: HttpCall, act: str) -> HttpAnswer:
    run, record = await require_engine(call), call.number("record")
    await getattr(run, act)(record, by=call.who.user)
    for one in await run.compensations():
        if one.record == record:
            return HttpAnswer(one)
    raise not_found(f"compensation {record}")


async def retry_compensation(call: HttpCall) -> HttpAnswer:
    return await _on_record(call, "retry_compensation")


async def skip_compensation(call: HttpCall) -> HttpAnswer:
    return await _on_record(call, "skip_compensation")


def command(
    path: str, handler: Any, summary: str, *, body: Any = WhyGiven, answer: Any = RunDetail, more: tuple[str, ...] = ()
) -> Route:
    """A command to a run or to something inside it."""
    return Route(
        method="POST",
        path=f"/runs/{{run}}/{path}",
        handler=handler,
        access=OPERATOR,
        about="run",
        noun="runs",
        summary=summary,
        body=body,
        answers={200: answer},
        problems=("NOT_FOUND", "INVALID_STATE", "NO_ENGINE", *more),
    )


ROUTES = (
    command("cancel", cancel, "Cancel a run", body=WhyGiven),
    command("pause", pause, "Pause a run", body=WhyGiven),
    command("resume", resume, "Let a paused run go on", body=WhyGiven),
    command("extend", extend, "Give a run more time", body=MoreTime),
    command("budget", raise_budget, "Raise the budget of a run and let it go on", body=BudgetRaise),
    command("abort", abort, "End a run that is out of time and waits for somebody to decide", body=WhyGiven),
    command("retry", retry, "Try everything again that failed and that nothing handled", body=WhyGiven),
    command("signals", signal, "Send a signal to a run", body=SignalSent),
    Route(
        method="POST",
        path="/signals",
        handler=signal_all,
        access=OPERATOR,
        about="handler",
        noun="runs",
        summary="Send a signal to all runs that wait for it now",
        description="If no run waits for it, the list is empty and nothing is kept.",
        body=SignalSent,
        answers={200: SignalledRuns},
        problems=("NO_ENGINE",),
    ),
    command("visits/{visit}/retry", retry_visit, "Try a failed visit again", body=WhyGiven, answer=VisitDetail),
    command("visits/{visit}/cancel", cancel_visit, "Cancel a visit", body=WhyGiven, answer=VisitDetail),
    command(
        "groups/{group}/cancel", cancel_group, "Cancel the live branches of a group", body=WhyGiven, answer=GroupRow
    ),
    command("groups/{group}/add", add_branches, "Add branches to an open group", body=BranchesGiven, answer=GroupRow),
    command("groups/{group}/close", close_group, "Add no more branches to a group", body=WhyGiven, answer=GroupRow),
    command(
        "compensations/{record}/retry",
        retry_compensation,
        "Try to undo a visit again",
        body=WhyGiven,
        answer=CompensationStatus,
    ),
    command(
        "compensations/{record}/skip",
        skip_compensation,
        "Leave a visit undone",
        body=WhyGiven,
        answer=CompensationStatus,
    ),
)
