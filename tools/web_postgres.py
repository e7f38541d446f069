"""A PostgreSQL database for the browser tests: prints its address, keeps it until standard input ends, then drops it.

Owns one database on the server that `treadle.testing.world.postgres` finds: the one `TREADLE_TEST_POSTGRES` names, else
one out of a wheel. Where none can be had it prints why and exits with 3, and the tests are skipped with that reason.
"""

from __future__ import annotations

import asyncio
import os
import sys
from urllib.parse import urlsplit, urlunsplit

from treadle.testing.world.postgres import run_all, server
from treadle.testing.world.store_names import NoPostgres

NONE_HERE = 3


def main() -> int:
    try:
        address = server()
    except NoPostgres as problem:
        print(problem, flush=True)
        return NONE_HERE
    name = f"treadle_web_{os.getpid()}"
    asyncio.run(run_all(address, f"CREATE DATABASE {name}"))
    try:
        print(urlunsplit(urlsplit(address)._replace(path=f"/{name}")), flush=True)
        sys.stdin.read()
    finally:
        asyncio.run(run_all(address, f"DROP DATABASE {name} WITH (FORCE)"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
