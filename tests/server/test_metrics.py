"""5.7: metrics for Prometheus, and the dashboard and alerts that use them."""

from __future__ import annotations

import re
from pathlib import Path
from uuid import uuid4

from tests.runtime.cores import one
from tests.runtime.executing import on_loop
from tests.server.client import Served
from treadle.runtime.engine import Engine
from treadle.server.metrics import Measured

ROOT = Path(__file__).parents[2]
NAP = """
workflow: {name}
nodes:
  nap:
    action: {{kind: wait, ms: 1}}
"""


def scraped(served: Served) -> str:
    reply = served.as_("viewer")("GET", "/metrics")
    assert reply.status == 200, reply
    return reply.raw.decode()


def value(text: str, name: str, **labels: str) -> float:
    """The value of one time series; 0 if there is none."""
    for line in text.splitlines():
        found = re.fullmatch(rf"{name}(?:\{{(.*)\}})? (\S+)", line)
        if found and labels.items() <= dict(re.findall(r'(\w+)="([^"]*)"', found[1] or "")).items():
            return float(found[2])
    return 0


def test_a_run_is_counted_from_its_start_to_its_end(served: Served) -> None:
    name = f"metered-{uuid4().hex[:8]}"
    served.deploy(NAP.format(name=name))
    served.as_("operator").post("/runs?wait_ms=20000", {"workflow": name})
    text = scraped(served)
    assert value(text, "treadle_starts_total", workflow=name) == 1
    assert value(text, "treadle_ends_total", workflow=name, status="completed") == 1
    assert value(text, "treadle_visit_seconds_count", workflow=name, node="nap", phase="working") == 1
    assert value(text, "treadle_http_requests_total", route="/api/v1/runs", status="201") >= 1
    assert value(text, "treadle_commit_seconds_count") >= 1


@on_loop
async def test_the_end_of_a_run_that_began_before_the_service_counts_for_its_workflow(tmp_path: Path) -> None:
    store = tmp_path / "treadle.db"
    async with Engine(store) as engine:
        run = (await engine.start(one("asks", {"kind": "human"}))).id
    later = Engine(store)
    measured = Measured(later)
    later.observe(measured.observe)  # a service begins to measure before its engine is open
    async with later:
        await later.run(run).cancel()
        text = (await measured.text()).decode()
    assert value(text, "treadle_ends_total", workflow="asks", status="cancelled") == 1
    assert value(text, "treadle_ends_total", workflow="other") == 0


def test_metrics_need_a_key_that_may_read(served: Served) -> None:
    assert served.as_(None)("GET", "/metrics").status == 401
    assert served.as_("worker")("GET", "/metrics").status == 403


def test_metrics_are_about_all_workflows_and_not_for_a_key_of_some(served: Served) -> None:
    key = served.as_("admin").post("/keys", {"name": "some", "roles": ["viewer"], "workflows": ["metered-*"]})["key"]
    reply = served.with_key(key)("GET", "/metrics")
    assert (reply.status, reply.json["code"]) == (403, "FORBIDDEN")


def test_how_late_the_oldest_timer_is_has_a_metric(served: Served) -> None:
    assert "# TYPE treadle_timer_lag_seconds gauge" in scraped(served)


def test_dashboard_and_alerts_name_only_metrics_that_exist(served_sqlite: Served) -> None:
    text = scraped(served_sqlite)
    told = set(re.findall(r"^# TYPE (\w+)", text, re.MULTILINE))
    used: set[str] = set()
    for name in ("grafana.json", "alerts.yaml"):
        used |= set(re.findall(r"treadle_\w+", (ROOT / "docs" / "monitoring" / name).read_text()))
    families = {re.sub(r"_(bucket|sum|count)$", "", name) for name in used}
    assert families
    assert families <= told | {f"{name}_total" for name in told}, families - told
