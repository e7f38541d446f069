"""Contexts of W3C Trace Context: which headers of callers count, and the ids that follow from them."""

from __future__ import annotations

import pytest

from treadle.model.ids import RunId, TokenId
from treadle.runtime.traces.context import attempt_span, read_context, run_span, trace_of, visit_span

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
RUN = RunId("r")


def test_a_caller_context_is_kept_with_its_state() -> None:
    kept = read_context({"traceparent": f"00-{TRACE}-{SPAN}-01", "tracestate": "vendor=1"})
    assert kept == {"traceparent": f"00-{TRACE}-{SPAN}-01", "tracestate": "vendor=1"}
    trace = trace_of(RUN, kept)
    assert (trace.trace, trace.parent, trace.is_sampled, trace.state) == (TRACE, SPAN, True, "vendor=1")


def test_what_a_later_version_adds_is_dropped() -> None:
    assert read_context({"traceparent": f"cc-{TRACE}-{SPAN}-00-more"}) == {"traceparent": f"00-{TRACE}-{SPAN}-00"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE}-{SPAN}-01-more",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01\r\nX-Evil: 1",
    ],
)
def test_a_context_that_cannot_be_read_counts_as_none(text: str) -> None:
    assert read_context({"traceparent": text}) is None
    assert read_context({}) is None
    assert read_context(None) is None


@pytest.mark.parametrize("state", ["", "a=\r\nX-Evil: 1", "a=" + "b" * 600, "a=ü"])
def test_a_state_that_cannot_be_sent_on_is_dropped_without_its_parent(state: str) -> None:
    parent = f"00-{TRACE}-{SPAN}-01"
    assert read_context({"traceparent": parent, "tracestate": state}) == {"traceparent": parent}


def test_ids_follow_from_the_run_and_differ_for_everything_in_it() -> None:
    one, two = TokenId(1), TokenId(2)
    spans = [
        run_span(RUN, 0),
        run_span(RUN, 1),
        visit_span(RUN, one, 0),
        visit_span(RUN, one, 1),
        visit_span(RUN, two, 0),
        attempt_span(RUN, one, 1),
        attempt_span(RUN, one, 2),
        attempt_span(RUN, two, 1),
        attempt_span(RunId("s"), one, 1),
    ]
    assert len(set(spans)) == len(spans)
    assert all(len(span) == 16 and int(span, 16) for span in spans)
    assert attempt_span(RUN, one, 1) == "12ecf27a0aaa7d88", "ids are kept by collectors: they do not change"
    assert trace_of(RUN, None) == trace_of(RUN, None) != trace_of(RunId("s"), None)
    assert len(trace_of(RUN, None).trace) == 32


def test_what_is_sent_names_the_span_and_whether_it_is_sampled() -> None:
    trace = trace_of(RUN, {"traceparent": f"00-{TRACE}-{SPAN}-00", "tracestate": "vendor=1"})
    assert trace.carrier("a" * 16) == {"traceparent": f"00-{TRACE}-{'a' * 16}-00", "tracestate": "vendor=1"}
