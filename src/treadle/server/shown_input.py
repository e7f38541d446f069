"""The input of a gate as a page shows it: text, Markdown, numbers, tables, pictures and files of the run.

Owns how values look. Promises that everything is text, however it was made, except pictures and files of the run
itself, which are named by the reference that `artifact_write` gives.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import msgspec

from treadle.runtime.execute.artifacts import Artifact
from treadle.server.artifacts import HARMLESS, type_of
from treadle.server.html import Html, element, joined
from treadle.server.markdown import markdown

Json = Any
DEPTH_MAX = 4
"""Objects inside objects that are laid out; anything deeper is shown as JSON."""
ROWS_MAX, JSON_MAX = 200, 20_000
"""A page is for reading: longer tables and texts are cut, and say so."""


class InputView:
    """How values of one run look."""

    def __init__(self, artifacts: Mapping[str, Artifact], files: str) -> None:
        self._artifacts = artifacts
        self._files = files
        """The address below which the page's files are."""

    def whole(self, value: Json) -> Html:
        """A gate's input."""
        if value in (None, {}, [], ""):
            return Html("")
        return element("section", self._of(value, 0), class_="card value", aria_label="What it is about")

    def facts(self, value: Json) -> Html:
        """An answer."""
        return self._of(value, 0)

    def file(self, name: str) -> Html:
        """A file of the run, by its name."""
        artifact = self._artifacts.get(name)
        if artifact is None:
            return joined(name)
        address = f"{self._files}/{quote(name, safe='')}"
        kind = type_of(artifact.content_type)
        if kind.startswith("image/") and kind in HARMLESS:
            return element("a", element("img", src=address, alt=name, loading="lazy"), href=address)
        size = element("span", _size(artifact.size), class_="quiet")
        return element("span", element("a", name, href=address, download=name), size, class_="file")

    def _of(self, value: Json, depth: int) -> Html:
        if isinstance(value, dict):
            if _is_reference(value, self._artifacts):
                return self.file(value["name"])
            return self._object(value, depth)
        if isinstance(value, list):
            return self._list(value, depth)
        return _plain(value)

    def _object(self, value: dict[str, Json], depth: int) -> Html:
        if depth >= DEPTH_MAX:
            return _json(value)
        rows = []
        for key, part in value.items():
            wide = _is_wide(part, self._artifacts)
            rows.append(element("dt", label(key), class_="wide" if wide else None))
            rows.append(element("dd", self._of(part, depth + 1), class_="value wide" if wide else "value"))
        return element("dl", rows) if rows else element("span", "empty", class_="quiet")

    def _list(self, value: list[Json], depth: int) -> Html:
        if not value:
            return element("span", "none", class_="quiet")
        if depth >= DEPTH_MAX:
            return _json(value)
        if all(isinstance(row, dict) and row and not _is_reference(row, self._artifacts) for row in value):
            return self._table(value, depth)
        items = [element("li", self._of(part, depth + 1)) for part in value[:ROWS_MAX]]
        return joined([element("ul", items), _more(len(value) - ROWS_MAX)])

    def _table(self, rows: list[dict[str, Json]], depth: int) -> Html:
        columns = list(dict.fromkeys(key for row in rows[:ROWS_MAX] for key in row))
        numbers = {key for key in columns if all(_is_number(row.get(key)) or key not in row for row in rows)}
        looks = {key: "number" if key in numbers else None for key in columns}
        head = element("tr", [element("th", label(key), scope="col", class_=looks[key]) for key in columns])
        lines = [
            element("tr", [element("td", self._cell(row, key, depth), class_=looks[key]) for key in columns])
            for row in rows[:ROWS_MAX]
        ]
        table = element("table", element("thead", head), element("tbody", lines))
        return joined([element("div", table, class_="table", tabindex=0), _more(len(rows) - ROWS_MAX)])

    def _cell(self, row: dict[str, Json], key: str, depth: int) -> Html:
        return self._of(row[key], depth + 2) if key in row else Html("")


def label(key: str) -> str:
    """A key as people read it: `unit_price` → Unit price."""
    text = re.sub(r"[_-]+", " ", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", key)).strip() or key
    return text[:1].upper() + text[1:]


def _is_reference(value: dict[str, Json], artifacts: Mapping[str, Artifact]) -> bool:
    name = value.get("name")
    known = artifacts.get(name) if isinstance(name, str) else None
    return known is not None and value.get("digest") == known.digest


def _is_wide(value: Json, artifacts: Mapping[str, Artifact]) -> bool:
    if isinstance(value, str):
        return "\n" in value or len(value) > 90
    if isinstance(value, dict):
        return not _is_reference(value, artifacts) or type_of(value.get("content_type")).startswith("image/")
    return isinstance(value, list) and any(isinstance(part, dict) for part in value)


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _plain(value: Json) -> Html:
    if value is None:
        return element("span", "—", class_="quiet")
    if isinstance(value, bool):
        return joined("Yes" if value else "No")
    if isinstance(value, str):
        return markdown(value) if "\n" in value else joined(value)
    return joined(msgspec.json.encode(value).decode())


def _json(value: Json) -> Html:
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    cut = text if len(text) <= JSON_MAX else text[:JSON_MAX] + "\n…"
    return element("pre", cut)


def _more(count: int) -> Html | None:
    return element("p", f"and {count} more", class_="quiet") if count > 0 else None


def _size(size: int) -> str:
    for unit in ("bytes", "KB", "MB"):
        if size < 1000 or unit == "MB":
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size = size / 1000  # type: ignore[assignment]
    return ""
