"""The whole torture: everybody is started, struck for a while, healed; everything finishes; the judge looks.

Owns the order of things. In the end every process is asked to stop and has to do so properly; what is left open is the
judge's to name.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable
from pathlib import Path

import asyncpg
from msgspec import Struct

from tests.torture.journal import Journal, mono_ms
from tests.torture.many.crew import Crew, Victim
from tests.torture.many.evidence import ManyEvidence, gather
from tests.torture.many.nemesis import OF_DATABASE, OF_LINES, Nemesis
from tests.torture.many.roles import FAULTS
from tests.torture.processes import Unexpected
from treadle.errors import StoreUnavailable
from treadle.model.states import RUN_OPEN
from treadle.runtime.connecting import connect


class Done(Struct):
    """What a torture has done."""

    seconds: float = 0.0
    settling_seconds: float = 0.0
    faults: dict[str, int] = {}
    skewed: bool = False
    findings: list[str] = []
    """What went wrong while everything had to finish; the judge finds the rest."""


def report(done: Done, evidence: ManyEvidence, seed: int) -> dict[str, object]:
    """The figures of one torture."""
    names = ("kill", "stop", "term", "restart", "failover")
    lines = {name: number for name, number in done.faults.items() if name in OF_LINES}
    return {
        "seed": seed,
        **{f"{name}s": done.faults.get(name, 0) for name in names},
        "line_faults": sum(lines.values()),
        **{f"database_{name}": done.faults.get(name, 0) for name in OF_DATABASE},
        "clock_jumps": done.faults.get("skew", 0) if done.skewed else "none: libfaketime is not installed",
        "replayed_requests": evidence.replays,
        "leases_lost": sum(line["fault"] == "lease" for line in evidence.faults),
        "seconds": round(done.seconds, 1),
        "settling_seconds": round(done.settling_seconds, 1),
    }


def torture(
    place: Path, seed: int, seconds: float, settle_s: float, say: Callable[[str], None], campaign: str = ""
) -> tuple[Done, ManyEvidence]:
    """One torture, and what it has left behind. `campaign`: failover or pgbouncer, beside everything else."""
    faults = Journal(place / FAULTS)
    crew = Crew(place, seed, campaign=campaign)
    nemesis = Nemesis(crew, faults, seed)
    done = Done(skewed=crew.is_skewed)
    try:
        crew.start_all()
        for victim in crew.victims:
            crew.wait_ready(victim)
        say(f"{len(crew.victims)} processes on {crew.server.address()}")
        began = time.monotonic()
        nemesis.strike_for(seconds)
        done.seconds = time.monotonic() - began
        done.faults = dict(nemesis.done)
        say("no more faults: everything has to finish")
        _settle(crew, settle_s, done, say)
        _, met, trace = (place / "stderr.log").read_text(errors="replace").partition("Traceback")
        if met:
            done.findings.append(f"some process met something it did not expect:\n{met}{trace[:8_000]}")
        done.settling_seconds = time.monotonic() - began - done.seconds
        ahead = asyncio.run(_ahead(crew.server.address()))
        return done, asyncio.run(gather(place, crew.server.address(), ahead))
    finally:
        crew.close()
        faults.close()


def _settle(crew: Crew, settle_s: float, done: Done, say: Callable[[str], None]) -> None:
    """Everybody gets all answers, every run ends, every engine has its share, everybody closes properly."""
    for victim in crew.victims:
        crew.wait_ready(victim)
    until = time.monotonic() + settle_s

    def left_s() -> float:
        return max(until - time.monotonic(), 1.0)

    for victim in crew.victims:
        if victim.role == "client":
            crew.signal(victim, signal.SIGTERM)
            _expect(done, "still waits for an answer", victim, lambda who=victim: crew.wait_gone(who, left_s()))  # type: ignore[misc]
        elif victim.role == "engine":
            _expect(done, "still waits for an answer", victim, lambda who=victim: crew.wait_quiet(who, left_s()))  # type: ignore[misc]
    left = asyncio.run(_wait_finished(crew.server.address(), left_s()))
    nodes = asyncio.run(_coordinators(crew.server.address()))
    say(f"{left} runs are open, {nodes} nodes coordinate")
    wanted = sum(victim.role == "engine" for victim in crew.victims)
    if nodes != wanted:
        done.findings.append(f"{wanted} engines are up and {nodes} coordinate")
    for victim in crew.victims:
        if victim.role != "client":
            crew.signal(victim, signal.SIGTERM)
            _expect(done, "does not close", victim, lambda who=victim: crew.wait_gone(who))  # type: ignore[misc]


def _expect(done: Done, otherwise: str, victim: Victim, wait: Callable[[], None]) -> None:
    try:
        wait()
    except Unexpected as problem:
        done.findings.append(f"{victim.life} {otherwise}: {problem}")


async def _wait_finished(database: str, settle_s: float) -> int:
    """How many runs are still open when nobody waits any longer."""
    until = time.monotonic() + settle_s
    async with connect(database) as client:
        while True:
            try:
                left = await client.runs(statuses=RUN_OPEN, limit=100)
                if not left or time.monotonic() > until:
                    return len(left)
                await asyncio.wait_for(client.run(left[0].run).wait(), 5)
            except (StoreUnavailable, TimeoutError):
                continue


async def _coordinators(database: str) -> int:
    """Nodes that own something."""
    connection = await asyncpg.connect(database)
    try:
        return int(await connection.fetchval("SELECT count(DISTINCT owner) FROM leases WHERE until > 0"))
    finally:
        await connection.close()


async def _ahead(database: str) -> int:
    connection = await asyncpg.connect(database)
    try:
        return int(await connection.fetchval("SELECT extract(epoch FROM clock_timestamp()) * 1000")) - mono_ms()
    finally:
        await connection.close()
