"""The meaning of YAML scalars: the YAML 1.2 core schema, and nothing that JSON could not say.

Only true and false are booleans, dates stay text, `on` and `yes` are words. Parsers tell us what is written
and how; neither of them is asked what it means.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from treadle.language.limits import Bounds
from treadle.language.plain import refuse_number, refuse_text
from treadle.language.source import At, Refusal

_NUMBER = re.compile(
    r"(?:(?P<int>[-+]?[0-9]++)|(?P<based>0o[0-7]++|0x[0-9a-fA-F]++)"
    r"|(?P<float>[-+]?(?:\.[0-9]++|[0-9]++(?:\.[0-9]*+)?)(?:[eE][-+]?[0-9]++)?)"
    r"|(?P<endless>[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)))\Z"
)
_VALUES: dict[str, Callable[[str], int | float]] = {"int": int, "based": lambda text: int(text, 0), "float": float}
_WORDS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_NUMERIC = frozenset("+-.0123456789")
_REMARKABLE = frozenset("~nNtTfF") | _NUMERIC
"""First characters of scalars that may be more than text; a scalar with any other is text."""

_CORE = "tag:yaml.org,2002:"
_TAGS: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "null": (type(None),),
    "map": (dict,),
    "seq": (list,),
}


def scalar(event: Any, at: At, bounds: Bounds) -> Any:
    """The value of a scalar event, whichever parser it came from."""
    text: str = event.value
    if event.implicit[0]:
        return text if text and text[0] not in _REMARKABLE else resolve(text, at, bounds)
    if event.style == '"':
        refuse_text(text, at)  # only an escape could bring in characters that the text itself may not contain
    if event.tag is None:
        return text
    name = tag_name(event.tag, at)
    return agreeing(name, text if name == "str" else resolve(text, at, bounds), at)


def resolve(text: str, at: At, bounds: Bounds) -> Any:
    """A plain scalar by the core schema."""
    if text in _WORDS:
        return _WORDS[text]
    number = _NUMBER.match(text) if text[0] in _NUMERIC else None
    if number is None:
        return text
    if number.lastgroup == "endless":
        raise Refusal(f"{text} is not a JSON number: NaN and infinity cannot be stored", at)
    if len(text) > bounds.number_digits:
        raise Refusal(f"a number of {len(text)} digits", at, hint="write it as text, in quotes")
    value = _VALUES[number.lastgroup or ""](text)
    refuse_number(value, at)
    return value


def tag_name(tag: Any, at: At) -> str:
    """`int` for the core schema's `!!int`; any other tag is refused."""
    full = str(tag)
    name = full.removeprefix(_CORE)
    if name == full or name not in _TAGS:
        written = full if name == full else f"!!{name}"
        raise Refusal(f"tags such as {written[:60]} are not supported", at, hint="write plain YAML")
    return name


def agreeing(name: str, value: Any, at: At) -> Any:
    """The value, if it is what its tag says."""
    if type(value) not in _TAGS[name]:
        raise Refusal(f"the value is not what its tag !!{name} says", at)
    return float(value) if name == "float" else value
