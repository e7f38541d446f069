"""A store in a PostgreSQL database, for any number of engines."""

from treadle.store.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
