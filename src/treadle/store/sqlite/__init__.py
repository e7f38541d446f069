"""A store in one SQLite file, and the lock of the process that coordinates it."""

from treadle.store.sqlite.ownership import Other, Ownership
from treadle.store.sqlite.store import SqliteStore

__all__ = ["Other", "Ownership", "SqliteStore"]
