"""The links of the description lead to what was made: each is followed once, on a real service."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

import pytest

from tests.fuzz.world import WORKFLOWS
from tests.server.client import Reply, Served

MADE: dict[str, tuple[str, Any]] = {
    "post_api_v1_runs": ("/runs", {"workflow": "asks"}),
    "post_api_v1_workflows": ("/workflows", {"workflow": "linked/one", "nodes": {"a": {}}}),
    "post_api_v1_entities": ("/entities", {"type": "thing", "id": "linked one"}),
    "post_api_v1_keys": ("/keys", {"name": "linked", "roles": ["viewer"]}),
    "put_api_v1_hooks_slug": ("/hooks/linked", {"source": "none", "workflow": "asks"}),
    "put_api_v1_subscriptions_name": ("/subscriptions/linked", {"url": "https://x.example", "types": ["run.failed"]}),
    "put_api_v1_schedules_schedule": ("/schedules/linked", {"workflow": "asks", "cron": "0 5 * * *"}),
    "put_api_v1_secrets_name": ("/secrets/LINKED", {"value": "v4lue", "hosts": ["x.example"]}),
    "put_api_v1_queues_name": ("/queues/linked", {"concurrency": 1}),
}
"""Operation → a request that makes something."""
FILLING: dict[str, Any] = {"from": 1, "to": 1, "ms": 1_000, "name": "go"}
"""Parameters and fields that a request needs, beside those of the link."""


def operations(description: Any) -> dict[str, tuple[str, str, Any]]:
    """Name of an operation → method, path, description of it."""
    return {
        operation["operationId"]: (method.upper(), path, operation)
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
    }


def links(operation: Any) -> dict[str, Any]:
    return {name: link for answer in operation["responses"].values() for name, link in answer.get("links", {}).items()}


def value_of(source: str, path: str, made: str, reply: Reply) -> str:
    """The value that a runtime expression of a link stands for."""
    if source.startswith("$response.body#/"):
        return str(reply.json[source.removeprefix("$response.body#/")])
    names = re.findall(r"\{(\w+)\}", path)
    pattern = re.sub(r"\\\{\w+\\\}", "([^/]+)", re.escape(path))
    match = re.fullmatch(pattern, f"/api/v1{made}")
    assert match is not None
    return match[1 + names.index(source.removeprefix("$request.path."))]


def test_every_link_leads_to_the_thing_that_was_made(served: Served) -> None:
    admin = served.as_("admin")
    served.deploy(WORKFLOWS["asks"])
    known = operations(admin.get("/openapi.json"))
    sources = {name for name, (_, _, operation) in known.items() if links(operation)}
    assert sources >= set(MADE) - {"put_api_v1_queues_name"}  # nothing is below a queue
    followed = 0
    for source in sorted(sources & set(MADE)):
        made_at, body = MADE[source]
        method, path, operation = known[source]
        made = admin.api(method, made_at, body)
        assert made.status in (200, 201), made
        targets = links(operation)
        for target in sorted(targets, key=lambda name: (known[name][0] == "DELETE", "cancel" in name, name)):
            values = targets[target]["parameters"]
            filled = {name: value_of(text, path, made_at, made) for name, text in values.items()}
            follow(admin, known[target], filled)
            followed += 1
    assert followed > 40, "the description links most operations"


def follow(admin: Any, target: tuple[str, str, Any], filled: dict[str, str]) -> None:
    method, path, operation = target
    if path.endswith("/stream"):
        return  # answers without end
    for name, value in filled.items():
        path = path.replace(f"{{{name}}}", quote(value, safe=""))
    needed = [one["name"] for one in operation["parameters"] if one["in"] == "query" and one["required"]]
    query = "&".join(f"{name}={FILLING[name]}" for name in needed)
    body = None
    if operation.get("requestBody", {}).get("required"):
        body = {"ms": 1_000} if path.endswith("/extend") else FILLING
    reply = admin(method, f"{path}?{query}" if query else path, body)
    assert str(reply.status) in operation["responses"], (method, path, reply)
    assert reply.status != 404, (method, path, reply)
    assert reply.status < 500, (method, path, reply)


@pytest.mark.parametrize("header", ["If-None-Match", "If-Match", "Range", "Last-Event-ID"])
def test_headers_that_change_an_answer_are_described(served_sqlite: Served, header: str) -> None:
    known = operations(served_sqlite.as_("viewer").get("/openapi.json"))
    assert any(
        one["name"] == header and one["in"] == "header" and one["description"]
        for _, _, operation in known.values()
        for one in operation["parameters"]
    )
