"""Text → documents: decides between JSON and YAML, bounds the text, and says where reading stopped.

Promises never to raise anything but Refusal for any bytes whatever, and to read no more than it must to
refuse.
"""

from __future__ import annotations

from treadle.language.json_text import NotJson, read_json
from treadle.language.limits import BOUNDS, Bounds
from treadle.language.source import Refusal, Source, Spot


def read_text(text: str | bytes, file: str, bounds: Bounds = BOUNDS) -> list[Source]:
    """Every document of a text. Raises Refusal."""
    decoded = _decoded(text, bounds)
    if decoded.lstrip(" \t\r\n\ufeff")[:1] in ("{", "["):
        try:
            value, marks = read_json(decoded.lstrip("\ufeff"), bounds)
        except NotJson as not_json:
            return _as_yaml_or(not_json, decoded, file, bounds)
        return [Source(value, file, marks, text=decoded)]
    return _yaml(decoded, file, bounds)


def _yaml(text: str, file: str, bounds: Bounds) -> list[Source]:
    from treadle.language.yaml_text import read_yaml  # ruamel.yaml takes longer to import than all of ours

    return [Source(value, file, marks, text=text) for value, marks in read_yaml(text, bounds)]


def _as_yaml_or(not_json: NotJson, text: str, file: str, bounds: Bounds) -> list[Source]:
    """A text in braces may be YAML's flow style. If it is neither, the error of the likelier dialect helps more."""
    try:
        return _yaml(text, file, bounds)
    except Refusal:
        if file.endswith(".json") or text.lstrip(" \t\r\n\ufeff{[")[:1] == '"':
            raise Refusal(f"not valid JSON: {not_json.message}", not_json.spot) from None
        raise


def _decoded(text: str | bytes, bounds: Bounds) -> str:
    size = len(text)
    if size > bounds.text_bytes:
        raise Refusal(f"{size} bytes of text, more than the {bounds.text_bytes} a definition may have", Spot(1, 1))
    if isinstance(text, str):
        return text
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as error:
        before = text[: error.start]
        line = before.count(b"\n") + 1
        column = error.start - (before.rfind(b"\n") + 1) + 1
        raise Refusal("the text is not UTF-8", Spot(line, column)) from None
