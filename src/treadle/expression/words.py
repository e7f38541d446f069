"""The wording of messages: short, and naming the nearest word that would have been right."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

_WORD_MAX = 60
"""Characters of a wrong word that a message repeats; a hostile document must not come back at full length."""


def clip(text: str, length: int) -> str:
    """The text, cut to `length` characters with an ellipsis."""
    return text if len(text) <= length else text[: length - 1] + "…"


def shown(value: Any) -> str:
    """A wrong word as a message shows it."""
    return clip(repr(value), _WORD_MAX)


def nearest(word: Any, known: Iterable[str]) -> str:
    """The end of a message about an unknown word: the word that was probably meant, or the words there are."""
    known = sorted(known)
    close = get_close_matches(str(word)[:_WORD_MAX], known, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; known are {', '.join(known)}"
