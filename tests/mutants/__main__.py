"""`python -m tests.mutants [NAME…]`: plants bugs, listed or random ones; exit 0 only if each is caught.

python -m tests.mutants                                   every planted bug
python -m tests.mutants --in runtime                      those of one room
python -m tests.mutants --random 30 --seed 7 --in kernel  random changes, the same ones for the same seed
python -m tests.mutants --record                          which tests execute which function: later hunts are quicker
python -m tests.mutants --list [--random …]               only say which
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from tests.mutants.bug import ROOMS, Mutant, Room
from tests.mutants.catalogue import MUTANTS
from tests.mutants.change_catalogue import CHANGE_MUTANTS
from tests.mutants.hunt import SOURCES, Finding, copied, failing_already, hunt
from tests.mutants.lease_catalogue import LEASE_MUTANTS
from tests.mutants.random_changes import Change, drawn
from tests.mutants.reach import record
from tests.mutants.runtime_catalogue import RUNTIME_MUTANTS

JOBS = 2
ALL = [*MUTANTS, *CHANGE_MUTANTS, *RUNTIME_MUTANTS, *LEASE_MUTANTS]


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def chosen(names: list[str], rooms: tuple[Room, ...]) -> list[Mutant]:
    known = {mutant.name: mutant for mutant in ALL}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"there is no mutant {', '.join(unknown)}; --list shows them")
    return [known[name] for name in names] or [mutant for mutant in ALL if mutant.room in rooms]


def told(finding: Finding, number: int, total: int) -> str:
    mark = {"caught": "✓ caught  ", "survived": "✗ SURVIVED", "stale": "✗ stale   "}[finding.verdict]
    by = f"by {finding.by}" if finding.verdict == "caught" else finding.by
    return f"{number:3}/{total} {mark} {finding.mutant.name:40} {finding.seconds:5.1f} s  {by}"


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev mutants", description="Plant bugs; the suite must catch each.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="planted bugs (default: all)")
    parser.add_argument("--list", action="store_true", help="only say which")
    parser.add_argument("--record", action="store_true", help="only record which tests execute which function")
    parser.add_argument("--jobs", type=int, default=JOBS, help=f"suites at a time (default: {JOBS})")
    parser.add_argument("--in", dest="room", choices=ROOMS, help="only bugs of this room")
    parser.add_argument("--random", type=int, metavar="N", help="N random changes instead of the planted bugs")
    parser.add_argument("--seed", type=int, default=0, help="which random changes (default: 0)")
    parser.add_argument("--skip", type=int, default=0, metavar="K", help="leave out the first K of them")
    options = parser.parse_args(arguments)
    if options.random is not None and options.names:
        parser.error("either names of planted bugs, or --random")
    return options


def main(arguments: Sequence[str]) -> int:
    options = parsed(arguments)
    if options.record:
        return record(say)
    rooms: tuple[Room, ...] = (options.room,) if options.room else ROOMS
    mutants: Sequence[Mutant | Change]
    if options.random is not None:
        mutants = drawn(SOURCES, options.random, options.seed, rooms)
    else:
        mutants = chosen(options.names, rooms)
    mutants = mutants[options.skip :]
    if options.list:
        for mutant in mutants:
            say(f"{mutant.name:42} {mutant.room}/{mutant.file}")
        return 0
    began = time.monotonic()
    findings = []
    with copied(SOURCES) as original:  # the working tree may be edited meanwhile
        ignored = {room: failing_already(original, room) for room in sorted({mutant.room for mutant in mutants})}
        failing = [name for names in ignored.values() for name in names]
        for name in failing:
            say(f"    fails without any mutant and is ignored: {name}")
        for finding in hunt(mutants, original, ignored, options.jobs):
            findings.append(finding)
            say(told(finding, len(findings), len(mutants)))
    return summary(findings, failing, time.monotonic() - began)


def summary(findings: list[Finding], ignored: list[str], seconds: float) -> int:
    bad = [finding.mutant.name for finding in findings if finding.verdict != "caught"]
    caught = len(findings) - len(bad)
    say(f"\n{caught} of {len(findings)} mutants caught in {seconds:.0f} s")
    if bad:
        say("not caught:\n" + "\n".join(f"  {name}" for name in sorted(bad)))
    if ignored:
        say(f"{len(ignored)} tests fail without any mutant: mend them first")
    return 1 if bad or ignored else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
