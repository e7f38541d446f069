"""Retry delays: the three curves, their cap, and jitter that never breaks it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.expression.backoff import delay_ms
from treadle.model.definition import Retry


@pytest.mark.parametrize(
    ("retry", "delays"),
    [
        (Retry(max_attempts=5), [0, 0, 0, 0]),
        (Retry(initial_delay_ms=100), [100, 100, 100, 100]),
        (Retry(backoff="linear", initial_delay_ms=100), [100, 200, 300, 400]),
        (Retry(backoff="exponential", initial_delay_ms=100), [100, 200, 400, 800]),
        (Retry(backoff="exponential", initial_delay_ms=100, max_delay_ms=250), [100, 200, 250, 250]),
        (Retry(backoff="linear", initial_delay_ms=100, max_delay_ms=0), [0, 0, 0, 0]),
    ],
)
def test_the_delay_follows_the_curve(retry: Retry, delays: list[int]) -> None:
    assert [delay_ms(retry, tries, None) for tries in (1, 2, 3, 4)] == delays


@pytest.mark.parametrize(
    ("jitter", "backoff", "unit", "delay"),
    [
        (None, "exponential", -1.0, 900),
        (None, "exponential", 0.5, 1_050),
        (None, "linear", -1.0, 1_000),
        (None, "none", 0.5, 1_000),
        (0.0, "exponential", 0.5, 1_000),
        (1.0, "none", -1.0, 0),
        (0.5, "linear", 0.5, 1_250),
        (0.5, "linear", None, 1_000),
    ],
)
def test_jitter_is_a_share_of_the_delay(jitter: Any, backoff: Any, unit: Any, delay: int) -> None:
    assert delay_ms(Retry(backoff=backoff, initial_delay_ms=1_000, jitter=jitter), 1, unit) == delay


def test_doubling_ends_within_a_century() -> None:
    retry = Retry(backoff="exponential", initial_delay_ms=10**12)
    assert delay_ms(retry, 10**9, 0.9) == delay_ms(retry, 100, None) == 100 * 365 * 24 * 3_600_000


@given(
    st.builds(
        Retry,
        backoff=st.sampled_from(["none", "linear", "exponential"]),
        initial_delay_ms=st.integers(0, 10**9),
        max_delay_ms=st.none() | st.integers(0, 10**9),
        jitter=st.none() | st.floats(0, 1),
    ),
    st.integers(1, 10**6),
    st.none() | st.floats(-1, 1, exclude_max=True),
)
def test_a_delay_is_never_negative_nor_above_its_cap(retry: Retry, tries: int, unit: float | None) -> None:
    delay = delay_ms(retry, tries, unit)
    assert delay >= 0
    assert retry.max_delay_ms is None or delay <= retry.max_delay_ms
