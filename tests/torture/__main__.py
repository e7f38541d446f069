"""`python -m tests.torture [--kills N] [--minutes M] [--cuts N] [--rot N] [--seed S] [--keep DIRECTORY] [--json]`, or
with `--store postgres [--campaign failover|pgbouncer] [--minutes M] …` many machines instead of one file; with
`--service [--store sqlite|postgres] [--minutes M]` clients over HTTP; with `--flow [--starts N] [--kills N]` four
engines on one PostgreSQL and workflows that let one run live at a time.

Exit 0 only if nothing is lost, nothing happens twice and no stale result was accepted."""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from tests.pgbouncer import NoPgBouncer
from tests.torture.cutting import Cuts, cut_often, record
from tests.torture.evidence import gather
from tests.torture.judge import judge
from tests.torture.killing import Killed, Torture
from tests.torture.rotten import rot_often
from tests.torture.verdict import Verdict
from treadle.testing.world.store_names import NoPostgres

SETTLE_S = 120.0
FLOW_SETTLE_S = 400.0
"""A thousand runs one after the other, each with two commits, on a machine that is busy."""
SHOWN = 20
KILLS, STRIKES = 100, 20
PLANTED = ("lost", "stale", "clock", "crowd", "forgetful")


def say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def torture(place: Path, seed: int, kills: int, seconds: float, settle_s: float = SETTLE_S) -> tuple[Killed, Verdict]:
    """One torture and the verdict on it."""
    began = time.monotonic()
    killed = Torture(place, seed, lambda text: say(f"{time.monotonic() - began:7.1f} s  {text}")).run(
        kills, seconds, settle_s
    )
    return killed, judge(asyncio.run(gather(place)))


def cut_power(place: Path, count: int, seed: int) -> Cuts:
    """A recording of its own, and so many cuts of it."""
    if not count:
        return Cuts()
    say(f"{count} power cuts")
    place.mkdir()
    return cut_often(record(place, seed), count, seed, place)


def report(killed: Killed, verdict: Verdict, seed: int) -> dict[str, object]:
    return {
        "seed": seed,
        "kills": killed.kills,
        "while_starting": killed.early,
        "takeovers": killed.takeovers,
        "seconds": round(killed.seconds, 1),
        "settling_seconds": round(killed.settling_seconds, 1),
        **verdict.figures(),
    }


def one_file(place: Path, seed: int, options: argparse.Namespace) -> tuple[dict[str, object], list[str]]:
    """Kills, power cuts and damaged copies."""
    killed, verdict = torture(place, seed, options.kills or KILLS, (options.minutes or 60) * 60)
    cuts = cut_power(place / "power", options.cuts, seed)
    rotten = rot_often(place / "rot", options.rot, seed, say)
    figures = report(killed, verdict, seed) | {"cuts": cuts.cuts, "cut_losses": len(cuts.losses)}
    figures |= {"rotten_copies": rotten.copies, "rot_refused": rotten.refused, "rot_harmless": rotten.harmless}
    return figures, verdict.findings + cuts.losses + rotten.unseen


def many(place: Path, seed: int, options: argparse.Namespace) -> tuple[dict[str, object], list[str]]:
    """Many machines on one PostgreSQL."""
    from tests.torture.many.judge import judge as judge_many
    from tests.torture.many.plants import VARIABLE
    from tests.torture.many.torture import report as report_many
    from tests.torture.many.torture import torture as torture_many

    began = time.monotonic()
    if options.plant:
        os.environ[VARIABLE] = options.plant
    done, evidence = torture_many(
        place,
        seed,
        (options.minutes or 2) * 60,
        SETTLE_S,
        lambda text: say(f"{time.monotonic() - began:7.1f} s  {text}"),
        options.campaign,
    )
    verdict = judge_many(evidence)
    verdict.findings += done.findings
    return report_many(done, evidence, seed) | verdict.figures(), verdict.findings


