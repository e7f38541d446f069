"""python -m tests.simulator [SEED | --seeds N | --seconds N] [--from SEED | --of-commit] [--without a,b] …

Without arguments: ten seconds of fresh seeds. With a seed: that one again, made smaller if it fails. Exit code 0 if
everything held, 1 if not, 2 for wrong arguments.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
from collections.abc import Sequence

import msgspec

from tests.simulator import batch
from tests.simulator.report import command, describe, git_hash
from tests.simulator.simulate import shrink, simulate

SEEDS = 10**9
SHOWN_MAX = 3
"""Failures of a batch that are written out; the others are listed."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    options = _parser().parse_args(arguments)
    without = frozenset(options.without.split(",")) if options.without else frozenset()
    if options.seed is not None:
        return _again(options.seed, without, options)
    return _fresh(options, without)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="./dev sim", description="Simulate engines, workers and people from seeds.")
    parser.add_argument("seed", nargs="?", type=int, help="play this seed again")
    parser.add_argument("--seeds", type=int, help="so many fresh seeds")
    parser.add_argument("--seconds", type=float, help="fresh seeds for so long")
    parser.add_argument("--from", dest="first", type=int, help="first seed of a batch instead of a random one")
    of_commit = "first seed out of the hash of the commit: each commit has fresh ones, and the same ones every time"
    parser.add_argument("--of-commit", action="store_true", help=of_commit)
    parser.add_argument("--without", default="", help="features and faults to switch off, separated by commas")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: all cores)")
    stores = ("memory", "sqlite", "postgres")
    parser.add_argument("--store", choices=stores, default="memory", help="what the engines share")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of text")
    parser.add_argument("--verbose", action="store_true", help="also print coverage in full, or a passing seed's facts")
    return parser


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _again(seed: int, without: frozenset[str], options: argparse.Namespace) -> int:
    outcome = simulate(seed, without, options.store)
    if outcome.failure is None:
        facts = {"seed": seed, "runs": outcome.runs, "completed": outcome.completed_runs, "steps": outcome.steps}
        _say(_json(facts) if options.json else f"seed {seed} holds: {outcome.runs} runs, {outcome.steps} steps")
        if options.verbose:
            _say(outcome.plan.describe())
        return 0
    smallest = shrink(outcome)
    if options.json:
        failure = outcome.failure
        _say(_json({"seed": seed, "rule": failure.rule, "text": failure.text, "again": command(smallest)}))
    else:
        _say(describe(smallest))
    return 1


def _fresh(options: argparse.Namespace, without: frozenset[str]) -> int:
    first = options.first if options.first is not None else _first(is_of_commit=options.of_commit)
    seconds = options.seconds if options.seconds is not None or options.seeds is not None else 10.0
    limits = {"seeds": options.seeds, "seconds": seconds}
    result = batch.run(first, **limits, jobs=options.jobs, store=options.store, without=without)
    _say(_json(_facts(first, result)) if options.json else _text(first, result, without, options))
    return 1 if result.failures or result.is_vacuous else 0


def _first(*, is_of_commit: bool) -> int:
    """Without a commit (a folder that git does not know) seeds are random after all."""
    commit = git_hash() if is_of_commit else ""
    try:
        return int(commit, 16) % SEEDS
    except ValueError:
        return secrets.randbelow(SEEDS)


def _facts(first: int, result: batch.Batch) -> dict[str, object]:
    return {
        "git": git_hash(),
        "first": first,
        "seeds": result.seeds,
        "seconds": round(result.seconds, 2),
        "seeds_per_core_minute": round(result.per_minute),
        "runs": result.runs,
        "completed_runs": result.completed_runs,
        "completed_visits": result.completed_visits,
        "vacuous": result.is_vacuous,
        "failures": [{"seed": seed, "rule": rule, "text": text} for seed, rule, text in result.failures],
        "coverage": result.coverage.as_json(),
    }


def _text(first: int, result: batch.Batch, without: frozenset[str], options: argparse.Namespace) -> str:
    lines = [
        f"{git_hash()}: {result.seeds} seeds from {first} in {result.seconds:.0f} s",
        f"{result.per_minute:,.0f} seeds per minute and core, {result.steps / max(result.seeds, 1):,.0f} steps a seed",
        f"{result.runs} runs, {result.completed_runs} completed, {result.completed_visits} visits completed",
        f"cells: {result.coverage.summary()}",
    ]
    if options.verbose:
        lines += [f"{name}:\n  " + _cells(cells) for name, cells in result.coverage.as_json().items()]
    if result.is_vacuous:
        lines.append("too few runs completed for this batch to mean anything")
    shown = {rule: seed for seed, rule, _ in reversed(result.failures)}
    for seed in list(shown.values())[:SHOWN_MAX]:
        failed = simulate(seed, without, options.store)
        lines += ["", describe(shrink(failed)) if failed.failure is not None else f"seed {seed} failed and now holds"]
    if result.failures:
        lines += ["", f"{len(result.failures)} seeds failed:"]
        lines += [f"  {seed}  {rule}: {text.splitlines()[0][:120]}" for seed, rule, text in result.failures]
    return "\n".join(lines)


def _cells(cells: dict[str, int]) -> str:
    return "\n  ".join(f"{number:>8} {name}" for name, number in cells.items())


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


if __name__ == "__main__":
    sys.exit(main())
