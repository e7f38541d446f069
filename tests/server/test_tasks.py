"""Pull workers over HTTP: claims, heartbeats, results, progress; fenced by the claim, on every store."""

from __future__ import annotations

import threading
import time
import uuid
from typing import Any

import pytest

from tests.server.client import Caller, Reply, Served

DEADLINE_S = 30.0


class Shift:
    """A workflow with one node of kind `work` on a queue of its own, and a worker's key."""

    def __init__(self, served: Served, node: str = "") -> None:
        self.served = served
        self.queue = f"q{uuid.uuid4().hex[:10]}"
        self.workflow = f"w{uuid.uuid4().hex[:10]}"
        served.deploy(
            f"""
workflow: {self.workflow}
nodes:
  draw:
    queue: {self.queue}
    action: {{kind: work, name: draw, config: {{size: 3}}}}
    input: {{colour: $.input.colour}}
{node}
"""
        )
        self.worker = served.as_("worker")

    def start(self, **input: Any) -> str:
        run: str = self.served.as_("operator").post("/runs", {"workflow": self.workflow, "input": input})["run"]
        return run

    def claim(self, worker: str = "ann", **given: Any) -> list[dict[str, Any]]:
        body = {"queues": [self.queue], "worker": worker, "limit": 1, "lease_ms": 30_000, "wait_ms": 10_000, **given}
        tasks: list[dict[str, Any]] = self.worker.post("/tasks/claim", body)["tasks"]
        return tasks

    def report(self, task: dict[str, Any] | str, verb: str, body: Any = None) -> Reply:
        name = task if isinstance(task, str) else task["task"]
        return self.worker.api("POST", f"/tasks/{name}/{verb}", body if body is not None else {})

    def complete(self, task: dict[str, Any], output: Any, **more: Any) -> Reply:
        return self.report(task, "complete", {"output": output, **more})

    def run(self, run: str) -> Any:
        return self.served.as_("viewer").get(f"/runs/{run}")

    def ended(self, run: str) -> Any:
        """The run when it has ended."""
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            shown = self.run(run)
            if shown["status"] not in ("running", "created"):
                return shown
        raise AssertionError(f"{shown} has not ended")


@pytest.fixture
def shift(served: Served) -> Shift:
    return Shift(served)


def test_a_worker_claims_work_and_gives_its_result(shift: Shift) -> None:
    run = shift.start(colour="red")
    (task,) = shift.claim()
    assert {name: task[name] for name in ("run", "node", "visit", "attempt", "queue", "kind", "config", "input")} == {
        "run": run,
        "node": "draw",
        "visit": 1,
        "attempt": 1,
        "queue": shift.queue,
        "kind": "work",
        "config": {"name": "draw", "config": {"size": 3}},
        "input": {"colour": "red"},
    }
    assert task["idempotency_key"] and task["lease_until"] > time.time() * 1_000
    assert shift.complete(task, {"picture": 1}, cost=0.5, usage={"strokes": 9}).status == 200
    assert shift.ended(run)["status"] == "completed"
    assert shift.claim(wait_ms=0) == []


def test_a_claim_waits_for_work_and_gets_it_at_once(shift: Shift) -> None:
    got: list[Any] = []
    waiting = threading.Thread(target=lambda: got.append((shift.claim(wait_ms=20_000), time.monotonic())))
    waiting.start()
    begun = time.monotonic()
    while not shift.served.as_("viewer").get("/queues")["items"] or shift.queue not in {
        one["queue"] for one in shift.served.as_("viewer").get("/queues")["items"]
    }:
        assert time.monotonic() - begun < DEADLINE_S, "the waiting worker is listed"
    shift.start(colour="blue")
    waiting.join(DEADLINE_S)
    ((tasks, _at),) = got
    assert [task["input"] for task in tasks] == [{"colour": "blue"}]
    shift.complete(tasks[0], {})


def test_the_same_result_again_is_fine_and_another_comes_too_late(shift: Shift) -> None:
    run = shift.start(colour="red")
    (task,) = shift.claim()
    for _ in range(3):
        assert shift.complete(task, {"picture": [1, 2]}).status == 200
    other = shift.complete(task, {"picture": [9]})
    assert (other.status, other.json["code"]) == (410, "LATE_RESULT")
    assert shift.report(task, "fail", {"error": {"message": "no"}}).status == 410
    for verb, body in (("heartbeat", {"lease_ms": 5_000}), ("progress", {"name": "share", "data": 1})):
        assert shift.report(task, verb, body).status == 410, verb
    assert shift.ended(run)["status"] == "completed"


