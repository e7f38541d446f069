"""The torture of the service: servers that are killed and started again, a database that crashes, one client.

Owns the rhythm. On a file one server coordinates and one is only a door (`--no-engine`); on PostgreSQL two coordinate,
one is a door, and the database itself crashes. In the end everything is left alive until the client has its answers and
every process has closed properly; then the judge looks.
"""

from __future__ import annotations

import asyncio
import random
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import msgspec
from msgspec import Struct

from tests.postgres_server import Server, binaries, free_port
from tests.torture import journal
from tests.torture.engine import CLIENT, DATABASE
from tests.torture.evidence import damage_of, runs_of
from tests.torture.nursery import SERVICE
from tests.torture.processes import Processes, Unexpected
from tests.torture.service.evidence import ServiceEvidence
from tests.torture.service.judge import judge
from tests.torture.verdict import Verdict
from treadle.runtime.access.audit import LOG, event_of
from treadle.runtime.connecting import connect
from treadle.runtime.service.records import Records
from treadle.store.postgres import PostgresStore
from treadle.store.sqlite import SqliteStore

ROLES = ("viewer", "operator", "author", "approver", "worker")
RHYTHM_S = (0.2, 2.5)
DOOR, DATABASE_CRASH = 0.3, 0.25
"""How often a fault hits the door instead of a server that coordinates, or the database."""
START_S = 90.0
SETTINGS = {
    "TREADLE_WEBHOOKS_SIGNING_SECRET": "SIGN",
    "TREADLE_SECRET_SIGN": "whsec_" + "b2xk" * 8,
    "TREADLE_NET_ALLOW": "127.0.0.1:*",
    "TREADLE_ENGINE_LEASE_MS": "3000",
    SERVICE: "1",
}


class HttpServer(Struct):
    """One `treadle serve`, which is started again on its port whenever it was killed."""

    port: int
    options: tuple[str, ...]
    pid: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


class Tortured(Struct):
    """What was done."""

    kills: int = 0
    door_kills: int = 0
    database_crashes: int = 0
    seconds: float = 0.0
    settling_seconds: float = 0.0
    findings: list[str] = []


