"""The statements of this store, by name."""

from __future__ import annotations

from treadle.store.statements import read

FILES = (
    "queries.sql",
    "service.sql",
    "work.sql",
    "following.sql",
)
SQL = read("treadle.store.sqlite", *FILES)
