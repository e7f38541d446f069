"""Checks of names that people compare by eye: no invisible characters.

A workflow, a node, a key or a tag is read, quoted and compared by people. Characters that cannot be seen make two
names look like one, and those that turn the direction of text make a name look like another.
"""

from __future__ import annotations

import unicodedata

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp", "Zs"})
_SPOKEN = frozenset("\u200c\u200d")
"""Joiners: some languages, and families of emoji, are written with them."""


def escaped(text: str) -> str:
    """A text with everything that cannot be seen as its number: `a\\u202eb`."""
    if text.isprintable():
        return text
    return "".join(_number(letter) if _is_hidden(letter) else letter for letter in text)


def name_problem(text: str) -> str | None:
    """The problem with a name, in words; None if there is none. Most names are printable, and cost one look."""
    if text.isprintable():
        return None
    hidden = next((letter for letter in text if _is_hidden(letter)), None)
    if hidden is None:
        return None
    called = unicodedata.name(hidden, "a control character")
    return f"`{escaped(text)[:80]}` holds U+{ord(hidden):04X} ({called}), which cannot be seen"


def _is_hidden(letter: str) -> bool:
    return letter != " " and letter not in _SPOKEN and unicodedata.category(letter) in _HIDDEN


def _number(letter: str) -> str:
    code = ord(letter)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