def test_a_failure_is_tried_again_by_the_nodes_policy_and_claimed_again_it_is_another_task(served: Served) -> None:
    shift = Shift(served, "    retry: {max_attempts: 2, backoff: none}")
    run = shift.start(colour="red")
    (first,) = shift.claim()
    said = {"error": {"kind": "INK", "message": "no ink", "retryable": True, "details": {"left": 0}}}
    assert shift.report(first, "fail", said).status == 200
    (second,) = shift.claim()
    assert (second["attempt"], second["idempotency_key"]) == (2, first["idempotency_key"])
    assert second["task"] != first["task"]
    assert shift.report(first, "fail", said).status == 200, "the same again"
    assert shift.report(first, "heartbeat", {"lease_ms": 5_000}).status == 410
    assert shift.complete(first, {}).status == 410
    assert shift.report(second, "fail", {"error": {"message": "broken", "kind": "INK"}}).status == 200
    ended = shift.ended(run)
    assert (ended["status"], ended["error"]["kind"]) == ("failed", "INK")


def test_a_result_counts_after_the_lease_until_another_has_the_work(shift: Shift) -> None:
    run = shift.start(colour="red")
    (task,) = shift.claim(lease_ms=1_000)
    (again,) = shift.claim("bob", wait_ms=60_000)
    assert again["task"] != task["task"]
    assert shift.complete(task, {"by": "ann"}).status == 410, "bob has it"
    assert shift.report(task, "heartbeat", {"lease_ms": 5_000}).status == 410
    assert shift.complete(again, {"by": "bob"}).status == 200
    assert shift.ended(run)["status"] == "completed"


def test_what_a_worker_says_meanwhile_is_in_the_history(shift: Shift) -> None:
    run = shift.start(colour="red")
    (task,) = shift.claim()
    assert shift.report(task, "progress", {"name": "share", "data": 0.5}).status == 200
    lease = shift.report(task, "heartbeat", {"lease_ms": 60_000}).json
    assert lease["lease_until"] > task["lease_until"]
    shift.complete(task, {}, cost=0.25)
    shift.ended(run)
    reply = shift.served.run("runs", "history", run, "--output", "json")
    assert '"token.progress"' in reply.stdout, reply
    assert '"share"' in reply.stdout and '"cost"' in reply.stdout


def test_text_that_a_worker_streams_is_in_its_visit(shift: Shift) -> None:
    run = shift.start(colour="red")
    (task,) = shift.claim()
    for at, text in ((0, "An old "), (7, "house")):
        report = {"name": "llm.partial", "data": {"step": "read", "at": at, "text": text}}
        assert shift.report(task, "progress", report).status == 200
    shift.report(task, "progress", {"name": "share", "data": 0.5})
    seen = shift.served.as_("viewer").get(f"/runs/{run}/visits/{task['visit']}")
    assert seen["text"] == "An old house"
    assert [(told["name"], told["data"]) for told in seen["progress"]] == [("share", 0.5)]
    shift.complete(task, {})


def test_cancelled_work_is_refused(shift: Shift) -> None:
    run = shift.start(colour="red")
    (task,) = shift.claim()
    shift.served.as_("operator").post(f"/runs/{run}/cancel")
    assert shift.complete(task, {}).status == 410
    assert shift.report(task, "heartbeat", {"lease_ms": 5_000}).status == 410


@pytest.mark.parametrize("ending", ["timed out", "failed", "waits to be tried again"])
def test_a_heartbeat_for_work_that_is_over_is_refused(served: Served, ending: str) -> None:
    retry = "\n    retry: {max_attempts: 2, initial_delay_ms: 3600000}" if ending == "waits to be tried again" else ""
    timeout = "\n    timeout_ms: 300" if ending == "timed out" else ""
    shift = Shift(served, retry + timeout)
    run = shift.start(colour="red")
    (task,) = shift.claim()
    if ending != "timed out":
        error = {"message": "broken", "retryable": bool(retry)}
        assert shift.report(task, "fail", {"error": error}).status == 200
    if not retry:
        shift.ended(run)
    reply = shift.report(task, "heartbeat", {"lease_ms": 5_000})
    assert (reply.status, reply.json.get("code")) == (410, "LATE_RESULT")


def test_only_wanted_kinds_are_given_out(shift: Shift) -> None:
    shift.start(colour="red")
    assert shift.claim(kinds=["python"], wait_ms=0) == []
    (task,) = shift.claim(kinds=["work"])
    shift.complete(task, {})


MAPPED = """
workflow: {name}
nodes:
  draw:
    queue: {name}
    task:
      steps:
        - action: {{kind: work, name: draw}}
          input: {{paint: $.input.colour}}
          output: {{output.picture: $.picture}}
      output_schema: {{properties: {{picture: {{type: integer}}}}}}
    input: {{colour: $.input.colour}}
output: {{drawn: $.nodes.draw.output}}
"""


