"""5.7: which runs are traced: sampling, and services without traces."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.peers.collector import Collector
from tests.server.client import Connected
from tests.server.tracing import PARENT, UNSAMPLED, Peer, sending, started


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as one:
        yield one


def test_nothing_is_sent_of_a_run_that_is_not_sampled_but_what_it_calls_is_told(
    tmp_path: Path, collector: Collector
) -> None:
    service = Connected(str(tmp_path / "treadle.db"), tmp_path)
    with Peer(200) as peer, sending(service, collector):
        service.deploy(f"workflow: one\nnodes: {{ask: {{action: {{kind: http, method: POST, url: '{peer.url}'}}}}}}")
        seen, unseen = started(service, "one"), started(service, "one", UNSAMPLED)
        flags = [peer.next()["traceparent"][-2:] for _ in range(2)]
        assert service.stop() == 0
    sent = {span.attributes["treadle.run"] for span in collector.spans()}
    assert seen in sent and unseen not in sent
    assert flags == ["01", "00"]


def test_the_sampler_of_the_environment_decides_about_runs_without_a_caller(
    tmp_path: Path, collector: Collector
) -> None:
    sampler = {"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.5"}
    service = Connected(str(tmp_path / "treadle.db"), tmp_path)
    with sending(service, collector, **sampler, OTEL_SERVICE_NAME="orders"):
        service.deploy("workflow: one\nnodes: {pass: {}}")
        runs = [started(service, "one") for _ in range(40)]
        assert service.stop() == 0
    spans = [span for span in collector.spans() if span.attributes["treadle.run"] in runs]
    sampled = {span.attributes["treadle.run"] for span in spans}
    assert 5 < len(sampled) < 35, "half of 40 runs, by their trace ids"
    assert {span.service for span in spans} == {"orders"}


def test_a_service_without_traces_keeps_the_context_and_imports_nothing_of_opentelemetry(tmp_path: Path) -> None:
    watch = "import sys, atexit; atexit.register(lambda: print('opentelemetry' in sys.modules, file=sys.stderr))"
    (tmp_path / "sitecustomize.py").write_text(watch)
    service = Connected(str(tmp_path / "treadle.db"), tmp_path)
    service.environment["PYTHONPATH"] = str(tmp_path)
    with Peer(200) as peer, service:
        service.deploy(f"workflow: one\nnodes: {{ask: {{action: {{kind: http, method: POST, url: '{peer.url}'}}}}}}")
        run = started(service, "one", PARENT)
        assert "traceparent" not in peer.next()
        first = service.as_("viewer").get(f"/runs/{run}/history")["items"][0]
        assert first["trace"] == PARENT
        assert service.stop() == 0
    assert service.said().splitlines()[-1] == "False"


def test_runs_go_on_although_nobody_takes_their_spans(tmp_path: Path) -> None:
    service = Connected(str(tmp_path / "treadle.db"), tmp_path)
    service.environment |= {"TREADLE_TRACES_ENABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
    with service:
        service.deploy("workflow: one\nnodes: {pass: {}}")
        run = started(service, "one")
        assert service.as_("viewer").get(f"/runs/{run}")["status"] == "completed"
        assert service.stop() == 0
