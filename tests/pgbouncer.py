"""A PgBouncer of one's own, in front of a server.

Owns one process and its configuration. Promises that it does not outlive `close`. PgBouncer comes from the system;
where it is missing the tests skip and say so.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from time import monotonic

from tests.postgres_server import USER, free_port

POOL_SIZE = 3
"""Fewer connections to the server than a single process of ours wants: they have to be shared."""
START_S = 20.0


class NoPgBouncer(Exception):
    """Why there is none."""


def program() -> str:
    """Raises NoPgBouncer."""
    found = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if found is None:
        raise NoPgBouncer("pgbouncer is not installed (Debian: apt-get install pgbouncer)")
    return found


class PgBouncer:
    """See the module's docstring. `mode`: session or transaction."""

    def __init__(self, server: int, mode: str, user: str | None, **settings: str) -> None:
        self._home = Path(tempfile.mkdtemp(prefix="treadle-pgbouncer-"))
        self._home.chmod(0o755)
        self.port = free_port()
        users = self._home / "users"
        users.write_text(f'"{USER}" ""\n')
        chosen = {
            "listen_addr": "127.0.0.1",
            "listen_port": str(self.port),
            "unix_socket_dir": "",
            "auth_type": "trust",
            "auth_file": str(users),
            "pool_mode": mode,
            "default_pool_size": str(POOL_SIZE if mode == "transaction" else 50),
            "max_client_conn": "500",
            "server_login_retry": "0",
            **settings,
        }
        lines = [f"{name} = {value}" for name, value in chosen.items()]
        written = ["[databases]", f"* = host=127.0.0.1 port={server}", "[pgbouncer]", *lines, ""]
        (self._home / "ini").write_text("\n".join(written))
        command = [program(), "-q", str(self._home / "ini")]
        self._process = subprocess.Popen(
            command, user=user, cwd=self._home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._wait_up()

    def address(self, database: str = "postgres") -> str:
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{database}"

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(10)
        shutil.rmtree(self._home, ignore_errors=True)

    def _wait_up(self) -> None:
        until = monotonic() + START_S
        while monotonic() < until and self._process.poll() is None:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
        self.close()
        raise RuntimeError(f"pgbouncer did not come up: exit {self._process.returncode}")
