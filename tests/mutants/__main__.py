"""`python -m tests.mutants [NAME…] [--list] [--jobs N]`: plants bugs in the kernel; exit 0 only if each is caught."""

from __future__ import annotations

import sys
import time

from tests.mutants.catalogue import MUTANTS, Mutant
from tests.mutants.hunt import SOURCES, Finding, copied, failing_already, hunt

JOBS = 2


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def chosen(names: list[str]) -> list[Mutant]:
    known = {mutant.name: mutant for mutant in MUTANTS}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"there is no mutant {', '.join(unknown)}; --list shows them")
    return [known[name] for name in names] or MUTANTS


def told(finding: Finding, number: int, total: int) -> str:
    mark = {"caught": "✓ caught  ", "survived": "✗ SURVIVED", "stale": "✗ stale   "}[finding.verdict]
    by = f"by {finding.by}" if finding.verdict == "caught" else finding.by
    return f"{number:3}/{total} {mark} {finding.mutant.name:40} {finding.seconds:5.1f} s  {by}"


def main(arguments: list[str]) -> int:
    if "--list" in arguments:
        for mutant in MUTANTS:
            say(f"{mutant.name:42} {mutant.file}")
        return 0
    jobs = JOBS
    if "--jobs" in arguments:
        place = arguments.index("--jobs")
        jobs = int(arguments[place + 1])
        del arguments[place : place + 2]
    mutants = chosen(arguments)
    began = time.monotonic()
    findings = []
    with copied(SOURCES) as original:  # the working tree may be edited meanwhile
        ignored = failing_already(original)
        for name in ignored:
            say(f"    fails without any mutant and is ignored: {name}")
        for finding in hunt(mutants, original, ignored, jobs):
            findings.append(finding)
            say(told(finding, len(findings), len(mutants)))
    return summary(findings, ignored, time.monotonic() - began)


def summary(findings: list[Finding], ignored: list[str], seconds: float) -> int:
    bad = [finding.mutant.name for finding in findings if finding.verdict != "caught"]
    caught = len(findings) - len(bad)
    say(f"\n{caught} of {len(findings)} mutants caught in {seconds:.0f} s")
    if bad:
        say(f"not caught: {', '.join(sorted(bad))}")
    if ignored:
        say(f"{len(ignored)} tests fail without any mutant: mend them first")
    return 1 if bad or ignored else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
