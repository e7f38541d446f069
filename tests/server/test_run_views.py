"""Looking into runs and speaking to them over HTTP, on both stores."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from time import monotonic
from typing import Any

import pytest

from tests.server.client import Caller, Served

_numbers = count(1)

PANEL = """
workflow: {name}
nodes:
  plan:
    action: {{kind: set, values: {{ideas: [tea, rain, bees]}}}}
    output: {{state.ideas: $.ideas}}
  judge:
    action: {{kind: human, title: Judge it, assign: ana}}
    output: {{state.go: $.go}}
  gather: {{}}
  wait_for_post:
    action: {{kind: signal, name: post-{name}, key: $.input.place}}
  done: {{}}
transitions:
  - {{from: plan, to: judge, foreach: {{collection: $.state.ideas, item_var: idea}}, sibling_group: ideas}}
  - {{from: judge, to: gather, synchronization: {{sibling_group: ideas}}}}
  - {{from: gather, to: wait_for_post}}
  - {{from: wait_for_post, to: done}}
"""


class Panel:
    """A run with three gates, and the callers that look at it."""

    def __init__(self, served: Served, **body: Any) -> None:
        self.name = f"panel-{next(_numbers)}"
        served.deploy(PANEL.format(name=self.name))
        self.operator: Caller = served.as_("operator")
        self.viewer: Caller = served.as_("viewer")
        given = {"workflow": self.name, "input": {"place": "hall"}, **body}
        self.run: str = self.operator.post("/runs", given)["run"]
        self.until(lambda shown: len(shown["waiting"]) == 3)

    def until(self, holds: Callable[[Any], bool], run: str | None = None) -> Any:
        """Asks until the run is as it should be."""
        deadline = monotonic() + 30
        while not holds(shown := self.viewer.get(f"/runs/{run or self.run}")):
            assert monotonic() < deadline, shown
        return shown

    def get(self, path: str = "") -> Any:
        return self.viewer.get(f"/runs/{self.run}{path}")

    def post(self, path: str, body: Any = None, *, status: int | None = None) -> Any:
        return self.operator.post(f"/runs/{self.run}{path}", body, status=status)

    def another(self) -> str:
        run: str = self.operator.post("/runs", {"workflow": self.name, "input": {"place": "hall"}})["run"]
        self.until(lambda shown: len(shown["waiting"]) == 3, run)
        return run


@pytest.fixture
def panel(served: Served) -> Panel:
    return Panel(served)


def test_a_run_tells_for_every_wait_what_would_end_it(panel: Panel) -> None:
    shown = panel.get()
    assert (shown["status"], shown["workflow"], shown["input"]) == ("running", panel.name, {"place": "hall"})
    assert shown["counts"] == {"completed": 1, "waiting": 3}
    assert [(wait["for"], wait["node"]) for wait in shown["waiting"]] == [("human", "judge")] * 3
    assert shown["waiting"][0]["ends_by"][0] == {"by": "answer", "words": "an answer by ana", "who": "ana"}
    assert (shown["error"], shown["causes"], shown["ended"]) == (None, [], None)


def test_visits_are_paged_newest_first_and_filtered(panel: Panel) -> None:
    first = panel.get("/visits?limit=3")
    rest = panel.get(f"/visits?limit=3&cursor={first['next']}")
    assert [each["visit"] for each in first["items"] + rest["items"]] == [4, 3, 2, 1]
    assert rest["next"] is None
    waiting = panel.get("/visits?status=waiting&status=failed&node=judge&group=1")
    assert [each["branches"] for each in waiting["items"]] == [[[1, 2]], [[1, 1]], [[1, 0]]]
    for query, code in (("status=broken", 400), ("limit=0", 400), ("limit=1001", 400), ("group=9", 404)):
        assert panel.viewer.api("GET", f"/runs/{panel.run}/visits?{query}").status == code
    other = panel.viewer.api("GET", f"/runs/{panel.run}/visits?limit=3&node=judge&cursor={first['next']}")
    assert (other.status, other.json["code"]) == (400, "BAD_REQUEST")


def test_one_visit_has_its_data_its_attempts_and_why_it_was_made(panel: Panel) -> None:
    shown = panel.get("/visits/3")
    assert shown["scope"]["idea"] == "rain"
    assert shown["why"]["transition"] == "plan->judge"
    assert (shown["waiting"]["for"], shown["attempted"][0]["attempt"]) == ("human", 1)
    for odd in ("99", "0", "x", "-1", "1e3"):
        assert panel.viewer.api("GET", f"/runs/{panel.run}/visits/{odd}").json["code"] == "NOT_FOUND"


def test_groups_and_their_branches_by_page(panel: Panel) -> None:
    (row,) = panel.get("/groups")["items"]
    assert (row["total"], row["arrived"], row["failed"], row["live"], row["missing"]) == (3, 0, 0, 3, 3)
    first = panel.get("/groups/1?limit=2")
    rest = panel.get(f"/groups/1?limit=2&cursor={first['next']}")
    assert [each["item"] for each in first["branches"] + rest["branches"]] == ["tea", "rain", "bees"]
    assert rest["next"] is None
    assert panel.viewer.api("GET", f"/runs/{panel.run}/groups/2").status == 404


def test_the_state_at_an_event_can_be_asked_for_again_by_its_tag(panel: Panel) -> None:
    now = panel.get("/state")
    assert now["scope"]["state"] == {"ideas": ["tea", "rain", "bees"]}
    assert [each["visit"] for each in now["gates"]] == [2, 3, 4]
    reply = panel.viewer.api("GET", f"/runs/{panel.run}/state?seq=1")
    assert reply.json["seq"] == panel.get("/decisions?limit=1")["items"][0]
    assert reply.headers["cache-control"] == "private, no-cache"
    again = panel.viewer.api("GET", f"/runs/{panel.run}/state?seq=1", headers={"If-None-Match": reply.headers["etag"]})
    assert (again.status, again.raw) == (304, b"")
    changed = panel.get(f"/diff?from=1&to={now['seq']}")
    assert [each["place"] for each in changed["data"]] == ["/state/ideas"]
    for query, status in ((f"seq={now['seq'] + 1}", 404), ("seq=0", 400), ("seq=-1", 400), ("seq=x", 400)):
        assert panel.viewer.api("GET", f"/runs/{panel.run}/state?{query}").status == status
    assert panel.viewer.api("GET", f"/runs/{panel.run}/diff?from=1").status == 400


def test_commands_without_an_effect_and_those_that_are_refused(panel: Panel) -> None:
    assert panel.post("/resume", status=409)["code"] == "INVALID_STATE"
    assert panel.post("/abort", status=409)["code"] == "INVALID_STATE"
    assert panel.post("/pause", {"reason": "lunch"})["status"] == "paused"
    assert panel.post("/pause", status=409)["code"] == "INVALID_STATE"
    assert panel.get()["waiting"][0]["ends_by"][0]["commands"] == ["resume"]
    assert panel.post("/resume")["status"] == "running"
    assert panel.post("/extend", {"ms": 60_000})["status"] == "running"
    ended = panel.post("/cancel", {"reason": "enough"})
    assert ended["status"] == "cancelled"
    assert panel.post("/cancel")["seq"] == ended["seq"]
    assert panel.post("/retry", status=409)["code"] == "INVALID_STATE"
    assert panel.post("/pause", {"why": "x"}, status=400)["code"] == "BAD_REQUEST"
    nothing = panel.operator.api("POST", "/runs/nothing/cancel", {})
    assert (nothing.status, nothing.json["code"]) == (404, "NOT_FOUND")


def test_a_visit_and_a_group_are_cancelled(panel: Panel) -> None:
    assert panel.post("/visits/2/cancel", {"reason": "no"})["status"] == "cancelled"
    assert panel.post("/visits/2/cancel")["status"] == "cancelled"
    assert panel.post("/visits/99/cancel", status=404)["code"] == "NOT_FOUND"
    assert panel.post("/visits/3/retry", status=409)["code"] == "INVALID_STATE"
    assert panel.post("/groups/1/add", {"items": [1]}, status=409)["code"] == "INVALID_STATE"
    assert panel.post("/groups/1/add", {}, status=400)["code"] == "BAD_REQUEST"
    row = panel.post("/groups/1/cancel")
    assert (row["live"], row["missing"]) == (0, 0)


def test_a_signal_reaches_one_run_or_all_that_wait_for_it_now(panel: Panel) -> None:
    name, second = f"post-{panel.name}", panel.another()
    nobody = panel.operator.post("/signals", {"name": name, "key": "hall"})
    assert nobody == {"runs": []}
    for run in (panel.run, second):
        panel.operator.post(f"/runs/{run}/groups/1/cancel")
        shown = panel.until(lambda shown: len(shown["waiting"]) == 1, run)
        assert shown["waiting"][0]["for"] == "signal"  # the first signal was not kept
    assert panel.operator.post("/signals", {"name": name, "key": "cellar"}) == {"runs": []}
    taken = panel.operator.post("/signals", {"name": name, "key": "hall", "data": {"letters": 2}})
    assert sorted(taken["runs"]) == sorted([panel.run, second])
    panel.until(lambda shown: shown["status"] == "completed")
    assert panel.operator.post("/signals", {"name": name, "key": "hall"}) == {"runs": []}
    third = panel.another()
    panel.operator.post(f"/runs/{third}/signals", {"name": name, "key": "hall"})
    panel.operator.post(f"/runs/{third}/groups/1/cancel")
    panel.until(lambda shown: shown["status"] == "completed", third)  # one that was sent to the run is kept


def test_a_batch_answers_for_each_run(panel: Panel) -> None:
    second = panel.another()
    body = {"action": "pause", "filter": {"workflow": panel.name, "status": ["running"]}}
    planned = panel.operator.post("/runs/batch", {**body, "dry_run": True})
    assert [(each["run"], each["ok"]) for each in planned["results"]] == [(second, True), (panel.run, True)]
    assert panel.get()["status"] == "running"
    done = panel.operator.post("/runs/batch", body)
    assert done == planned
    mixed = panel.operator.post("/runs/batch", {"action": "pause", "runs": [panel.run, "nothing", panel.run]})
    assert [(each["run"], each["problem"]["code"]) for each in mixed["results"]] == [
        (panel.run, "INVALID_STATE"),
        ("nothing", "NOT_FOUND"),
    ]
    assert panel.operator.post("/runs/batch", {"action": "pause"}, status=400)["code"] == "BAD_REQUEST"
    assert panel.operator.post("/runs/batch", {"action": "eat", "runs": []}, status=400)["code"] == "BAD_REQUEST"


def test_a_batch_as_a_stream_tells_results_one_by_one(panel: Panel) -> None:
    second = panel.another()
    reply = panel.operator.api(
        "POST",
        "/runs/batch",
        {"action": "cancel", "runs": [panel.run, second]},
        {"Accept": "text/event-stream"},
    )
    assert reply.headers["content-type"].startswith("text/event-stream")
    lines = [line for line in reply.raw.decode().splitlines() if line.startswith("data:")]
    told = [json.loads(line.removeprefix("data:")) for line in lines]
    assert told == [{"run": panel.run, "ok": True}, {"run": second, "ok": True}, {"runs": 2, "refused": 0}]


def test_a_key_for_other_workflows_sees_none_of_it(served: Served, panel: Panel) -> None:
    key = served.new_key(f"other-{panel.name}", "--role", "operator", "--workflow", "other/*")
    other = served.with_key(key)
    for path in ("", "/state", "/visits", "/visits/1", "/groups", "/groups/1", "/compensations"):
        assert other.api("GET", f"/runs/{panel.run}{path}").json["code"] == "NOT_FOUND"
    result = other.post("/runs/batch", {"action": "cancel", "runs": [panel.run]})["results"]
    assert [(each["ok"], each["problem"]["code"]) for each in result] == [(False, "NOT_FOUND")]
    assert other.post("/runs/batch", {"action": "cancel", "filter": {"workflow": panel.name}}) == {"results": []}
    assert panel.get()["status"] == "running"


UNDO = """
workflow: {name}
nodes:
  book:
    action: {{kind: set, values: {{ticket: 7}}}}
    compensate: {{action: {{kind: assert, condition: "input.ticket == 8"}}, input_mapping: {{ticket: $.output.ticket}}}}
  pay:
    action: {{kind: assert, condition: "input.paid == true"}}