def service(place: Path, seed: int, options: argparse.Namespace) -> tuple[dict[str, object], list[str]]:
    """Clients over HTTP while servers and the database are killed."""
    from tests.torture.service.torture import ServiceTorture

    began = time.monotonic()
    torment = ServiceTorture(
        place, seed, options.store == "postgres", lambda text: say(f"{time.monotonic() - began:7.1f} s  {text}")
    )
    done, verdict = torment.run((options.minutes or 2) * 60, SETTLE_S)
    figures = {name: value for name, value in msgspec.structs.asdict(done).items() if name != "findings"}
    return {"seed": seed, **figures, **verdict.figures()}, verdict.findings


def flow(place: Path, seed: int, options: argparse.Namespace) -> tuple[dict[str, object], list[str]]:
    """Many starts of workflows that let one run live at a time, while engines are killed."""
    from tests.torture.flow.judge import judge as judge_flow
    from tests.torture.flow.judge import keys_live_at_once, most_waiting
    from tests.torture.flow.torture import FlowTorture
    from tests.torture.many.plants import VARIABLE

    began = time.monotonic()
    if options.plant:
        os.environ[VARIABLE] = options.plant
    torment = FlowTorture(place, seed, options.starts, lambda text: say(f"{time.monotonic() - began:7.1f} s  {text}"))
    done, evidence = torment.run(STRIKES if options.kills is None else options.kills, FLOW_SETTLE_S)
    verdict = judge_flow(evidence)
    verdict.findings += done.findings
    figures: dict[str, object] = {"seed": seed, **{f"{name}s": number for name, number in done.faults.items()}}
    figures |= {"leases_lost": sum(line["fault"] == "lease" for line in evidence.faults)}
    figures |= {"queued_at_once": most_waiting(evidence), "keys_live_at_once": keys_live_at_once(evidence)}
    return figures | {"seconds": round(done.seconds, 1)} | verdict.figures(), verdict.findings


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="./dev torture", description="Kills engines; judges what is left.")
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite", help="one file, or many machines")
    parser.add_argument("--service", action="store_true", help="clients over HTTP, on either store")
    parser.add_argument("--flow", action="store_true", help="workflows that limit their starts, on one PostgreSQL")
    parser.add_argument("--starts", type=int, default=1_000, help="with --flow: starts of each workflow (1,000)")
    parser.add_argument("--kills", type=int, default=None, help="how many (100; with --flow 20 faults)")
    parser.add_argument(
        "--minutes", type=float, default=None, help="stop after so long (60; with postgres or --service 2)"
    )
    parser.add_argument("--seed", type=int, default=None, help="the rhythm and the client's choices (a fresh one)")
    parser.add_argument("--keep", type=Path, default=None, help="leave database, journals and log in this directory")
    parser.add_argument("--cuts", type=int, default=0, help="power cuts of a recording, afterwards (0)")
    parser.add_argument("--rot", type=int, default=60, help="damaged copies of a file, afterwards (60)")
    parser.add_argument("--plant", choices=PLANTED, help="a defect of postgres's or flow's that must be found")
    parser.add_argument(
        "--campaign",
        choices=("failover", "pgbouncer"),
        default="",
        help="with postgres: a standby takes over again and again, or a pooler is in between",
    )
    parser.add_argument("--json", action="store_true", help="the figures as JSON on standard output")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(143))  # what was started is ended first
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 31)
    with tempfile.TemporaryDirectory(prefix="treadle-torture-") as temporary:
        place = options.keep or Path(temporary)
        place.mkdir(parents=True, exist_ok=True)
        say(f"seed {seed}, in {place}")
        torment = service if options.service else many if options.store == "postgres" else one_file
        torment = flow if options.flow else torment
        try:
            figures, findings = torment(place, seed, options)
        except (NoPostgres, NoPgBouncer) as problem:
            say(str(problem))
            return 2
    if options.json:
        sys.stdout.write(msgspec.json.encode(figures).decode() + "\n")
    else:
        sys.stdout.write("".join(f"{name:18} {value}\n" for name, value in figures.items()))
    for finding in findings[:SHOWN]:
        say(f"✗ {finding}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
