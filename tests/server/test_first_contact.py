"""A stranger with a key and an HTTP client: health, identity, deploy, start, read."""

from __future__ import annotations

import pytest

from tests.server.client import ROLES, Served

GREET = """
workflow: {name}
nodes:
  greet:
    action: {{kind: set, output: {{words: {{from: input.name}}}}}}
"""


def test_the_service_is_alive_and_ready_without_a_key(served: Served) -> None:
    for path in ("/health/live", "/health/ready"):
        assert served.as_(None)("GET", path).status == 200


@pytest.mark.parametrize("role", ROLES)
def test_every_key_may_ask_who_it_is(served: Served, role: str) -> None:
    assert served.as_(role).get("/me")["roles"] == [role]


def test_a_request_without_a_key_is_refused_with_a_problem_document(served: Served) -> None:
    reply = served.as_(None).api("GET", "/info")
    assert reply.status == 401
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.json["code"] == "UNAUTHENTICATED"
    assert reply.json["request_id"] == reply.headers["x-request-id"]


def test_an_unknown_address_and_a_wrong_method_are_problem_documents(served: Served) -> None:
    assert served.as_("viewer").api("GET", "/nothing").json["code"] == "NOT_FOUND"
    reply = served.as_("viewer").api("PUT", "/info")
    assert (reply.status, reply.json["code"], reply.headers["allow"]) == (405, "METHOD", "GET, HEAD, OPTIONS")
