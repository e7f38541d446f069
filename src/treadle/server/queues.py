"""Queues: the work that waits in each, its workers, and its rules (rate, concurrency, weights)."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from treadle.runtime.queue.queue_settings import QueueRules, QueueView, Rate, read_rate
from treadle.server.bodies import bad
from treadle.server.call import HttpAnswer, HttpCall
from treadle.server.paging import PageQuery, page_of
from treadle.server.routes import OPERATOR, VIEWER, Route

RateText = Annotated[str, Meta(max_length=40, examples=["5/s", "100/m", "20/h"])]
Most = Annotated[int, Meta(ge=1)]


class RateView(Struct):
    """Starts in a second."""

    per_s: float


class RateGiven(Struct, forbid_unknown_fields=True):
    """Starts in a second, or a limit of starts in a time, as the rate of a workflow is written."""

    per_s: float | None = None
    limit: Most | None = None
    per_ms: Most | None = None


class RulesView(Struct):
    """Limits and weights. What is absent is not limited."""

    concurrency: int | None = None
    rate: RateView | None = None
    key_concurrency: int | None = None
    key_rate: RateView | None = None
    weights: dict[str, float] = {}


class QueueItem(Struct, kw_only=True):
    """A queue."""

    queue: Annotated[str, Meta(description="Its name; empty: work of the engines themselves under a limit.")]
    waiting: int
    claimed: int
    held: Annotated[int, Meta(description="Of paused runs: it cannot be claimed until they go on.")]
    oldest_ms: Annotated[int, Meta(description="How long the oldest waiting work has waited.")]
    workers: Annotated[list[str], Meta(description="Engines and workers on the store that serve it.")]
    outside: Annotated[list[str], Meta(description="Workers that claim from it over HTTP.")]
    rules: RulesView
    lacks: Annotated[dict[str, list[str]], Meta(description="Worker → what waiting work needs and it does not have.")]


class QueueList(Struct):
    """All queues that have work, rules or workers of their own."""

    items: list[QueueItem]
    next: str | None = None


class RulesGiven(Struct, forbid_unknown_fields=True):
    """The rules of a queue, as they shall be. What is absent is not limited."""

    concurrency: Annotated[Most | None, Meta(description="Most attempts at a time, over all workers.")] = None
    rate: Annotated[
        RateText | RateGiven | None,
        Meta(description="Most starts in a time: a text, `per_s`, or `limit` and `per_ms`."),
    ] = None
    key_concurrency: Annotated[Most | None, Meta(description="The same of each key.")] = None
    key_rate: RateText | RateGiven | None = None
    weights: Annotated[dict[str, float], Meta(description="Key → its weight in turns; other keys have 1.")] = {}


def _item(view: QueueView) -> QueueItem:
    shown: Any = msgspec.to_builtins(view)
    shown["rules"] = {"weights": {}, **shown["rules"]}
    return msgspec.convert(shown, QueueItem)


def _rate(given: str | RateGiven | None, name: str) -> Rate | None:
    if given is None or isinstance(given, str):
        return read_rate(given) if given is not None else None
    if given.limit is not None and given.per_ms is not None and given.per_s is None:
        return Rate(given.limit * 1_000 / given.per_ms)
    if given.per_s is None or given.limit is not None or given.per_ms is not None:
        raise bad("a rate has `per_s`, or `limit` and `per_ms`", place=f"$.{name}")
    return read_rate(f"{given.per_s:f}")


async def list_queues(call: HttpCall) -> HttpAnswer:
    shown, more = page_of(call, await call.client.queues(), lambda view: [view.queue])
    return HttpAnswer(QueueList([_item(view) for view in shown], more))


async def put_rules(call: HttpCall) -> HttpAnswer:
    name, given = call.path["name"], call.body
    before = {view.queue: view for view in await call.client.queues()}
    rules = QueueRules(
        concurrency=given.concurrency,
        rate=_rate(given.rate, "rate"),
        key_concurrency=given.key_concurrency,
        key_rate=_rate(given.key_rate, "key_rate"),
        weights=given.weights,
    )
    await call.client.set_queue(name, rules)
    is_new = name not in before or before[name].rules == QueueRules()
    after = {view.queue: view for view in await call.client.queues()}
    none = QueueView(name, waiting=0, claimed=0, held=0, oldest_ms=0, workers=(), rules=rules)
    return HttpAnswer(_item(after.get(name, none)), 201 if is_new and rules != QueueRules() else 200)


ROUTES = (
    Route(
        method="GET",
        path="/queues",
        handler=list_queues,
        access=VIEWER,
        about="none",
        noun="work",
        summary="Queues by name: what waits, who works, rules",
        query=PageQuery,
        answers={200: QueueList},
        problems=("INVALID_STATE",),
    ),
    Route(
        method="PUT",
        path="/queues/{name}",
        handler=put_rules,
        access=OPERATOR,
        about="none",
        noun="work",
        summary="Replace the rules of a queue",
        description="Every worker follows within a few seconds. An empty object removes all rules.",
        body=RulesGiven,
        answers={200: QueueItem, 201: QueueItem},
        problems=("INVALID_STATE",),
    ),
)
