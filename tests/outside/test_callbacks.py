"""Callback tokens cannot be made, changed or used for something else."""

from __future__ import annotations

import pytest

from treadle.model.ids import RunId, TokenId
from treadle.runtime.deliver.callbacks import Callback, callback_token, read_callback, verify

KEY = b"k" * 32
RUN, VISIT = RunId("r1"), TokenId(7)


def test_a_token_says_which_attempt_it_answers() -> None:
    token = callback_token(KEY, RUN, VISIT, 2)
    assert token == callback_token(KEY, RUN, VISIT, 2)
    assert read_callback(KEY, token) == Callback(RUN, VISIT, 2)
    assert verify(KEY, token, RUN, VISIT, 2)


def test_a_token_is_good_for_its_own_attempt_only() -> None:
    token = callback_token(KEY, RUN, VISIT, 2)
    for run, visit, attempt in (("r2", 7, 2), ("r1", 8, 2), ("r1", 7, 3), ("r1:7", 2, 2)):
        assert not verify(KEY, token, RunId(run), TokenId(visit), attempt)
    assert read_callback(b"other" * 8, token) is None


def test_every_changed_letter_is_noticed() -> None:
    token = callback_token(KEY, RUN, VISIT, 2)
    for place in range(len(token)):
        changed = token[:place] + ("A" if token[place] != "A" else "B") + token[place + 1 :]
        assert read_callback(KEY, changed) is None


@pytest.mark.parametrize("text", ["", ".", "a.b", "é.é", "x" * 5000, callback_token(KEY, RUN, VISIT, 2) + "="])
def test_what_is_no_token_is_refused(text: str) -> None:
    assert read_callback(KEY, text) is None
    assert not verify(KEY, text, RUN, VISIT, 2)


def test_a_key_that_can_be_guessed_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 16 bytes"):
        callback_token(b"short", RUN, VISIT, 1)
