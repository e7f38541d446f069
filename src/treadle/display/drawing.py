"""SVG as text: escaping, colours for light and dark, the frame. An author's words never become markup."""

from __future__ import annotations

from html import escape
from string import Template

LIGHT = {
    "ink": "#1f2933",
    "mute": "#616e7c",
    "line": "#8896a5",
    "paper": "#fff",
    "face": "#f5f7fa",
    "grey": "#a0abb8",
    "blue": "#2f6fde",
    "green": "#2e9e5b",
    "red": "#d64545",
    "amber": "#e0a100",
    "violet": "#7c5cd6",
}
DARK = {
    "ink": "#e4e7eb",
    "mute": "#9aa5b1",
    "line": "#6b7885",
    "paper": "#14181d",
    "face": "#232a32",
    "grey": "#616e7c",
    "blue": "#6ea8fe",
    "green": "#5bc98a",
    "red": "#f27d7d",
    "amber": "#f0c04a",
    "violet": "#a78bfa",
}
STYLE = """
.t{font-family:system-ui,sans-serif}.t .paper{fill:$paper}.t text{fill:$ink;font-size:13px}
.t .small{font-size:11px;fill:$mute}.t .bold{font-weight:600}.t .mid{text-anchor:middle}.t .end{text-anchor:end}
"""


def painted(style: str) -> str:
    """A style with its colours, light and dark. The colours are plain values: programs that are no browsers (librsvg
    and its users) know no CSS variables and would paint everything black. They skip the block for dark screens."""
    light, dark = (Template(style).substitute(palette) for palette in (LIGHT, DARK))
    return f"{light}@media (prefers-color-scheme:dark){{{dark}}}"


def text_of(value: str) -> str:
    """An author's text, escaped for an element or attribute. Characters that XML forbids become a mark."""
    clean = "".join(c if c >= " " and c not in "\ufffe\uffff" and not "\ud800" <= c <= "\udfff" else "�" for c in value)
    return escape(clean, quote=True)


def frame(width: float, height: float, title: str, body: list[str], style: str = "") -> str:
    """The whole picture."""
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="t" role="img" {size}><title>{text_of(title)}</title>'
        f"<style>{painted(STYLE + style)}</style>"
        f'<rect class="paper" width="100%" height="100%"/>{"".join(body)}</svg>'
    )


def write(x: float, y: float, value: str, kind: str = "") -> str:
    """A line of text."""
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}">{text_of(value)}</text>'
