"""Markdown of authors and of runs as safe markup.

Promises that HTML in the text is shown as text, that links lead only to the web or to a mail address, and that no
picture is fetched from elsewhere: one is shown as its words. `markdown-it` parses; its renderer escapes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from treadle.server.html import Html, joined

LONGEST = 50_000
"""Characters; a longer text is cut, so that a page stays one."""
_LINK = re.compile(r"(https?://|mailto:)[^\s\x00-\x1f]+", re.IGNORECASE)


class _Renderer(RendererHTML):
    """Pictures as words, links without a way back."""

    def image(self, tokens: Sequence[Token], idx: int, _options: Any, _env: Any) -> str:
        return joined(tokens[idx].content or "picture")

    def link_open(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        tokens[idx].attrSet("rel", "noopener noreferrer nofollow")
        return self.renderToken(tokens, idx, options, env)


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": 20}, renderer_cls=_Renderer)
    parser.enable(["table", "strikethrough"])
    parser.validateLink = lambda url: _LINK.fullmatch(url) is not None  # type: ignore[method-assign]
    return parser


def markdown(text: str) -> Html:
    """The text as markup."""
    clean = text[:LONGEST].replace("\x00", "\ufffd")
    return Html(_parser().render(clean))
