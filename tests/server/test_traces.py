"""5.7: traces by OpenTelemetry, seen by a collector on loopback that takes OTLP."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.peers.collector import Collector
from tests.postgres import new_database
from tests.server.client import Connected
from tests.server.tracing import CALLER, PARENT, TRACE, Peer, one, parent_of, sending, started, wait_gate
from treadle.actions.current import current_attempt
from treadle.runtime.http_worker import HttpWorker


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with Collector() as one:
        yield one


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def traced(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, collector: Collector
) -> Iterator[Connected]:
    """A service that sends its spans to the collector."""
    folder = tmp_path_factory.mktemp("traced")
    if request.param == "sqlite":
        with sending(Connected(str(folder / "treadle.db"), folder), collector) as service:
            yield service
        return
    with new_database() as dsn, sending(Connected(dsn, folder), collector) as service:
        yield service


ORDER = """
workflow: {name}
nodes:
  begin: {{}}
  ask:
    action: {{kind: http, method: POST, url: "{flaky}"}}
    retry: {{max_attempts: 3, initial_delay_ms: 1}}
  total: {{}}
  ship:
    action: {{kind: webhook, url: "{worker}"}}
  bill:
    action: {{kind: workflow_call, workflow: {name}-child}}
transitions:
- {{id: each, from: begin, to: ask, spawn_count: 2}}
- {{from: ask, to: total, synchronization: {{sibling_group: each}}}}
- {{from: total, to: ship}}
- {{from: ship, to: bill}}
"""
CHILD = """
workflow: {name}-child
nodes:
  nap:
    action: {{kind: wait, ms: 1}}
"""


def test_one_trace_shows_fan_out_join_retry_webhook_and_child(traced: Connected, collector: Collector) -> None:
    name = f"order-{uuid4().hex[:8]}"
    with Peer(503, 200) as flaky, Peer(200, body=b'{"output": {}}') as worker:
        traced.deploy(CHILD.format(name=name))
        traced.deploy(ORDER.format(name=name, flaky=flaky.url, worker=worker.url))
        run = started(traced, name, PARENT)
        asked = [flaky.next()["traceparent"] for _ in range(3)]
        shipped = worker.next()
    assert traced.as_("viewer").get(f"/runs/{run}")["status"] == "completed"
    root = collector.wait_run(run)
    child = collector.wait_run(f"{run}.6")
    spans = [span for span in collector.spans(TRACE) if str(span.attributes["treadle.run"]).startswith(run)]
    assert Counter(span.id for span in spans).most_common(1)[0][1] == 1

    assert (root.trace, root.parent, root.name, root.service) == (TRACE, CALLER, name, "treadle")
    begin, total = one(spans, "begin"), one(spans, "total")
    branches = [one(spans, "ask", branch=branch) for branch in (0, 1)]
    assert {visit.parent for visit in (begin, total, *branches)} == {root.id}
    assert [visit.links for visit in branches] == [(begin.id,), (begin.id,)]
    assert sorted(total.links) == sorted(visit.id for visit in branches)

    tries = [span for span in spans if span.is_attempt and span.attributes["treadle.node"] == "ask"]
    assert {span.parent for span in tries} == {visit.id for visit in branches}
    failed = [span for span in tries if span.error is not None]
    assert len(tries) == 3 and len(failed) == 1 and failed[0].name == "ask attempt 1"
    assert "503" in str(failed[0].error)
    assert sorted(asked) == sorted(f"00-{TRACE}-{span.id}-01" for span in tries)

    shipping = one(spans, "ship attempt 1")
    assert shipped["traceparent"] == f"00-{TRACE}-{shipping.id}-01" == parent_of(run, 5, 1, TRACE)
    assert shipped["tracestate"] == "vendor=1"
    assert shipping.parent == one(spans, "ship").id
    assert (child.trace, child.parent) == (TRACE, one(spans, "bill attempt 1").id)
    assert one(spans, "nap").parent == child.id
    told = {key for span in spans for key in span.attributes}
    assert not told & {"treadle.input", "treadle.output"}


WAITS = """
workflow: {name}
nodes:
  before: {{action: {{kind: wait, ms: 1}}}}
  agree: {{action: {{kind: human, title: Agree?}}}}
  after: {{action: {{kind: http, method: POST, url: "{url}"}}}}
