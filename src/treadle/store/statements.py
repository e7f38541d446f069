"""Named statements from the SQL files of a store."""

from __future__ import annotations

import re
from importlib.resources import files

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


def parse(text: str) -> dict[str, str]:
    """Name → statement, without comments and on one line: drivers find a prepared statement by its text."""
    parts = _NAME.split(text)
    named: dict[str, str] = {}
    for name, body in zip(parts[1::2], parts[2::2], strict=True):
        if name in named:
            raise ValueError(f"two statements are called {name}")
        lines = [line.split("--")[0].strip() for line in body.splitlines()]
        named[name] = " ".join(line for line in lines if line).rstrip(";")
    return named


def read(package: str, *names: str) -> dict[str, str]:
    """The statements of several files beside a module."""
    return parse("\n".join(files(package).joinpath(name).read_text(encoding="utf-8") for name in names))
