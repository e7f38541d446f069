"""Metrics: what a Prometheus server scrapes (5.7).

Owns the counting for one service. What happens in this process is counted as it becomes durable
(`Measured.observe`), from the beginning of the service: some 4 µs a visit. What the store holds is read when somebody
scrapes; reading it takes a twentieth of the time at most. Promises that labels are bounded: a workflow or node beyond
the limit is counted as `other`. A run that began before the service did is looked up at the next scrape, so that its
end counts for its workflow. Several nodes each tell their own part; what the store holds, each tells alike.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from prometheus_client import Counter, Histogram
from prometheus_client.exposition import generate_latest

from treadle.errors import TreadleError
from treadle.model import events as e
from treadle.runtime.client import Client
from treadle.runtime.engine import Engine
from treadle.server.call import HttpAnswer, HttpCall
from treadle.server.followers import followers_of
from treadle.server.metric_families import MetricFamilies
from treadle.server.problems import HttpProblem
from treadle.server.routes import OPEN, VIEWER, Route
from treadle.server.service import Service

OTHER = "other"
WORKFLOWS_MAX = 200
NODES_MAX = 2_000
"""Labels of each kind: a time series costs a scraper some kilobytes."""
VISITS_MAX = 100_000
"""Visits under way whose times are remembered; those beyond are not measured."""
FRESH_S = 5.0
"""How long what was read from the store is told again at most."""
FRESH_PARTS = 20
"""It is told again for this many times as long as reading it took: scrapes in a row cost the store 5 % of its time."""
UNPLACED_MAX = 10_000
"""Events of runs whose workflow is not known, kept for the next scrape; of any more the oldest are not counted."""
LOOKED_UP_MAX = 1_000
"""Runs that one scrape looks up: some 50 ms."""
ENDINGS: dict[type, str] = {
    e.RunCompleted: "completed",
    e.RunFailed: "failed",
    e.RunCancelled: "cancelled",
    e.RunTimedOut: "timed_out",
    e.RunCompensated: "compensated",
    e.RunCompensationFailed: "compensation_failed",
}


class Measured(MetricFamilies):
    """The metrics of one service."""

    def __init__(self, client: Client) -> None:
        super().__init__()
        self._client = client
        self._workflow_of: dict[str, str] = {}
        self._visits: dict[tuple[str, int], tuple[str, int, int]] = {}
        self._workflows: set[str] = set()
        self._nodes: set[tuple[str, str]] = set()
        self._places: dict[tuple[str, str], tuple[Histogram, Histogram]] = {}
        """Workflow and node → their times of waiting and of work."""
        self._counted: dict[tuple[Any, ...], Counter] = {}
        """Labels → the counter with them. Finding it in its family takes longer than counting."""
        self._ways: dict[type, Callable[[str, Any], None]] = {
            e.RunStarted: self._started,
            e.TokenCreated: self._created,
            e.TokenStarted: self._began,
            e.TokenCompleted: self._ended,
            e.TokenFailed: self._ended,
            e.TokenTimedOut: self._ended,
            e.TokenCancelled: self._ended,
            e.TokenRetryScheduled: self._retried,
            **dict.fromkeys(ENDINGS, self._over),
        }
        """What is counted of events, by their types."""
        self._unplaced: deque[tuple[str, Any]] = deque(maxlen=UNPLACED_MAX)
        self._fresh_until = float("-inf")
        self._reading = asyncio.Lock()

    # What happens

    def observe(self, commits: Sequence[Any], seconds: float) -> None:
        """A batch of decisions was written."""
        self.commit_seconds.observe(seconds)
        self.commit_decisions.observe(len(commits))
        ways = self._ways
        for commit in commits:
            events = commit.events
            if commit.cuts:
                events = [*events[:1], *events[max(commit.cuts[-1], 1) :]]  # not what a fork has inherited
            for event in events:
                if type(event) in ways:
                    self._event(commit.run, event)

    def _event(self, run: str, event: Any) -> None:
        if run in self._workflow_of or type(event) is e.RunStarted:
            self._ways[type(event)](run, event)
        else:
            self._unplaced.append((run, event))

    def _started(self, run: str, event: e.RunStarted) -> None:
        workflow = self._workflow_of[run] = self._flow(event.workflow)
        self._counter(self.starts, workflow).inc()

    def _created(self, run: str, event: e.TokenCreated) -> None:
        if len(self._visits) < VISITS_MAX:
            self._visits[run, event.token] = (event.node, event.at, 0)

    def _began(self, run: str, event: e.TokenStarted) -> None:
        known = self._visits.get((run, event.token))
        if known is not None and not known[2]:
            node, created, _ = known
            self._visits[run, event.token] = (node, created, event.at)
            self._times(self._place(run, node))[0].observe((event.at - created) / 1_000)

    def _ended(self, run: str, event: Any) -> None:
        known = self._visits.pop((run, event.token), None)
        if known is not None and known[2]:
            place = self._place(run, known[0])
            self._times(place)[1].observe((event.at - known[2]) / 1_000)
            output = getattr(event, "output", None)
            if isinstance(output, dict) and isinstance(output.get("usage"), dict):
                self._model(place, output)

    def _retried(self, run: str, event: e.TokenRetryScheduled) -> None:
        node = self._visits.get((run, event.token), (OTHER, 0, 0))[0]
        self._counter(self.retries, *self._place(run, node)).inc()

    def _over(self, run: str, event: Any) -> None:
        self._counter(self.ends, self._workflow_of.pop(run), ENDINGS[type(event)]).inc()

    def _counter(self, family: Counter, *labels: str) -> Counter:
        """A counter with its labels, of which there are not many (`WORKFLOWS_MAX`, `NODES_MAX`)."""
        known = self._counted.get((family, *labels))
        if known is None:
            known = self._counted[family, *labels] = family.labels(*labels)
        return known

    def answered(self, route: Route, status: int) -> None:
        """A request was answered."""
        known = self._counted.get((route, status))
        if known is None:
            known = self._counted[route, status] = self.requests.labels(route.method, route.full_path, str(status))
        known.inc()

    def _model(self, place: tuple[str, str], output: dict[str, Any]) -> None:
        """What a call of a language model has used, as its action reports it."""
        for direction in ("input", "output"):
            count = output["usage"].get(f"{direction}_tokens")
            if isinstance(count, int) and count > 0:
                self.model_tokens.labels(*place, direction).inc(count)
        cost = output.get("cost")
        if isinstance(cost, int | float) and cost > 0:
            self.model_cost.labels(*place).inc(cost)

    def _times(self, place: tuple[str, str]) -> tuple[Histogram, Histogram]:
        """Where times of a node are counted. It is kept: finding it by its labels takes longer than counting."""
        known = self._places.get(place)
        if known is None:
            waiting, working = (self.visit_seconds.labels(*place, phase) for phase in ("waiting", "working"))
            known = self._places[place] = (waiting, working)
        return known

    def _flow(self, workflow: str) -> str:
        if workflow in self._workflows or len(self._workflows) < WORKFLOWS_MAX:
            self._workflows.add(workflow)
            return workflow
        return OTHER

    def _place(self, run: str, node: str) -> tuple[str, str]:
        workflow = self._workflow_of.get(run, OTHER)
        place = (workflow, node)
        if workflow != OTHER and (place in self._nodes or len(self._nodes) < NODES_MAX):
            self._nodes.add(place)
            return place
        return workflow, OTHER

    # What the store holds

    async def text(self) -> bytes:
        """Everything, in the text format of Prometheus."""
        loop = asyncio.get_running_loop()
        async with self._reading:
            await self._place_all()
            began = loop.time()
            if began >= self._fresh_until:
                await self._look()
                read = loop.time()
                self._fresh_until = read + min(FRESH_S, FRESH_PARTS * (read - began))
        return await asyncio.to_thread(generate_latest, self.registry)

    async def _place_all(self) -> None:
        """Counts what runs did whose beginning this process has not seen."""
        waiting = list(self._unplaced)
        self._unplaced.clear()
        missing = dict.fromkeys(run for run, _ in waiting if run not in self._workflow_of)
        for number, run in enumerate(missing):
            workflow = OTHER
            if number < LOOKED_UP_MAX:
                with suppress(TreadleError):  # it may be gone
                    workflow = self._flow((await self._client.run(run).info()).workflow)
            self._workflow_of[run] = workflow
        for run, event in waiting:
            if run in self._workflow_of:
                self._event(run, event)

    async def _look(self) -> None:
        client = self._client
        self.runs.clear()
        for workflow, counts in (await client.run_counts()).items():
            for status, count in counts.items():
                self.runs.labels(self._flow(workflow), status).inc(count)
        gates = await client.count_gates()
        self.gates_open.set(sum(gate.count for gate in gates))
        self.gates_overdue.set(sum(gate.overdue for gate in gates))
        self.dead_letters.set(len(await client.dead_letters()))
        nodes = await client.nodes()
        self.timers_due.set(sum(node.timers_due for node in nodes))
        self.timer_lag.set(max((node.oldest_timer_ms for node in nodes), default=0) / 1_000)
        self.inbox_lag.set(max((node.oldest_ms for node in nodes), default=0) / 1_000)
        with suppress(TreadleError):  # a store without queues
            for queue in await client.queues():
                self.queue_depth.labels(queue.queue).set(queue.waiting)
                self.queue_claimed.labels(queue.queue).set(queue.claimed)
                self.queue_oldest.labels(queue.queue).set(queue.oldest_ms / 1_000)
        if isinstance(client, Engine):
            self.shards.set(client.shards_owned)


def measured(service: Service) -> Measured:
    """The metrics of a service. The application asks when it is made, which begins to measure."""
    known: Measured | None = service.parts.get("metrics")
    if known is None:
        known = service.parts["metrics"] = Measured(service.client)
        if isinstance(service.client, Engine):
            service.client.observe(known.observe)
    return known


def count_request(service: Service, route: Route, status: int) -> None:
    """Counts an answer."""
    measured(service).answered(route, status)


async def metrics(call: HttpCall) -> HttpAnswer:
    await _admit(call)
    known = measured(call.service)
    known.readers.set(followers_of(call.service).count)
    return HttpAnswer(await known.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


async def _admit(call: HttpCall) -> None:
    """Addresses that the operator names need no key; everybody else needs one that may read."""
    host = call.request.client.host if call.request.client is not None else ""
    with suppress(ValueError):
        address = ipaddress.ip_address(host)
        if any(address in ipaddress.ip_network(one) for one in call.service.settings.metrics_from):
            return
    who = await call.service.authenticate(call.request)
    if not VIEWER.admits(who.roles):
        raise HttpProblem("FORBIDDEN", f"this needs the role {VIEWER.words}")
    if who.workflows is not None:
        raise HttpProblem("FORBIDDEN", "this key is for some workflows only, and these figures are about all")


ROUTES = (
    Route(
        method="GET",
        path="/metrics",
        root=True,
        handler=metrics,
        access=OPEN,
        about="none",
        noun="service",
        summary="Metrics for Prometheus",
        description="Needs a key that may read, except from addresses that the setting `server.metrics_from` names.",
        answers={200: bytes},
        answer_type="text/plain",
        problems=("UNAUTHENTICATED", "FORBIDDEN"),
    ),
)
