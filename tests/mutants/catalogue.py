"""The mistakes in the kernel. Each is one small patch whose old text occurs exactly once in its file; a patch that no
longer fits is an error, so the list cannot rot unnoticed. None of them is exotic: each is a bug somebody could write on
a bad day. Those of the runtime are in `runtime_catalogue`.
"""

from __future__ import annotations

from tests.mutants.bug import Mutant

MUTANTS = [
    Mutant("join-fires-twice", "evolve_groups.py", 'site.status = "fired"', 'site.status = "open"'),
    Mutant(
        "group-lost-on-a-hop",
        "short_ways/moves.py",
        "    frames = token.frames\n    target = t.target",
        "    frames = token.frames[:-1]\n    target = t.target",
    ),
    Mutant(
        "late-result-applied",
        "on_answer.py",
        "token.attempt == attempt and token.state is EXECUTING and token.waiting is None:",
        "token.attempt == attempt:",
    ),
    Mutant(
        "stale-attempt-accepted",
        "on_answer.py",
        "if token is not None and token.attempt == attempt and token.state is EXECUTING",
        "if token is not None and token.state is EXECUTING",
    ),
    Mutant(
        "overlay-leaks",
        "evolve_tokens.py",
        "        if state.groups[frame[0]].isolating:\n            return frame",
        "        if state.groups[frame[0]].isolating:\n            return None",
    ),
    Mutant("quorum-off-by-one", "join_verdict.py", "if arrived >= need and total:", "if arrived > need and total:"),
    Mutant("percent-floor-instead-of-ceil", "join_verdict.py", "-(-count * total // 100)", "count * total // 100"),
    Mutant(
        "failed-counts-for-the-quorum", "join_verdict.py", "if arrived >= need and", "if arrived + failed >= need and"
    ),
    Mutant("empty-group-hangs", "join_verdict.py", 'return "fire", "", "the group is empty"', 'return "wait", "", ""'),
    Mutant(
        "all-does-not-wait-for-unspawned-branches",
        "join_verdict.py",
        "return len(state.live) + rest",
        "return len(state.live)",
    ),
    Mutant(
        "timer-lost-on-restart",
        "evolve.py",
        "        evolve(state, event)\n    return state",
        "        evolve(state, event)\n    state.timers.clear()\n    return state",
    ),
    Mutant("compensation-in-forward-order", "saga.py", "start_record(d, pending[-1])", "start_record(d, pending[0])"),
    Mutant(
        "cancelled-counts-as-failed",
        "evolve_tokens.py",
        '    close_outside(token, "token.cancelled")\n',
        '    close_outside(token, "token.cancelled")\n'
        "    for group, branch in token.frames[-1:]:\n"
        '        state.groups[group].failed[branch] = Error("TASK_FAILED", event.by)\n',
    ),
    Mutant(
        "abandoned-branch-blocks-the-outer-join",
        "evolve_groups.py",
        'if event.rest in ("abandon", "block"):',
        'if event.rest == "block":',
    ),
    Mutant(
        "retry-resets-the-attempt",
        "short_ways/moves.py",
        "    attempt = token.attempt + 1\n",
        "    attempt = 1\n",
    ),
    Mutant("duplicate-signal-received", "evolve_runs.py", "        state.seen.add(event.command)", "        pass"),
    Mutant(
        "signal-taken-twice",
        "evolve_runs.py",
        "    drop_signal(state.lines, signal.name, signal.key, signal.id)",
        "    state.signals[event.signal] = signal",
    ),
    Mutant(
        "mutex-admits-two",
        "begin.py",
        "(not state.holders and not state.queue)",
        "not state.queue",
    ),
    Mutant(
        "pause-still-routes",
        "on_answer.py",
        "    if d.state.status is PAUSED:\n        _defer(d, token, command.output,",
        "    if False:\n        _defer(d, token, command.output,",
    ),
    Mutant("pause-does-not-freeze-timers", "evolve_runs.py", "timer.due += event.shift_ms", "timer.due += 0"),
    Mutant("loop-limit-off-by-one", "route.py", "get(transition.id, 0) >= limit", "get(transition.id, 0) > limit"),
    Mutant(
        "first-match-takes-all",
        "route.py",
        "                if first_only:\n                    break",
        "                if first_only:\n                    continue",
    ),
    Mutant(
        "max-in-flight-ignored",
        "spawning.py",
        "in_flight(group) < group.max_in_flight",
        "in_flight(group) < group.total + 1",
    ),
    Mutant(
        "merge-in-arrival-order",
        "join_merge.py",
        "for branch in sorted(branch for branch in state.waiting if branch not in state.live):",
        "for branch in [branch for branch in state.waiting if branch not in state.live]:",
    ),
    Mutant(
        "lower-branch-wins-a-conflict",
        "join_merge.py",
        "    for branch, arrivals in branches.items():",
        "    for branch, arrivals in reversed(branches.items()):",
    ),
    Mutant(
        "ended-run-keeps-its-timers",
        "evolve_runs.py",
        "    state.timers.clear()\n    state.deferred.clear()\n    state.paused_at = None",
        "    state.deferred.clear()\n    state.paused_at = None",
    ),
    Mutant(
        "buffer-none-accepts-old-signals", "signal_match.py", 'buffer != "none" and bool(', 'buffer == "none" or bool('
    ),
    Mutant(
        "child-end-applied-twice",
        "evolve_waits.py",
        "        token.child = None\n",
        "",
    ),
    Mutant(
        "failed-branch-lives-on",
        "failure.py",
        '        cancel.cancel_branch(d, group, frame[1], "branch failed", error.kind)\n',
        "",
    ),
    Mutant("any-worker-may-answer", "on_answer.py", "if worker != token.worker:", "if False:"),
    Mutant(
        "sync-clock-restarts-with-every-arrival", "deliver.py", "is not None and state.timer is None:", "is not None:"
    ),
    Mutant("minimum-of-successes-ignored", "join.py", "state.arrived < minimum:", "state.arrived < minimum - 1:"),
    Mutant(
        "stragglers-continue",
        "deliver.py",
        'site.sync.on_early_complete == "pass_through":',
        'site.sync.on_early_complete != "cancel":',
    ),
    Mutant("deadlock-unnoticed", "finish.py", "    raise RunFails(_deadlock(d))", "    return False"),
    Mutant(
        "retries-business-errors",
        "failure.py",
        "if retry is not None and error.retryable and",
        "if retry is not None and",
    ),
    Mutant(
        "unhandled-failure-is-forgotten",
        "evolve_tokens.py",
        "    if failure.unhandled:\n",
        "    if failure.unhandled and state.unhandled:\n",
    ),
    Mutant(
        "late-success-is-not-undone",
        "on_answer.py",
        "    if command.token in d.state.stopping:\n        late_success(d, command.token,",
        "    if False:\n        late_success(d, command.token,",
    ),
    Mutant(
        "branch-fails-only-once-the-others-are-in",
        "join_verdict.py",
        "if failed and site.sync",
        "if failed and not live and site.sync",
    ),
    Mutant(
        "reopened-run-keeps-its-error",
        "evolve_runs.py",
        "    state.error = None\n    state.own_failure = False\n",
        "    state.own_failure = False\n",
    ),
    Mutant(
        "cancelled-for-another-reason-comes-back",
        "recording_tokens.py",
        "e.TokenCancelled(self.seq, self.now, token, by, reason, arrival, self.because)",
        "e.TokenCancelled(self.seq, self.now, token, by, reason, arrival, -1)",
    ),
    Mutant(
        "held-arrival-is-executed-again",
        "reopen.py",
        "        if kept.token.held:\n            held.append(identity)\n        elif",
        "        if",
    ),
    Mutant(
        "outer-join-is-not-reopened",
        "reopen_plan.py",
        "                    todo.append(site.failure)\n",
        "",
    ),
    Mutant(
        "retry-of-a-run-forgets-the-failures-below-its-fan-ins",
        "reopen_plan.py",
        "            todo.extend(state.groups[group].failures.values())",
        "            pass",
    ),
    Mutant(
        "what-the-run-took-down-stays-down",
        "reopen_plan.py",
        "    if state.status is RunStatus.FAILED and fallen.RUN in state.failures:",
        "    if False:",
    ),
    Mutant(
        "used-failure-can-be-retried",
        "evolve_groups.py",
        "    drop_sync_timer(state, site)\n    fallen.settle(state, group, used=True)\n",
        "    drop_sync_timer(state, site)\n",
    ),
    Mutant(
        "handled-fan-in-can-be-reopened",
        "evolve_failures.py",
        "    elif not lasting:\n        fallen.settle(state, group, used=False)\n",
        "",
    ),
    Mutant(
        "reopened-join-has-no-clock", "reopen.py", "    restart_clocks(d, d.now)\n    wake_all(d)", "    wake_all(d)"
    ),
    Mutant(
        "deadline-begins-anew-on-retry",
        "evolve_runs.py",
        "timer.due - since for timer",
        "timer.due - state.started_at for timer",
    ),
    Mutant(
        "closed-group-stays-closed-after-a-retry",
        "fallen.py",
        "        group.open, group.withdrawn = was_open, was_withdrawn\n",
        "",
    ),
    Mutant(
        "stale-end-of-a-reopened-child-counts",
        "on_child.py",
        " and life >= token.life",
        "",
    ),
    Mutant(
        "parent-is-not-told-of-a-reopened-child",
        "reopen.py",
        "    if reopened:\n        parent.tell_reopened(d, by, levels)",
        "    if False:\n        parent.tell_reopened(d, by, levels)",
    ),
    Mutant(
        "gate-answer-forgotten",
        "evolve_waits.py",
        "    state.answers[token.id] = GivenAnswer(token.attempt, event.data, event.by, event.at, each)\n",
        "",
    ),
    Mutant(
        "short-way-to-a-join-is-not-counted",
        "short_ways/counting.py",
        "        site.waiting[index] = (arrival.id,)\n        site.arrived += 1",
        "        site.waiting[index] = (arrival.id,)",
    ),
    Mutant(
        "resting-join-does-not-notice-a-failure",
        "short_ways/counting.py",
        "or group.failed or group.open",
        "or group.open",
    ),
    Mutant(
        "hop-over-the-limit",
        "short_ways/moves.py",
        "    if d.state.visits >= d.graph.definition.limits.max_tokens_per_run:\n        return False",
        "    if False:\n        return False",
    ),
    Mutant("consumed-arrivals-stay-members", "short_ways/counting.py", "            del members[index]\n", ""),
]
