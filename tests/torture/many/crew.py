"""Three engines, four workers and the clients, each on its line to one database; the torturer's hands.

Owns the processes: straight ones, and some whose clock is somebody else's idea (`libfaketime`: the wall clock only; the
monotonic one, which sleeps and timeouts go by, is left alone, as on a machine whose time is set). Promises that nothing
it started outlives `close`. Must not decide when to do what to whom.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import asyncpg

from tests.pgbouncer import PgBouncer
from tests.postgres_server import STANDBY, Server, address_of, binaries
from tests.torture.many.database import Hands
from tests.torture.many.lines import Lines
from tests.torture.many.roles import EXPLAIN
from tests.torture.processes import Processes, Unexpected

FAKETIME = "*/faketime/libfaketimeMT.so.1"
SKEW = "skew"
LINE_UP = (
    ("engine-1", "many-engine"),
    ("engine-2", "many-engine"),
    ("engine-3", "many-engine"),
    ("worker-1", "many-worker"),
    ("worker-2", "many-worker"),
    ("worker-3", "many-worker"),
    ("worker-4", "many-worker"),
    ("client-1", "many-client"),
)
SKEWED = ("engine-3", "worker-4")
START_S = 90.0
"""How long a start may take on a busy machine, while the database comes and goes."""
GONE_S = 60.0
EXPLAIN_S = 1.0


@dataclass
class Victim:
    """One process, through all its lives."""

    name: str
    role: str
    address: str
    """Of the database, at the end of its line."""
    pid: int = 0
    lives: int = 0
    hurt: bool = False

    @property
    def life(self) -> str:
        """What its work is signed with."""
        return f"{self.name}.{self.lives}"


class Crew:
    """See the module's docstring."""

    def __init__(
        self, place: Path, seed: int, line_up: Sequence[tuple[str, str]] = LINE_UP, campaign: str = ""
    ) -> None:
        self._place = place
        self._seed = seed
        self._parts = ExitStack()
        self.server = Server(binaries())
        """The primary."""
        self._parts.callback(self.server.close)
        self.standby: Server | None = None
        ports = [self.server.port]
        if campaign == "failover":
            self.standby = self.server.standby()
            self._parts.callback(self.standby.close)
            self.wait_for_standby()
            ports.append(self.standby.port)
        elif campaign == "pgbouncer":
            bouncer = PgBouncer(self.server.port, "transaction", binaries()[1], default_pool_size="40")
            self._parts.callback(bouncer.close)
            ports = [bouncer.port]
        self.hands = Hands(lambda: self.server, seed)
        self._parts.callback(self.hands.close)
        self.lines = Lines()
        self._parts.callback(self.lines.close)
        self._skew = place / SKEW
        self.set_skew(0)
        library = faketime()
        self.is_skewed = library is not None
        self._straight = Processes(place / "stderr.log")
        self._parts.callback(self._straight.close)
        self._skewed = self._straight
        if library is not None:
            self._skewed = Processes(place / "stderr.log", _skewed(library, self._skew))
            self._parts.callback(self._skewed.close)
        self.victims = [Victim(name, role.removeprefix("many-"), self._address(name, ports)) for name, role in line_up]

    def _address(self, name: str, servers: list[int]) -> str:
        """Of all servers, each through a line."""
        return address_of(*(self.lines.open(name, port) for port in servers))

    def start(self, victim: Victim) -> None:
        victim.lives += 1
        seed = self._seed * 1_000 + self.victims.index(victim) * 100 + victim.lives
        victim.pid = self._of(victim).start(f"many-{victim.role}", self._place, victim.address, victim.life, seed)

    def start_all(self) -> None:
        """One engine first: it makes the tables and deploys."""
        for victim in self.victims:
            self.start(victim)
            if victim is self.victims[0]:
                self.wait_ready(victim)

    def wait_ready(self, victim: Victim) -> None:
        self._of(victim).wait_ready(victim.pid, START_S)

    def kill(self, victim: Victim) -> None:
        self._of(victim).kill(victim.pid)

    def signal(self, victim: Victim, number: signal.Signals) -> None:
        if number == signal.SIGTERM:
            self._of(victim).leaving.add(victim.pid)
        self._of(victim).signal(victim.pid, number)

    def wait_gone(self, victim: Victim, seconds: float = GONE_S) -> None:
        """It was asked to stop."""
        try:
            gone = self._of(victim).wait("gone", seconds, victim.pid)
        except Unexpected as problem:
            raise Unexpected(f"{problem}; its tasks:\n{self._explanation(victim)}") from None
        if gone["code"] != 0:
            raise Unexpected(f"{victim.life} did not close properly: {gone}; see {self._place}/stderr.log")

    def _explanation(self, victim: Victim) -> str:
        log = self._place / "stderr.log"
        before = log.stat().st_size
        self.signal(victim, EXPLAIN)
        with suppress(Unexpected):
            self.rest(EXPLAIN_S)
        return log.read_bytes()[before:].decode(errors="replace")

    def wait_quiet(self, victim: Victim, seconds: float) -> None:
        """An engine was asked to ask for nothing more, and has all its answers."""
        self.signal(victim, signal.SIGUSR1)
        self._of(victim).wait("quiet", seconds, victim.pid)

    def rest(self, seconds: float) -> None:
        """Watches for that long. Raises Unexpected if a process ends by itself."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self._straight.rest(min(left, 0.2))
            if self._skewed is not self._straight:
                self._skewed.rest(0.01)

    def set_skew(self, seconds: int) -> None:
        """What the skewed processes believe from now on (they notice within a second)."""
        self._skew.write_text(f"{seconds:+d}s\n")

    def wait_for_standby(self) -> None:
        """Commits of the primary wait for its standby from now on."""
        self.server.configure(synchronous_standby_names=STANDBY)
        self.server.reload()

    def fail_over(self) -> Server:
        """The primary dies and its standby is promoted; the old primary."""
        assert self.standby is not None, "it takes the campaign `failover`"
        old, self.server, self.standby = self.server, self.standby, None
        old.crash()
        self.server.promote()
        return old

    def is_followed(self) -> bool:
        """Whether the standby has everything, and gets what comes."""

        async def ask() -> bool:
            connection = await asyncpg.connect(self.server.address(), timeout=5)
            try:
                found = await connection.fetchval("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'")
                return bool(found)
            finally:
                await connection.close()

        try:
            return asyncio.run(ask())
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            return False

    def let_back(self, old: Server) -> None:
        """It takes writes as if nothing had happened, and waits for no standby."""
        old.configure(synchronous_standby_names="")
        old.start()

    def rebuild(self, old: Server) -> None:
        """An old primary becomes the standby."""
        old.follow(self.server)
        self.standby = old
        self.wait_for_standby()

    def close(self) -> None:
        self._parts.close()

    def _of(self, victim: Victim) -> Processes:
        return self._skewed if victim.name in SKEWED else self._straight


def faketime() -> Path | None:
    """The library that gives processes another time, if it is installed."""
    return next((found for room in ("/usr/lib", "/usr/lib64") for found in Path(room).glob(FAKETIME)), None)


def _skewed(library: Path, skew: Path) -> dict[str, str]:
    return {
        "LD_PRELOAD": str(library),
        "FAKETIME_TIMESTAMP_FILE": str(skew),
        "FAKETIME_CACHE_DURATION": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