transitions:
  - {{from: book, to: pay}}
"""


def test_what_a_run_can_undo_is_listed_retried_and_skipped(served: Served) -> None:
    name = f"undo-{next(_numbers)}"
    served.deploy(UNDO.format(name=name))
    operator = served.as_("operator")
    run = operator.post("/runs?wait_ms=20000", {"workflow": name})["run"]
    (one,) = served.as_("viewer").get(f"/runs/{run}/compensations")["items"]
    assert (one["node"], one["status"]) == ("book", "failed")
    assert operator.post(f"/runs/{run}/compensations/9/skip", status=404)["code"] == "NOT_FOUND"
    assert operator.post(f"/runs/{run}/compensations/1/skip")["status"] == "skipped"
    assert operator.post(f"/runs/{run}/compensations/1/retry", status=409)["code"] == "INVALID_STATE"
    assert served.as_("viewer").get(f"/runs/{run}")["causes"][0]["kind"] == "TASK_FAILED"


def test_large_values_are_previews_where_that_is_asked_for(served: Served) -> None:
    served.deploy("""
workflow: large
nodes:
  make:
    input_mapping: {text: $.input.text}
    action: {kind: set, values: {text: $.input.text}}
    output_mapping: {state.text: $.text}
""")
    text = "é" * 40_000
    run = served.as_("operator").api("POST", "/runs", {"workflow": "large", "input": {"text": text}}).json["run"]
    viewer = served.as_("viewer")
    ended = viewer.get(f"/runs/{run}/history?type=run.completed&wait_ms=20000")
    assert len(ended["items"]) == 1
    whole = viewer.get(f"/runs/{run}/visits/1")
    assert whole["output"] == {"text": text}
    shown = viewer.get(f"/runs/{run}/visits/1?value_max=50000")
    size = len(json.dumps({"text": text}, ensure_ascii=False, separators=(",", ":")).encode())
    assert shown["output"]["$large"]["bytes"] == size
    assert 9_000 < len(shown["output"]["$large"]["preview"]) <= 20_000
    assert shown["node"] == whole["node"]
    assert viewer.get(f"/runs/{run}?value_max=50000")["input"]["$large"]["bytes"] == size
    events = viewer.get(f"/runs/{run}/history?value_max=50000")["items"]
    [updated] = [event for event in events if event["type"] == "context.updated"]
    assert updated["writes"][0][0] == ["state", "text"], "the place of a large value stays"
    assert updated["writes"][0][1]["$large"]["bytes"] == 80_002
    kept = viewer.api("GET", f"/runs/{run}/visits/1/values/output")
    assert kept.json == {"text": text}
    assert viewer.api("GET", f"/runs/{run}/visits/1/values/else").status == 404


def test_a_change_by_hand_is_answered_with_the_run_or_the_visit_afterwards(panel: Panel) -> None:
    planned = panel.post("/visits/2/skip", {"output": {"go": 1}, "dry_run": True})
    assert (planned["run"], planned["visit"], planned["status"], planned["dry_run"]) == (panel.run, 2, "waiting", True)
    skipped = panel.post("/visits/2/skip", {"output": {"go": 1}})
    assert (skipped["waiting_for"], skipped["output"], skipped["dry_run"]) == ("siblings", {"go": 1}, False)
    assert "token.skipped" in [event["type"] for event in skipped["events"]]
    panel.post("/pause")
    edited = panel.post("/edit", {"writes": {"state.go": 3}})
    assert (edited["run"], edited["status"], edited["seq"]) == (panel.run, "paused", edited["events"][-1]["seq"])
    assert panel.post("/visits/3/input", {"input": {"a": 1}}, status=409)["code"] == "INVALID_STATE"
    jumped = panel.post("/visits/3/jump", {"to": "judge"})
    assert (jumped["visit"], jumped["status"]) == (3, "cancelled")
