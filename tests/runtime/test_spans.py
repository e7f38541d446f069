"""Spans out of histories: every scenario of this repository gives a tree in which nothing is missing or double."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.runtime.test_scenarios import ROOT, every_file, histories, performable
from treadle.model import events as e
from treadle.model.ids import RunId
from treadle.runtime.traces.context import trace_of, visit_span
from treadle.runtime.traces.span_records import EndedSpan
from treadle.runtime.traces.spans import RunSpans


def spans_of(run: RunId, history: list[e.Event]) -> tuple[RunSpans, list[EndedSpan]]:
    assert isinstance(history[0], e.Beginning)
    fold = RunSpans(trace_of(run, None), history[0])
    for event in history:
        fold.take(event)
    return fold, fold.drain()


@pytest.mark.slow
@every_file
def test_every_scenario_gives_a_whole_tree_of_spans(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.syspath_prepend(str(ROOT))
    for scenario, workflows in performable(path):
        for run, history in histories(scenario, workflows, "memory").items():
            fold, spans = spans_of(run, history)
            counted = Counter(span.id for span in spans)
            assert max(counted.values(), default=0) <= 1, scenario.name
            assert all(span.start <= span.end for span in spans), scenario.name
            assert all(span.attributes["treadle.status"] != "left" for span in spans), scenario.name
            if fold.is_over:
                named = {link for span in spans for link in span.links} | {span.parent for span in spans}
                assert named <= {*counted, None}, scenario.name
                own = max((event.seq for event in history if isinstance(event, e.RunForked)), default=0)
                made = {
                    visit_span(run, event.token, 0)
                    for event in history
                    if isinstance(event, e.TokenCreated) and event.seq > own
                }
                assert made <= counted.keys(), scenario.name


@pytest.mark.slow
def test_a_fold_that_begins_anew_after_any_event_gives_the_same_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a restart: the history is read up to there, then events follow."""
    monkeypatch.chdir(ROOT)
    played = 0
    for scenario, workflows in performable(ROOT / "tests" / "scenarios" / "joins_all.scenario.yaml")[:3]:
        for run, history in histories(scenario, workflows, "memory").items():
            _fold, whole = spans_of(run, history)
            for cut in range(1, len(history)):
                fold, before = spans_of(run, history[:cut])
                for event in (*history[:cut], *history[cut:]):  # the first ones come a second time
                    fold.take(event)
                assert [*before, *fold.drain()] == whole
                played += 1
    assert played > 20
