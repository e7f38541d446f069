"""What one seed tries: swarm testing (every seed switches a random half of features and faults off).

Owns the names of features and faults. A feature is something a definition or a client may do; a fault is
something that goes wrong around it. With everything on at once most interesting states are never reached
(a run that is cancelled soon never compensates); with a random subset each gets its turn.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tests.simulator.draw import Draw

FEATURES = (
    # shapes of the graph
    *("choice", "fork", "named_group", "replicate", "dynamic", "foreach", "lazy", "nested", "skip_join"),
    *("unjoined", "two_joins", "node_join", "loop", "trigger", "when", "several_starts", "open_group"),
    # what nodes do
    *("human", "wait", "signal", "call", "recursion", "webhook", "queue", "native", "passing", "slot", "long_work"),
    # how joins decide
    *("early_join", "sync_timeout", "branch_failure", "merge", "block"),
    # policies
    *("mutex", "retry", "timeout", "failure_edge", "compensate", "terminate", "cancels", "first_wins"),
    *("run_timeout", "entity", "limits", "schema", "strict", "let_others_finish", "no_match"),
    # what clients do
    *("operator_cancel", "operator_pause", "operator_retry", "operator_group", "operator_undo", "nonsense"),
)

CHANGES = (
    # what keeps runs from running each other over
    *("concurrency", "rate", "debounce", "batch", "priority", "budget"),
    # other versions
    *("versions", "on_deploy"),
    # what operators change
    *("operator_fork", "operator_edit", "operator_skip", "operator_jump", "operator_input", "operator_migrate"),
    "operator_budget",
)
"""Features of 6.3 to 6.8, drawn from a stream of their own: a seed that is older than they are keeps
everything else of its plan, and every fourth seed has none of them."""

FAULTS = (
    "crash",  # an engine dies between any two steps
    "stall",  # an engine stands still past its lease, then goes on as if nothing had happened
    "clock_skew",  # engines disagree about the time
    "lost_message",
    "lost_reply",
    "duplicate_message",
    "late_message",
    "unknown_done",  # a commit succeeds and its engine sees an error
    "unknown_lost",  # a commit fails and its engine cannot know
    "lost_notice",  # the fast path after a commit is skipped: only polling finds the outbox row
    "duplicate_effect",
    "dead_worker",  # a queue's worker takes work and vanishes
    "silent_task",  # an attempt never answers
    "task_failure",
    "double_answer",  # gates and callbacks answered twice, differently, or for another attempt
    "cut_off",  # for a while an engine's leases cannot be renewed; everything else reaches the store
)


@dataclass(frozen=True, slots=True)
class Plan:
    """The choices above all others."""

    seed: int
    features: frozenset[str]
    faults: frozenset[str]
    engines: int
    shards: int
    runs: int
    rate: float
    """How often a fault happens where it can."""
    safety_ms: int
    """How long faults last."""

    def has(self, name: str) -> bool:
        return name in self.features

    def rate_of(self, fault: str, scale: float = 1.0) -> float:
        """The probability of a fault at each opportunity; 0 when this seed does not have it."""
        return self.rate * scale if fault in self.faults else 0.0

    @property
    def limits_starts(self) -> bool:
        """Whether starts may have to wait for one another."""
        return bool(self.features & {"concurrency", "rate", "debounce", "batch"})

    def without(self, names: frozenset[str]) -> Plan:
        """The same seed with some features and faults switched off: how a failure is made smaller."""
        fewer = {"one_run": 1}
        runs = min((count for name, count in fewer.items() if name in names), default=self.runs)
        return replace(self, features=self.features - names, faults=self.faults - names, runs=runs)

    def describe(self) -> str:
        return (
            f"engines={self.engines} shards={self.shards} runs={self.runs} "
            f"rate={self.rate} safety_ms={self.safety_ms}\n"
            f"features: {' '.join(sorted(self.features))}\nfaults:   {' '.join(sorted(self.faults)) or 'none'}"
        )


def plan_of(seed: int) -> Plan:
    """The plan of a seed."""
    draw = Draw(seed, "plan")
    calm = draw.chance(0.1)
    change = Draw(seed, "changes")
    changes = change.some(CHANGES, change.pick((0, 0.4, 0.6, 0.8)))
    return Plan(
        seed=seed,
        features=frozenset((*draw.some(FEATURES, draw.pick((0.25, 0.5, 0.5, 0.75))), *changes)),
        faults=frozenset(() if calm else draw.some(FAULTS, draw.pick((0.25, 0.5, 0.75)))),
        engines=draw.weighted(((1, 1), (2, 3), (3, 2))),
        shards=draw.pick((1, 2, 4)),
        runs=draw.weighted(((1, 4), (2, 3), (3, 1))),
        rate=draw.pick((0.01, 0.03, 0.08)),
        safety_ms=draw.pick((800, 2_000, 4_000)),
    )
