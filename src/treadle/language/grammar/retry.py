"""Retry policies and how an action is executed."""

from __future__ import annotations

from treadle.language.compounds import Adapt, Forms, ListOf
from treadle.language.record import Field, Record
from treadle.language.shapes import Choice, Milliseconds, Number, Text, Whole
from treadle.model import definition as d

TIMEOUT = Milliseconds()
DELAY = Milliseconds(0, code="BAD_VALUE")

_ERROR_KIND = Forms(
    "an error kind or an HTTP status", text=Text("an error kind"), whole=Adapt(Whole(100, 599), str, str)
)

_DELAYS = (
    Field("max_attempts", Whole(1), "How often to try, the first try included", default=1),
    Field("backoff", Choice("none", "linear", "exponential"), "How the delay grows", default="none"),
    Field("initial_delay_ms", DELAY, "Delay before the second try", default=0),
    Field("max_delay_ms", DELAY, "The longest delay"),
    Field("jitter", Number(0, 1), "Random part of the delay, 0–1; 0.1 for exponential backoff unless given"),
)

RETRY = Record("Retry", "Try again, durably: the same token waits and starts over.", _DELAYS, d.Retry)

RETRY_POLICY = Record(
    "RetryPolicy",
    "Retry inside one action, invisible to the task.",
    (
        *_DELAYS,
        Field(
            "retryable_errors",
            ListOf(_ERROR_KIND),
            "Error kinds or HTTP statuses to retry instead of the usual ones",
        ),
    ),
    d.Retry,
)

EXECUTION = Record(
    "Execution",
    "How an action is executed.",
    (
        Field("timeout_ms", TIMEOUT, "Deadline of one try of the action"),
        Field("retry_policy", RETRY_POLICY, "Retry for network and provider errors"),
    ),
    d.Execution,
)
