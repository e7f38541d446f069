"""The statements of this store, by name."""

from __future__ import annotations

from treadle.store.statements import read

FILES = (
    "queries.sql",
    "upkeep.sql",
    "membership.sql",
    "work.sql",
    "service.sql",
    "following.sql",
)
SQL = read("treadle.store.postgres", *FILES)