def test_input_and_output_go_through_mappings_and_schemas(shift: Shift) -> None:
    shift.queue = shift.workflow = f"m{uuid.uuid4().hex[:10]}"
    shift.served.deploy(MAPPED.format(name=shift.queue))
    run = shift.start(colour="red")
    (task,) = shift.claim()
    assert task["input"] == {"paint": "red"}
    for _ in range(2):
        assert shift.complete(task, {"picture": 7, "more": 1}).status == 200
    assert shift.ended(run)["output"] == {"drawn": {"picture": 7}}
    assert shift.complete(task, {"picture": 8}).status == 410
    run = shift.start(colour="red")
    (task,) = shift.claim()
    assert shift.complete(task, {"picture": "seven"}).status == 200
    ended = shift.ended(run)
    assert (ended["status"], ended["error"]["kind"]) == ("failed", "SCHEMA")


@pytest.mark.parametrize(
    "body",
    [
        {"queues": []},
        {"queues": ["q"], "limit": 0},
        {"queues": ["q"], "lease_ms": 1},
        {"queues": ["q"], "wait_ms": 60_001},
        {"queues": ["q"], "surprise": 1},
        {"queues": ["q"], "worker": ""},
        {"queues": "q"},
    ],
)
def test_a_claim_that_cannot_be_meant_is_refused(served: Served, body: dict[str, Any]) -> None:
    reply = served.as_("worker").api("POST", "/tasks/claim", {"worker": "ann", **body})
    assert (reply.status, reply.json["code"]) == (400, "BAD_REQUEST")


@pytest.mark.parametrize("name", ["x", "AAAA", "!", "bm90aGluZw", "%00", "maFyz4AAAAAAAAAAAQGhd6FhoXEBAA"])
def test_a_task_that_never_was_is_not_found(served: Served, name: str) -> None:
    reply = served.as_("worker").api("POST", f"/tasks/{name}/heartbeat", {"lease_ms": 5_000})
    assert (reply.status, reply.json["code"]) == (404, "NOT_FOUND")


def test_a_key_for_some_workflows_gets_their_work_only(shift: Shift) -> None:
    shift.start(colour="red")
    key = shift.served.new_key("narrow", "--role", "worker", "--workflow", "other/*")
    narrow = Caller(shift.served.url, key)
    body = {"queues": [shift.queue], "worker": "eve", "wait_ms": 0}
    assert narrow.post("/tasks/claim", body)["tasks"] == []
    (task,) = shift.claim()
    assert narrow.api("POST", f"/tasks/{task['task']}/complete", {"output": 1}).status == 404
    assert shift.complete(task, {}).status == 200


def test_queues_show_what_waits_and_take_rules(shift: Shift) -> None:
    operator, viewer = shift.served.as_("operator"), shift.served.as_("viewer")
    assert operator.api("PUT", f"/queues/{shift.queue}", {"concurrency": 1, "rate": "100/s"}).status == 201
    assert operator.api("PUT", f"/queues/{shift.queue}", {"concurrency": 1}).status == 200
    for colour in ("red", "blue"):
        shift.start(colour=colour)
    tasks = shift.claim(limit=5)
    assert len(tasks) == 1, "one at a time"
    (shown,) = [one for one in viewer.get("/queues")["items"] if one["queue"] == shift.queue]
    assert (shown["waiting"], shown["claimed"], shown["rules"]["concurrency"]) == (1, 1, 1)
    assert shown["outside"] == ["ann"]
    shift.complete(tasks[0], {})
    (second,) = shift.claim(limit=5)
    shift.complete(second, {})
    limited = operator.api("PUT", f"/queues/{shift.queue}", {"rate": {"limit": 30, "per_ms": 60_000}})
    assert limited.json["rules"]["rate"] == {"per_s": 0.5}
    for wrong in ("fast", {}, {"limit": 1}, {"per_s": 1, "limit": 1, "per_ms": 1}, {"limit": 0, "per_ms": 1}):
        assert operator.api("PUT", f"/queues/{shift.queue}", {"rate": wrong}).json["code"] == "BAD_REQUEST", wrong


def test_work_under_a_short_lease_is_claimed_again_as_soon_as_the_lease_has_run_out(shift: Shift) -> None:
    """The engine looks for ended leases every five seconds; for a shorter one it looks when that one ends."""
    shift.start()
    (first,) = shift.claim(lease_ms=200)
    began = time.monotonic()
    (second,) = shift.claim("bob", wait_ms=4_000)
    assert time.monotonic() - began < 4
    assert (first["task"] != second["task"], first["visit"]) == (True, second["visit"])
    assert shift.report(first, "heartbeat", {"lease_ms": 1_000}).status == 410
    assert shift.complete(second, {}).status == 200
