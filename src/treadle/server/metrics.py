"""Metrics: what a Prometheus server scrapes (5.7).

Owns the names and labels of all metrics of one service. What happens in this process is counted as it becomes durable
(`Measured.observe`), from the beginning of the service: some 5 µs a visit. What the store holds is read when somebody
scrapes; reading it takes a twentieth of the time at most. Promises that labels are bounded: a workflow or node beyond
the limit is counted as `other`. A run that began before the service did is looked up at the next scrape, so that its
end counts for its workflow. Several nodes each tell their own part; what the store holds, each tells alike.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import generate_latest

from treadle.errors import TreadleError
from treadle.model import events as e
from treadle.runtime.client import Client
from treadle.runtime.engine import Engine
from treadle.server.call import HttpAnswer, HttpCall
from treadle.server.followers import followers_of
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
SECONDS = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10, 60, 600, 3_600, 86_400)
COMMIT_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5)
ENDINGS: dict[type, str] = {
    e.RunCompleted: "completed",
    e.RunFailed: "failed",
    e.RunCancelled: "cancelled",
    e.RunTimedOut: "timed_out",
    e.RunCompensated: "compensated",
    e.RunCompensationFailed: "compensation_failed",
}


class Measured:
    """The metrics of one service."""

    def __init__(self, client: Client) -> None:
        self.registry = registry = CollectorRegistry()
        self._client = client
        self._workflow_of: dict[str, str] = {}
        self._visits: dict[tuple[str, int], tuple[str, int, int]] = {}
        self._workflows: set[str] = set()
        self._nodes: set[tuple[str, str]] = set()
        self._places: dict[tuple[str, str], tuple[Histogram, Histogram]] = {}
        """Workflow and node → their times of waiting and of work."""
        self._unplaced: deque[tuple[str, Any]] = deque(maxlen=UNPLACED_MAX)
        self._fresh_until = float("-inf")
        self._reading = asyncio.Lock()
        flow, by_node = ["workflow"], ["workflow", "node"]
        self.starts = Counter("treadle_starts", "Runs started", flow, registry=registry)
        self.ends = Counter("treadle_ends", "Runs ended", [*flow, "status"], registry=registry)
        self.retries = Counter("treadle_retries", "Attempts tried again", by_node, registry=registry)
        self.visit_seconds = Histogram(
            "treadle_visit_seconds",
            "Time of visits: waiting before their work began, and working",
            [*by_node, "phase"],
            buckets=SECONDS,
            registry=registry,
        )
        self.commit_seconds = Histogram(
            "treadle_commit_seconds", "Time to write a batch of decisions", buckets=COMMIT_SECONDS, registry=registry
        )
        self.commit_decisions = Histogram(
            "treadle_commit_decisions",
            "Decisions in one transaction",
            buckets=(1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000),
            registry=registry,
        )
        self.model_tokens = Counter(
            "treadle_model_tokens", "Tokens of language models", [*by_node, "direction"], registry=registry
        )
        self.model_cost = Counter("treadle_model_cost", "Cost of language models", by_node, registry=registry)
        self.timers_due = Gauge("treadle_timers_due", "Timers that are due and have not fired", registry=registry)
        self.timer_lag = Gauge("treadle_timer_lag_seconds", "How late the oldest due timer is", registry=registry)
        self.requests = Counter(
            "treadle_http_requests", "Requests answered", ["method", "route", "status"], registry=registry
        )
        self.readers = Gauge("treadle_stream_readers", "Readers of streams", registry=registry)
        self.runs = Gauge("treadle_runs", "Runs in the store", [*flow, "status"], registry=registry)
        self.gates_open = Gauge("treadle_gates_open", "Gates that wait for somebody", registry=registry)
        self.gates_overdue = Gauge("treadle_gates_overdue", "Open gates past their due time", registry=registry)
        self.queue_depth = Gauge("treadle_queue_depth", "Work that waits in a queue", ["queue"], registry=registry)
        self.queue_claimed = Gauge(
            "treadle_queue_claimed", "Work of a queue that is claimed", ["queue"], registry=registry
        )
        self.queue_oldest = Gauge(
            "treadle_queue_oldest_seconds", "Age of the oldest work that waits", ["queue"], registry=registry
        )
        self.dead_letters = Gauge("treadle_dead_letters", "Messages given up", registry=registry)
        self.inbox_lag = Gauge("treadle_inbox_lag_seconds", "How far behind the slowest node is", registry=registry)
        self.shards = Gauge("treadle_shards_owned", "Shards this node decides for", registry=registry)

    # What happens

    def observe(self, commits: Sequence[Any], seconds: float) -> None:
        """A batch of decisions was written."""
        self.commit_seconds.observe(seconds)
        self.commit_decisions.observe(len(commits))
        for commit in commits:
            inherited = commit.cuts[-1] if commit.cuts else 1
            for event in (*commit.events[:1], *commit.events[inherited:]):
                self._event(commit.run, event)

    def _event(self, run: str, event: Any) -> None:
        kind = type(event)
        if kind is e.RunStarted:
            workflow = self._workflow_of[run] = self._flow(event.workflow)
            self.starts.labels(workflow).inc()
        elif run not in self._workflow_of:
            self._unplaced.append((run, event))
        elif kind is e.TokenCreated:
            if len(self._visits) < VISITS_MAX:
                self._visits[run, event.token] = (event.node, event.at, 0)
        elif kind is e.TokenStarted:
            self._began(run, event)
        elif kind is e.TokenCompleted or kind is e.TokenFailed or kind is e.TokenTimedOut or kind is e.TokenCancelled:
            self._ended(run, event)
        elif kind is e.TokenRetryScheduled:
            node = self._visits.get((run, event.token), (OTHER, 0, 0))[0]
            self.retries.labels(*self._place(run, node)).inc()
        elif kind in ENDINGS:
            self.ends.labels(self._workflow_of.pop(run), ENDINGS[kind]).inc()

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
    measured(service).requests.labels(route.method, route.full_path, str(status)).inc()


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
