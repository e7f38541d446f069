"""HTML that cannot be broken by what is in it: text is escaped unless it was made by `element`.

Owns the only place where markup is put together. Promises that a value out of a run, a form or a request is never more
than text or an attribute's value. Must not take markup from anywhere else but `markdown`, which makes it the same way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})
_ODD = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u202a-\u202e\u2066-\u2069]")
"""Characters that browsers drop, or that turn the direction of the text around them: they are shown as a mark."""


class Html(str):
    """Markup that is complete and safe."""

    __slots__ = ()


Content = str | Iterable["Content"] | None


def element(tag: str, /, *content: Content, **attributes: str | int | bool | None) -> Html:
    """One element. `class_` and `for_` lose their underscore, `data_x` becomes `data-x`; None and False leave an
    attribute out, True gives it without a value."""
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if tag in VOID:
        return Html(f"<{tag}{written}>")
    return Html(f"<{tag}{written}>{joined(content)}</{tag}>")


def joined(content: Content) -> Html:
    """Several pieces as one; plain text is escaped."""
    if content is None:
        return Html("")
    if isinstance(content, Html):
        return content
    if isinstance(content, str):
        return Html(escape(_ODD.sub("\ufffd", content), quote=True))
    return Html("".join(joined(part) for part in content))


def _attribute(key: str, value: str | int | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(_ODD.sub(chr(0xFFFD), str(value)), quote=True)}"'
