"""YAML 1.2 text → plain values with positions, one per document, by two parsers.

libyaml finds the structure, twenty times faster than a pure-Python scanner. It is a YAML 1.1 parser, but the difference
that people meet is in the meaning of scalars, and `yaml_scalar` decides that. ruamel.yaml, a 1.2 parser, gets the texts
that libyaml refuses: it reads them after all, or its message is shown. It also reads everything where PyYAML was built
without libyaml. Bounds hold for both (`yaml_compose`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from treadle.language.limits import Bounds
from treadle.language.source import COLUMN_BITS, At, Mark, Refusal
from treadle.language.yaml_compose import compose

try:
    from yaml import YAMLError
    from yaml.cyaml import CParser
except ImportError:  # a PyYAML that was built without libyaml; every wheel has it
    CParser = None

_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]")
"""Characters that YAML does not allow, and three that were line breaks in 1.1 and are letters like others in 1.2: no
two parsers agree on them.
"""
_ORDINARY = bytes([*b"\t\n\r", *range(0x20, 0x7F)])
_ESCAPES = {"\x85": "\\N", "\u2028": "\\L", "\u2029": "\\P"}
_TAG_DIRECTIVE = re.compile(r"(?:\A|(?<=[\n\r]))%TAG")


def read_yaml(text: str, bounds: Bounds, *, relaxed: bool = False) -> list[tuple[Any, Mark]]:
    """Each document's value and mark. Raises Refusal.

    `relaxed` is how scenarios are read: any scalar may be a key and stands for its text, and `<<` merges maps.
    """
    _refuse_letters(text)
    if CParser is None:
        return _judged(text, bounds, relaxed)
    try:
        return compose(iter(CParser(text).get_event, None), bounds, relaxed=relaxed)
    except YAMLError as error:
        refusal = _syntax(error)
    if len(text) > bounds.second_reading_bytes:
        raise refusal
    return _judged(text, bounds, relaxed)


def _refuse_letters(text: str) -> None:
    """Refuse forbidden characters before anything is parsed."""
    ordinary = text.isascii() and not text.encode("ascii").translate(None, _ORDINARY)  # ten times faster to see
    if not ordinary and (bad := _FORBIDDEN.search(text)) is not None:
        message = f"the text contains the character U+{ord(bad.group()):04X}, which is not allowed"
        escape = _ESCAPES.get(bad.group())
        hint = f'write it in double quotes: "{escape}"' if escape else None
        raise Refusal(message, _at(text, bad.start()), hint=hint)
    if "%TAG" in text and (tag := _TAG_DIRECTIVE.search(text)) is not None:  # libyaml compares each with all before it
        raise Refusal("tags are not supported", _at(text, tag.start()), hint="write plain YAML")


def _judged(text: str, bounds: Bounds, relaxed: bool) -> list[tuple[Any, Mark]]:
    """The result of ruamel.yaml for a text that libyaml has refused."""
    from ruamel.yaml.error import YAMLError as Unreadable  # importing it takes longer than reading with libyaml

    try:
        return compose(_events(text, bounds), bounds, relaxed=relaxed)
    except Unreadable as error:
        raise _syntax(error) from None
    except (ValueError, RecursionError) as error:
        raise Refusal(f"not valid YAML: {str(error)[:200]}") from None


def _events(text: str, bounds: Bounds) -> Iterator[Any]:
    from ruamel.yaml import YAML

    from treadle.language.yaml_scanner import bounded_scanner

    yaml = YAML(typ="safe", pure=True)
    yaml.version = (1, 2)
    yaml.Scanner = bounded_scanner(bounds)
    return iter(yaml.parse(text))


def _syntax(error: Any) -> Refusal:
    """The refusal for a syntax error of either parser."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    parts = (getattr(error, "problem", None), getattr(error, "context", None))
    message = " ".join(part for part in parts if part) or str(error)[:200]
    at = mark and (mark.line << COLUMN_BITS | mark.column)
    if "'\\t'" in message:
        return Refusal(
            "not valid YAML: it is indented with spaces, and here stands a tab",
            at,
            hint="replace tabs at the beginning of lines",
        )
    return Refusal(f"not valid YAML: {message}", at)


def _at(text: str, offset: int) -> At:
    begins = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
    lines = text.count("\n", 0, offset) + text.count("\r", 0, offset) - text.count("\r\n", 0, offset)
    return lines << COLUMN_BITS | offset - begins