transitions:
- {{from: before, to: agree}}
- {{from: agree, to: after}}
"""


def test_an_engine_that_was_killed_continues_the_trace_with_the_same_ids(tmp_path: Path, collector: Collector) -> None:
    late = {"OTEL_BSP_SCHEDULE_DELAY": "3600000"}  # the engine that is killed has sent nothing
    service = Connected(str(tmp_path / "treadle.db"), tmp_path)
    with Peer(200) as peer, sending(service, collector, **late):
        service.deploy(WAITS.format(name="waits", url=peer.url))
        service.deploy("workflow: short\nnodes: {pass: {}}")
        short = started(service, "short")
        run = service.as_("operator").post("/runs", {"workflow": "waits"})["run"]
        wait_gate(service, run)
        service.kill()
        assert not [span for span in collector.spans() if span.attributes["treadle.run"] == run]
        sending(service, collector).start()
        service.as_("approver").post(f"/gates/{run}/2/answer", {"data": {}})
        sent = peer.next()
        root = collector.wait_run(run)
        assert collector.wait_run(short).start < root.start, "a run that had ended is not lost either"
    spans = collector.spans(root.trace)
    assert {span.name for span in spans} == {
        *("waits", "before", "before attempt 1", "agree", "agree attempt 1", "after", "after attempt 1")
    }
    assert root.parent == "" and {span.parent for span in spans} >= {root.id}
    assert root.start <= one(spans, "before").start < one(spans, "agree").end <= root.end
    assert sent["traceparent"] == parent_of(run, 3, 1, root.trace)


def test_a_span_that_is_sent_again_after_a_kill_is_the_same_span(tmp_path: Path, collector: Collector) -> None:
    service = Connected(str(tmp_path / "treadle.db"), tmp_path)
    with Peer(200) as peer, sending(service, collector):
        service.deploy(WAITS.format(name="waits", url=peer.url))
        run = service.as_("operator").post("/runs", {"workflow": "waits"})["run"]
        wait_gate(service, run)
        before = collector.wait(lambda span: span.name == "before" and span.attributes["treadle.run"] == run)
        service.kill()
        service.start()
        service.as_("approver").post(f"/gates/{run}/2/answer", {"data": {}})
        root = collector.wait_run(run)
    spans = collector.spans(root.trace)
    assert [span for span in spans if span.id == before.id] == [before, before]
    assert all(len({repr(span) for span in spans if span.id == id}) == 1 for id in {span.id for span in spans})


def test_an_engine_that_was_closed_has_sent_everything_and_sends_nothing_again(
    tmp_path: Path, collector: Collector
) -> None:
    late = {"OTEL_BSP_SCHEDULE_DELAY": "3600000"}
    service = Connected(str(tmp_path / "treadle.db"), tmp_path)
    with Peer(200) as peer, sending(service, collector, **late):
        service.deploy(WAITS.format(name="waits", url=peer.url))
        run = service.as_("operator").post("/runs", {"workflow": "waits"})["run"]
        wait_gate(service, run)
        assert service.stop() == 0
        names = [span.name for span in collector.spans() if span.attributes["treadle.run"] == run]
        assert sorted(names) == ["before", "before attempt 1"]
        sending(service, collector).start()
        service.as_("approver").post(f"/gates/{run}/2/answer", {"data": {}})
        root = collector.wait_run(run)
    counted = Counter(span.id for span in collector.spans(root.trace))
    assert len(counted) == 7 and set(counted.values()) == {1}


def test_a_hook_continues_the_trace_of_its_sender(traced: Connected, collector: Collector) -> None:
    name = f"hooked-{uuid4().hex[:8]}"
    traced.deploy(CHILD.format(name=name))
    put = traced.as_("author").api("PUT", f"/hooks/{name}", {"source": "none", "workflow": f"{name}-child"})
    assert put.status == 201, put
    reply = traced.as_(None)("POST", f"/hooks/{name}", {}, PARENT)
    assert reply.status == 202, reply
    root = collector.wait_run(reply.json["run"])
    assert (root.trace, root.parent) == (TRACE, CALLER)


def test_a_worker_gets_the_context_of_its_attempt_with_its_task(traced: Connected, collector: Collector) -> None:
    name = f"drawn-{uuid4().hex[:8]}"
    traced.deploy(f"workflow: {name}\nnodes: {{draw: {{queue: {name}, action: {{kind: work, name: draw}}}}}}")
    start = traced.as_("operator").api("POST", "/runs", {"workflow": name}, PARENT)
    run, worker = start.json["run"], traced.as_("worker")
    [task] = worker.post("/tasks/claim", {"queues": [name], "worker": "w", "wait_ms": 30_000})["tasks"]
    assert task["trace"] == {"traceparent": parent_of(run, 1, 1, TRACE), "tracestate": "vendor=1"}
    worker.post(f"/tasks/{task['task']}/complete", {"output": {}})
    collector.wait_run(run)
    attempt = one([span for span in collector.spans(TRACE) if span.attributes["treadle.run"] == run], "draw attempt 1")
    assert attempt.attributes["treadle.queue"] == name
    assert str(attempt.attributes["treadle.worker"]).startswith("w")


def test_a_python_worker_over_http_works_inside_the_trace(traced: Connected) -> None:
    name = f"looked-{uuid4().hex[:8]}"
    python = "{kind: python, function: look}"
    traced.deploy(
        f"workflow: {name}\nnodes: {{look: {{queue: {name}, action: {python}, output: {{output.trace: $.trace}}}}}}"
    )

    async def whole() -> dict[str, Any]:
        async with HttpWorker(traced.url, traced.keys["worker"], queues={name: 1}, functions={"look": look}):
            reply = await asyncio.to_thread(
                traced.as_("operator").api, "POST", "/runs?wait_ms=30000", {"workflow": name}, PARENT
            )
        told: dict[str, Any] = reply.json
        return told

    run = asyncio.run(whole())
    assert run["output"]["trace"] == {"traceparent": parent_of(run["run"], 1, 1, TRACE), "tracestate": "vendor=1"}


def look() -> dict[str, Any]:
    return {"trace": current_attempt().facts.trace}
