"""The Python of docs/guides/traces.md runs, and what it says about spans is what a collector gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.arch.test_docs import PYTHON
from tests.peers.collector import Collector

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "traces.md"


def test_the_guide_traces_a_run_in_the_trace_of_its_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    with Collector() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        for block in PYTHON.findall(PAGE.read_text()):
            exec(compile(block, str(PAGE), "exec"), names)
    spans = {span.name: span for span in collector.spans("4bf92f3577b34da6a3ce929d0e0e4736")}
    assert spans.keys() == {"greeting", "greet", "greet attempt 1"}
    assert spans["greeting"].parent == "00f067aa0ba902b7"
    assert str(names["told"]).split("-")[2] == spans["greet attempt 1"].id
