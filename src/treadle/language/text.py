"""Reading text into documents: decides between JSON and YAML, bounds the text, and says where reading stopped.

Promises never to raise anything but Refusal for any bytes whatever, and to read no more than it must to
refuse.
"""

from __future__ import annotations

from treadle.language.json_text import NotJson, read_json
from treadle.language.limits import BOUNDS, Bounds
from treadle.language.source import COLUMN_BITS, Refusal, Source

MEANT_AS_JSON = 10_000
"""After so many values a text in braces is JSON with a mistake: it is not read again as YAML. The first reading has
then taken a tenth of the time that the whole may take.
"""
_BEFORE = " \t\r\n"


def read_text(text: str | bytes, file: str, bounds: Bounds = BOUNDS, *, relaxed: bool = False) -> list[Source]:
    """Every document of a text. Raises Refusal. `relaxed`: see `read_yaml`."""
    decoded = _decoded(text, bounds).removeprefix("\ufeff")
    if decoded.lstrip(_BEFORE)[:1] in ("{", "["):
        try:
            value, mark = read_json(decoded, bounds)
        except NotJson as not_json:
            return _as_yaml_or(not_json, decoded, file, bounds, relaxed)
        return [Source(value, file, mark)]
    return _yaml(decoded, file, bounds, relaxed)


def _yaml(text: str, file: str, bounds: Bounds, relaxed: bool) -> list[Source]:
    from treadle.language.yaml_text import read_yaml  # a process that reads only JSON needs no YAML parser

    return [Source(value, file, mark) for value, mark in read_yaml(text, bounds, relaxed=relaxed)]


def _as_yaml_or(not_json: NotJson, text: str, file: str, bounds: Bounds, relaxed: bool) -> list[Source]:
    """A text in braces may be YAML's flow style. If it is neither, the error of the likelier dialect helps more."""
    refusal = Refusal(f"not valid JSON: {not_json.message}", not_json.at)
    if not_json.values > MEANT_AS_JSON:
        raise refusal from None
    try:
        return _yaml(text, file, bounds, relaxed)
    except Refusal:
        if file.endswith(".json") or text.lstrip(_BEFORE + "{[")[:1] == '"':
            raise refusal from None
        raise


def _decoded(text: str | bytes, bounds: Bounds) -> str:
    size = len(text)
    if size > bounds.text_bytes:
        raise Refusal(f"{size} bytes of text, more than the {bounds.text_bytes} that are allowed", 0)
    if isinstance(text, str):
        return text
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as error:
        before = text[: error.start]
        column = error.start - (before.rfind(b"\n") + 1)
        raise Refusal("the text cannot be read: it is not UTF-8", before.count(b"\n") << COLUMN_BITS | column) from None
