"""The names and labels of all metrics (5.7), without their figures.

Owns what a Prometheus server sees of each: its name, its help, its labels and the limits of its buckets. Must not count
anything: `metrics.py` does.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

SECONDS = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10, 60, 600, 3_600, 86_400)
COMMIT_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5)


class MetricFamilies:
    """See the module's docstring."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        flow, by_node = ["workflow"], ["workflow", "node"]
        self.starts = Counter("treadle_starts", "Runs started", flow, registry=registry)
        self.ends = Counter("treadle_ends", "Runs ended", [*flow, "status"], registry=registry)
        self.retries = Counter("treadle_retries", "Attempts tried again", by_node, registry=registry)
        self.visit_seconds = Histogram(
            "treadle_visit_seconds",
            "Time of visits: waiting before their work began, and working",
            [*by_node, "phase"],
            buckets=SECONDS,
            registry=registry,
        )
        self.commit_seconds = Histogram(
            "treadle_commit_seconds", "Time to write a batch of decisions", buckets=COMMIT_SECONDS, registry=registry
        )
        self.commit_decisions = Histogram(
            "treadle_commit_decisions",
            "Decisions in one transaction",
            buckets=(1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000),
            registry=registry,
        )
        self.model_tokens = Counter(
            "treadle_model_tokens", "Tokens of language models", [*by_node, "direction"], registry=registry
        )
        self.model_cost = Counter("treadle_model_cost", "Cost of language models", by_node, registry=registry)
        self.timers_due = Gauge("treadle_timers_due", "Timers that are due and have not fired", registry=registry)
        self.timer_lag = Gauge("treadle_timer_lag_seconds", "How late the oldest due timer is", registry=registry)
        self.requests = Counter(
            "treadle_http_requests", "Requests answered", ["method", "route", "status"], registry=registry
        )
        self.readers = Gauge("treadle_stream_readers", "Readers of streams", registry=registry)
        self.runs = Gauge("treadle_runs", "Runs in the store", [*flow, "status"], registry=registry)
        self.gates_open = Gauge("treadle_gates_open", "Gates that wait for somebody", registry=registry)
        self.gates_overdue = Gauge("treadle_gates_overdue", "Open gates past their due time", registry=registry)
        self.queue_depth = Gauge("treadle_queue_depth", "Work that waits in a queue", ["queue"], registry=registry)
        self.queue_claimed = Gauge(
            "treadle_queue_claimed", "Work of a queue that is claimed", ["queue"], registry=registry
        )
        self.queue_oldest = Gauge(
            "treadle_queue_oldest_seconds", "Age of the oldest work that waits", ["queue"], registry=registry
        )
        self.dead_letters = Gauge("treadle_dead_letters", "Messages given up", registry=registry)
        self.inbox_lag = Gauge("treadle_inbox_lag_seconds", "How far behind the slowest node is", registry=registry)
        self.shards = Gauge("treadle_shards_owned", "Shards this node decides for", registry=registry)
