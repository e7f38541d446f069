"""The statements of this store, by name."""

from __future__ import annotations

from treadle.store.statements import read

SQL = read("treadle.store.postgres", "queries.sql", "upkeep.sql", "membership.sql", "work.sql")
