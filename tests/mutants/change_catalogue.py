"""The mistakes in forks, changes by operators, other versions, limits on starts and budgets (6.3 to 6.8). Each is a
patch as in `catalogue`. Seeds of the simulator find them; a start that counts twice is found by a unit test instead.
"""

from __future__ import annotations

from tests.mutants.bug import Mutant

CHANGE_MUTANTS = [
    Mutant("fork-begins-a-further-attempt", "evolve_fork.py", "    token.attempt -= 1\n", ""),
    Mutant("clocks-of-a-fork-have-no-time-left", "evolve_fork.py", "timer.due += event.shift_ms", "timer.due += 0"),
    Mutant(
        "fork-keeps-the-children-of-its-origin",
        "evolve_fork.py",
        "_ELSEWHERE = (None, Waiting.QUEUE, Waiting.EXTERNAL, Waiting.SUBWORKFLOW)",
        "_ELSEWHERE = (None, Waiting.QUEUE, Waiting.EXTERNAL)",
    ),
    Mutant(
        "edit-of-a-branch-writes-the-run", "on_change.py", "        frames = token.frames\n", "        frames = ()\n"
    ),
    Mutant(
        "skipped-visit-loses-its-output",
        "on_change.py",
        "complete.complete_visit(d, token, command.output)",
        "complete.complete_visit(d, token, {})",
    ),
    Mutant(
        "jump-leaves-the-fan-out",
        "on_change.py",
        "frames=where, path=path, loops=token.loops",
        "frames=where[:-1], path=path, loops=token.loops",
    ),
    Mutant(
        "input-that-was-set-is-forgotten",
        "begin.py",
        "    if token.given is not None:\n        return token.given[0]",
        "    if False:\n        return None",
    ),
    Mutant(
        "migrates-although-something-is-in-the-way",
        "on_migrate.py",
        "    if found:\n        raise in_the_way(d, new, found)",
        "    if False:\n        raise in_the_way(d, new, found)",
    ),
    Mutant(
        "one-run-more-than-the-limit",
        "book.py",
        "len(self.live.get(place.keys.concurrency, ())) < limit.limit",
        "len(self.live.get(place.keys.concurrency, ())) <= limit.limit",
    ),
    Mutant(
        "window-of-a-rate-is-half-as-long",
        "start_rates.py",
        "starts.times[-back] + rate.per_ms)",
        "starts.times[-back] + rate.per_ms // 2)",
    ),
    Mutant(
        "start-that-is-being-written-is-forgotten",
        "start_rates.py",
        "if not starts.counting and starts.until <= now:",
        "if not starts.counting:",
    ),
    Mutant(
        "two-of-a-flurry-run",
        "admission.py",
        '"debounce", due, since, cancel=(waiting.run,) if waiting is not None else ()',
        '"debounce", due, since',
    ),
    Mutant("batch-has-one-item", "on_start.py", "list(d.state.items)} if", "list(d.state.items)[:1]} if"),
    Mutant(
        "item-of-a-batch-counts-twice", "on_start.py", "start.run in state.item_runs or start.run == state.run", "False"
    ),
    Mutant("budget-off-by-one", "budget.py", "        if spent >= limit:", "        if spent > limit:"),
    Mutant(
        "cancellation-outlives-the-book-that-wanted-it",
        "coordinate/flow_control.py",
        "return [item for item in items if not item.is_of_book]",
        "return [item for item in items if not isinstance(item.command, c.AdmitRun)]",
        "runtime",
    ),
]
