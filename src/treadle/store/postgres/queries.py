"""Named statements out of the files beside this one."""

from __future__ import annotations

import re
from importlib.resources import files

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


def parse(text: str) -> dict[str, str]:
    """name → statement, without comments, on one line: asyncpg finds a prepared statement by its text."""
    parts = _NAME.split(text)
    named: dict[str, str] = {}
    for name, body in zip(parts[1::2], parts[2::2], strict=True):
        if name in named:
            raise ValueError(f"two statements are called {name}")
        lines = [line.split("--")[0].strip() for line in body.splitlines()]
        named[name] = " ".join(line for line in lines if line).rstrip(";")
    return named


_FILES = [files(__package__).joinpath(name) for name in ("queries.sql", "upkeep.sql", "membership.sql", "work.sql")]
SQL = parse("\n".join(file.read_text(encoding="utf-8") for file in _FILES))
