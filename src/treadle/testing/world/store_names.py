"""The names of the stores that a scenario can be played on.

memory     the reference store: as durable as the world itself, and the fastest
sqlite     a SQLite file of its own, in a folder for temporary files
postgres   PostgreSQL, in a schema of this process
"""

from __future__ import annotations

from typing import Literal

from treadle.errors import TreadleError

StoreName = Literal["memory", "sqlite", "postgres"]


class NoPostgres(TreadleError):
    """There is no PostgreSQL to play on."""
