"""What an exception out of user code means."""

from __future__ import annotations

import msgspec
import pytest

from treadle.actions.failure import MESSAGE_MAX, Retryable, TaskFailure, error_of
from treadle.errors import EvaluationError


@pytest.mark.parametrize(
    ("problem", "retryable"),
    [
        (ValueError("bad"), False),
        (KeyError("k"), False),
        (AssertionError("no"), False),
        (OSError("disk"), True),
        (ConnectionResetError("peer"), True),
        (TimeoutError("slow"), True),
        (Retryable("later"), True),
        (TaskFailure("never"), False),
        (EvaluationError("no value"), False),
    ],
)
def test_infrastructure_is_retryable_and_business_is_not(problem: Exception, retryable: bool) -> None:
    assert error_of(problem).retryable is retryable


def test_the_message_names_type_and_text_and_the_details_name_the_line() -> None:
    def charge() -> None:
        raise ValueError("no such card")

    with pytest.raises(ValueError, match="card") as caught:
        charge()
    error = error_of(caught.value)
    assert (error.kind, error.message) == ("TASK_FAILED", "ValueError: no such card")
    assert error.details["where"].endswith("in charge")


def test_an_exception_without_text_is_its_type() -> None:
    assert error_of(RuntimeError()).message == "RuntimeError"


def test_a_function_may_choose_its_own_error_kind_and_details() -> None:
    error = error_of(TaskFailure("card refused", kind="CARD_REFUSED", details={"code": 51}))
    assert (error.kind, error.message, error.details) == ("CARD_REFUSED", "card refused", {"code": 51})


def test_details_that_are_not_json_do_not_hide_the_failure() -> None:
    error = error_of(Retryable("down", details=object()))
    assert error.message == "down"
    assert "object" in error.details


@pytest.mark.parametrize("text", ["x" * 10_000, "broken \ud800 text"])
def test_any_message_fits_into_history(text: str) -> None:
    error = error_of(ValueError(text))
    assert len(error.message) <= MESSAGE_MAX
    msgspec.msgpack.encode(error)
