"""A service with something of every kind in it, for requests that are drawn at random: most of them would find nothing.

Owns the workflows and things, and the values that parameters of paths and fields of bodies may name.
"""

from __future__ import annotations

from typing import Any, Self
from urllib.parse import quote

from tests.server.client import Connected, Served
from tests.server.hooked import SECRET, STANDARD

Known = dict[str, list[Any]]
"""`NOUN.PARAMETER` of a path, or the name of a field → values that lead to something."""

WORKFLOWS = {
    "asks": """
workflow: asks
nodes:
  ask:
    action:
      kind: human
      title: Is it right?
      description: "**Look** at it"
      form:
        type: object
        required: [ok]
        properties: {ok: {type: boolean}, why: {type: string, maxLength: 50}}
  after: {action: {kind: set, values: {done: true}}}
transitions: [{from: ask, to: after}]
""",
    "fans": """
workflow: fans
nodes:
  plan:
    action: {kind: set, values: {ideas: [tea, rain, bees]}}
    output: {state.ideas: $.ideas}
  judge: {action: {kind: signal, name: go}}
  gather: {}
transitions:
  - {from: plan, to: judge, foreach: {collection: $.state.ideas, item_var: idea}, sibling_group: ideas}
  - {from: judge, to: gather, synchronization: {sibling_group: ideas}}
""",
    "works/away": """
workflow: works/away
nodes: {far: {queue: far, action: {kind: work, name: dig, config: {deep: true}}}}
""",
    "fails": """
workflow: fails
nodes:
  reserve:
    action: {kind: set, values: {reserved: true}}
    compensate: {action: {kind: set, values: {released: true}}}
  boom: {action: {kind: http, url: "http://192.0.2.1/"}}
transitions: [{from: reserve, to: boom}]
""",
}


class Attacked(Connected):
    """A service that wrong keys do not slow down: most requests of a fuzzer are wrong."""

    def start(self, port: int = 0) -> Self:
        self.environment["TREADLE_SERVER_FAILURES_PER_MIN"] = "1000000"
        return super().start(port)


def furnish(service: Served) -> Known:
    """Puts something of every kind into a service; the names of it all."""
    admin = service.as_("admin")
    for text in WORKFLOWS.values():
        service.deploy(text)
    runs = [_started(service, name, number) for name in WORKFLOWS for number in range(4)]
    person = {"type": "person", "id": "ann", "name": "Ann", "email": "ann@example.com", "attributes": {"age": 7}}
    admin.post("/entities", person)
    for slug, source, secret in (("gen", "generic", SECRET), ("std", "standard", STANDARD), ("open", "none", None)):
        given = {"source": source, "workflow": "asks", "input": {"name": "$.body.name"}}
        _put(service, f"/hooks/{slug}", {**given, **({"secret": secret} if secret else {})})
    service.as_(None)("POST", "/hooks/open", {"name": "Bo"})
    _put(service, "/subscriptions/told", {"url": "http://127.0.0.1:9/closed", "types": ["run.completed"]})
    _put(service, "/schedules/daily", {"workflow": "asks", "cron": "0 5 * * *", "input": {"name": "daily"}})
    _put(service, "/queues/far", {"concurrency": 3, "rate": "5/s"})
    _put(service, "/secrets/TOKEN", {"value": "s3cret", "hosts": ["api.example"]})
    keys = [admin.post("/keys", {"name": f"spare {number}", "roles": ["viewer"]})["id"] for number in range(5)]
    reply = admin.api("PUT", f"/runs/{runs[0]}/artifacts/note.txt", b"hello", {"Content-Type": "text/plain"})
    assert reply.status == 201, reply
    claimed = admin.post("/tasks/claim", {"queues": ["far"], "worker": "w", "limit": 2, "lease_ms": 60_000})["tasks"]
    return {
        "runs.run": runs,
        "gates.run": runs[:4],
        "runs.visit": [1, 2, 3],
        "gates.visit": [1],
        "runs.group": [1, 2],
        "runs.record": [1],
        "runs.name": ["note.txt", "new.bin"],
        "workflows.name": list(WORKFLOWS),
        "workflows.version": [1, 2],
        "tasks.task": [task["task"] for task in claimed],
        "queues.name": ["far", "other"],
        "entities.type": ["person"],
        "entities.id": ["ann", "bob"],
        "hooks.slug": ["gen", "std", "open", "fresh"],
        "hooks.id": [1],
        "subscriptions.name": ["told", "fresh"],
        "schedules.schedule": ["daily", "fresh"],
        "secrets.name": ["TOKEN", "FRESH"],
        "keys.id": keys,
        "workflow": list(WORKFLOWS),
        "queues": [["far"]],
        "run": runs,
    }


def _started(service: Served, workflow: str, number: int) -> str:
    entity = {"type": "person", "id": f"p{number}"}
    given = {"workflow": workflow, "input": {"name": "Ann"}, "tags": ["t"], "key": f"{workflow} {number}"}
    run: str = service.as_("admin").post("/runs", {**given, "entity": entity} if number else given)["run"]
    return run


def _put(service: Served, path: str, body: dict[str, Any]) -> None:
    reply = service.as_("admin").api("PUT", quote(path), body)
    assert reply.status in (200, 201), reply
