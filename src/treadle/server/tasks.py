"""Work of queues for workers outside: claim, heartbeat, complete, fail, progress (5.4 "Pull workers").

Routes as data; the meaning is in `Client.tasks`. A claim waits as long as the worker asks for, and ends early when the
worker has gone or the service stops: work claimed for nobody would be lost for a lease."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from treadle.model.errors import Error
from treadle.runtime.queue.wanted_work import LEASE_MAX_MS, LEASE_MIN_MS, LIMIT_MAX, WorkWanted
from treadle.server.call import HttpAnswer, HttpCall
from treadle.server.problems import not_found
from treadle.server.routes import WORKER, Route

Lease = Annotated[
    int,
    Meta(ge=LEASE_MIN_MS, le=LEASE_MAX_MS, description="How long the work is trusted to the worker without a sign."),
]
Name = Annotated[str, Meta(min_length=1, max_length=200)]


class ClaimGiven(Struct, kw_only=True, forbid_unknown_fields=True):
    """What a worker wants to do."""

    queues: Annotated[list[Name], Meta(min_length=1, max_length=100)]
    worker: Annotated[str, Meta(min_length=1, max_length=200, description="The worker's name, for people.")]
    kinds: Annotated[list[Name] | None, Meta(description="Kinds of work it can do, such as `work`; all if absent.")] = (
        None
    )
    limit: Annotated[int, Meta(ge=1, le=LIMIT_MAX)] = 1
    lease_ms: Lease = 15_000
    wait_ms: Annotated[int, Meta(ge=0, le=60_000, description="How long to wait for work, if there is none.")] = 0


class TaskItem(Struct, kw_only=True):
    """Work to be done."""

    task: Annotated[str, Meta(description="Names this claim; results are given under it.")]
    run: str
    workflow: str
    node: str
    visit: int
    attempt: int
    queue: str
    kind: Annotated[str, Meta(examples=["work"])]
    config: Annotated[Any, Meta(description="Of `work`: {name, config}. Of other kinds: the action's settings.")]
    input: Any
    idempotency_key: Annotated[str, Meta(description="The same whenever this work is done again by itself.")]
    lease_until: int
    execution: Annotated[Any, Meta(description="Timeout and retries of the action, where it has any.")] = None
    trace: Annotated[
        dict[str, str] | None,
        Meta(description="Headers of W3C Trace Context for what the worker sends; null if runs are not traced."),
    ] = None


class TaskList(Struct):
    """Work that the worker has now."""

    tasks: list[TaskItem]


class HeartbeatGiven(Struct, forbid_unknown_fields=True):
    """A sign of life."""

    lease_ms: Lease = 15_000


class LeaseView(Struct):
    """The claim as it stands."""

    task: str
    lease_until: Annotated[
        int | None, Meta(description="null: the lease has run out, and nobody has taken the work; its result counts.")
    ]


class ResultGiven(Struct, forbid_unknown_fields=True):
    """A result."""

    output: Any = None
    cost: Annotated[float, Meta(ge=0)] | None = None
    usage: Annotated[dict[str, Any] | None, Meta(description="What was used up: tokens, seconds, bytes.")] = None


class TaskErrorGiven(Struct, forbid_unknown_fields=True):
    """Why work has failed."""

    message: Annotated[str, Meta(max_length=100_000)]
    kind: Name = "TASK_FAILED"
    retryable: bool = False
    details: Any = None


class FailureGiven(Struct, forbid_unknown_fields=True):
    """A failure."""

    error: TaskErrorGiven
    cost: Annotated[float, Meta(ge=0)] | None = None
    usage: Annotated[dict[str, Any] | None, Meta(description="What was used up all the same.")] = None


class ProgressGiven(Struct, forbid_unknown_fields=True):
    """Something said while the work goes on."""

    name: Name
    data: Any = None


class Accepted(Struct):
    """The report counts."""

    task: str
    accepted: bool = True


async def claim(call: HttpCall) -> HttpAnswer:
    given: ClaimGiven = call.body
    await call.service.require_engine()
    wanted = WorkWanted(
        queues=tuple(dict.fromkeys(given.queues)),
        worker=given.worker,
        kinds=tuple(given.kinds) if given.kinds is not None else None,
        limit=given.limit,
        lease_ms=given.lease_ms,
        wait_ms=given.wait_ms,
    )
    found = await call.client.tasks.claim(wanted, call.sees, _is_there(call))
    return HttpAnswer(TaskList([msgspec.convert(one, TaskItem, from_attributes=True) for one in found]))


def _is_there(call: HttpCall) -> Callable[[], Awaitable[bool]]:
    async def is_there() -> bool:
        return not call.service.draining.is_set() and not await call.request.is_disconnected()

    return is_there


async def heartbeat(call: HttpCall) -> HttpAnswer:
    task = await _task(call)
    return HttpAnswer(LeaseView(task, await call.client.tasks.heartbeat(task, call.body.lease_ms)))


def spent_in(given: ResultGiven | FailureGiven) -> Any:
    """What an answer reports as spent, {cost, usage}; None: nothing."""
    spent = {"cost": given.cost, "usage": given.usage}
    return {name: value for name, value in spent.items() if value is not None} or None


async def complete(call: HttpCall) -> HttpAnswer:
    task, given = await _task(call), call.body
    await call.client.tasks.complete(task, given.output, spent_in(given))
    return HttpAnswer(Accepted(task))


async def fail(call: HttpCall) -> HttpAnswer:
    task, given = await _task(call), call.body.error
    error = Error(given.kind, given.message, retryable=given.retryable, details=given.details)
    await call.client.tasks.fail(task, error, spent_in(call.body))
    return HttpAnswer(Accepted(task))


async def progress(call: HttpCall) -> HttpAnswer:
    task = await _task(call)
    await call.client.tasks.progress(task, call.body.name, call.body.data)
    return HttpAnswer(Accepted(task))


async def _task(call: HttpCall) -> str:
    """The task of the path, if it is one of a workflow the caller may see."""
    task = call.path["task"]
    workflow = await call.client.tasks.workflow(task) if call.who.workflows is not None else ""
    if workflow is None or (workflow and not call.sees(workflow)):
        raise not_found("such task")
    return task


def _report(verb: str, handler: Any, summary: str, body: Any, answer: Any, *, audited: bool | None = None) -> Route:
    return Route(
        method="POST",
        path=f"/tasks/{{task}}/{verb}",
        handler=handler,
        access=WORKER,
        about="handler",
        noun="work",
        summary=summary,
        body=body,
        answers={200: answer},
        problems=("NOT_FOUND", "LATE_RESULT", "NO_ENGINE"),
        audited=audited,
    )


ROUTES = (
    Route(
        method="POST",
        path="/tasks/claim",
        handler=claim,
        access=WORKER,
        about="handler",
        noun="work",
        summary="Claim work of queues",
        description="Waits up to `wait_ms` for work. Every claim has a `task` of its own: claimed again, work has"
        " another. The history of the run names the worker.",
        body=ClaimGiven,
        answers={200: TaskList},
        problems=("NO_ENGINE",),
        audited=False,
    ),
    _report("heartbeat", heartbeat, "Say that the work goes on", HeartbeatGiven, LeaseView, audited=False),
    _report("complete", complete, "Give the result", ResultGiven, Accepted),
    _report("fail", fail, "Say that the work has failed", FailureGiven, Accepted),
    _report("progress", progress, "Say something while the work goes on", ProgressGiven, Accepted, audited=False),
)