class ServiceTorture:
    """One torture of the service on one store."""

    def __init__(self, place: Path, seed: int, on_postgres: bool, say: Callable[[str], None]) -> None:
        self._place = place
        self._seed = seed
        self._random = random.Random(seed)
        self._say = say
        self._on_postgres = on_postgres
        self.done = Tortured()

    def run(self, seconds: float, settle_s: float) -> tuple[Tortured, Verdict]:
        """Kills for so long, then lets everything finish, and judges."""
        with ExitStack() as held:
            database = None
            if self._on_postgres:
                database = Server(binaries())
                held.callback(database.close)
            self._store = database.address() if database is not None else str(self._place / DATABASE)
            keys = asyncio.run(_keys(self._store))
            coordinate = 2 if self._on_postgres else 1
            servers = [
                HttpServer(free_port(), () if n < coordinate else ("--no-engine",)) for n in range(coordinate + 1)
            ]
            settings = {**SETTINGS, "TREADLE_WEBHOOKS_PUBLIC_URL": servers[0].url}
            processes = Processes(self._place / "stderr.log", settings)
            held.callback(processes.close)
            for server in servers:
                self._start(processes, server)
                self._wait_ready(processes, server)
            urls = [server.url for server in servers]
            client = processes.start(
                "service-client", self._place, self._seed, msgspec.json.encode(keys).decode(), *urls
            )
            processes.wait_ready(client, START_S)
            self._say(f"{len(servers)} servers on {'PostgreSQL' if self._on_postgres else 'a file'}, one client")
            began = time.monotonic()
            self._strike(processes, servers, database, began + seconds)
            self.done.seconds = time.monotonic() - began
            self._settle(processes, servers, client, settle_s)
            self.done.settling_seconds = time.monotonic() - began - self.done.seconds
            evidence = asyncio.run(gather(self._place, self._store, self._on_postgres))
        verdict = judge(evidence)
        verdict.findings += self.done.findings
        return self.done, verdict

    def _start(self, processes: Processes, server: HttpServer) -> None:
        words = ("serve", "--store", self._store, "--port", server.port, *server.options)
        server.pid = processes.start("serve", *words)

    def _wait_ready(self, processes: Processes, server: HttpServer) -> None:
        until = time.monotonic() + START_S
        while not _is_ready(server.url):
            if time.monotonic() > until:
                raise Unexpected(f"{server.url} is not ready after {START_S} s; see {self._place}/stderr.log")
            processes.rest(0.05)

    def _strike(self, processes: Processes, servers: list[HttpServer], database: Server | None, until: float) -> None:
        *coordinate, door = servers
        while time.monotonic() < until:
            processes.rest(self._random.uniform(*RHYTHM_S))
            if database is not None and self._random.random() < DATABASE_CRASH:
                database.restart()
                self.done.database_crashes += 1
                continue
            victim = door if self._random.random() < DOOR else self._random.choice(coordinate)
            processes.kill(victim.pid)
            self.done.kills += 1
            self.done.door_kills += victim is door
            self._start(processes, victim)
            if not self._on_postgres or self._random.random() < 0.5:  # else the next fault may meet it while it starts
                self._wait_ready(processes, victim)

    def _settle(self, processes: Processes, servers: list[HttpServer], client: int, settle_s: float) -> None:
        self._say("no more faults: everything has to finish")
        for server in servers:
            self._wait_ready(processes, server)
        processes.signal(client, signal.SIGTERM)
        try:
            gone = processes.wait("gone", settle_s, client)
            if gone["code"] != 0:
                self.done.findings.append(f"the client failed: {gone}; see {self._place}/stderr.log")
        except Unexpected as problem:
            self.done.findings.append(f"the client still waits for answers: {problem}")
        for server in reversed(servers):
            processes.leaving.add(server.pid)
            processes.signal(server.pid, signal.SIGTERM)
            gone = processes.wait("gone", settle_s, server.pid)
            if gone["code"] != 0:
                self.done.findings.append(f"a server did not close properly: {gone}")
        _, met, trace = (self._place / "stderr.log").read_text(errors="replace").partition("Traceback")
        if met:
            self.done.findings.append(f"some process met something it did not expect:\n{met}{trace[:2_000]}")


def _is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health/ready", timeout=5) as reply:
            return bool(reply.status == 200)
    except (OSError, urllib.error.URLError):
        return False


async def _keys(store: str) -> dict[str, str]:
    async with connect(store, create=True) as client:
        return {role: (await client.keys.create(role, [role]))[1] for role in ROLES}


async def gather(place: Path, database: str, on_postgres: bool) -> ServiceEvidence:
    """What the judge looks at, after everything has stopped."""
    store = await (PostgresStore.open(database) if on_postgres else SqliteStore.open(Path(database)))
    try:
        runs = await runs_of(store)
        shards = range(store.shards)
        records = Records(store)
        verdict = await records.verify_log(LOG)
        return ServiceEvidence(
            client=journal.read(place / CLIENT),
            work=[],
            deaths={},
            runs=runs,
            histories={run: await store.history(row.run) for run, row in runs.items()},
            left={
                "the outbox": len(await store.outbox(shards)),
                "the dead letters": len(await store.outbox(shards, parked=True)),
                "the inbox": len(await store.inbox(shards)),
                "the timers": len(await store.timers(shards)),
                "the gates": len(await store.find_gates()),
            },
            damage=await damage_of(store) + [f"audit: {problem}" for problem in verdict.problems],
            audited=await _audited(records),
        )
    finally:
        await store.close()


async def _audited(records: Records) -> set[str]:
    found: set[str] = set()
    before: int | None = None
    while page := await records.entries(LOG, before=before, limit=1_000):
        found |= {event_of(entry).request for entry in page}
        before = page[-1].id
    return found
