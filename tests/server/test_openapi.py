"""The description of the API: complete, true to the route table, and readable by people."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from tests.server.client import Served
from treadle.server.bodies import read_body
from treadle.server.openapi import document
from treadle.server.problems import ProblemDocument
from treadle.server.table import all_routes

PROMISED = """
GET /health/live -
GET /health/ready -
GET /metrics -
GET /api/v1/info viewer or worker
GET /api/v1/me viewer or worker
POST /api/v1/workflows author
POST /api/v1/workflows/validate viewer
GET /api/v1/workflows/{name} viewer
GET /api/v1/workflows/{name}/versions/{version} viewer
POST /api/v1/runs operator
GET /api/v1/runs/{run} viewer
POST /api/v1/runs/{run}/cancel operator
POST /api/v1/runs/{run}/pause operator
POST /api/v1/runs/{run}/resume operator
POST /api/v1/runs/{run}/extend operator
POST /api/v1/runs/{run}/abort operator
POST /api/v1/runs/{run}/retry operator
GET /api/v1/runs/{run}/state viewer
GET /api/v1/runs/{run}/diff viewer
GET /api/v1/runs/{run}/visits viewer
GET /api/v1/runs/{run}/visits/{visit} viewer
GET /api/v1/runs/{run}/groups viewer
GET /api/v1/runs/{run}/groups/{group} viewer
POST /api/v1/runs/{run}/signals operator
POST /api/v1/signals operator
POST /api/v1/runs/{run}/visits/{visit}/retry operator
POST /api/v1/runs/{run}/visits/{visit}/cancel operator
POST /api/v1/runs/{run}/groups/{group}/cancel operator
POST /api/v1/runs/{run}/groups/{group}/add operator
POST /api/v1/runs/{run}/groups/{group}/close operator
GET /api/v1/runs/{run}/compensations viewer
POST /api/v1/runs/{run}/compensations/{record}/retry operator
POST /api/v1/runs/{run}/compensations/{record}/skip operator
POST /api/v1/runs/batch operator
GET /api/v1/workflows viewer
GET /api/v1/workflows/{name}/versions viewer
PUT /api/v1/workflows/{name}/canvas author
GET /api/v1/workflows/{name}/graph viewer
GET /api/v1/workflows/{name}/diff viewer
GET /api/v1/workflows/{name}/stats viewer
POST /api/v1/workflows/{name}/simulate viewer
GET /api/v1/schedules viewer
GET /api/v1/schedules/{name} viewer
PUT /api/v1/schedules/{name} operator
DELETE /api/v1/schedules/{name} operator
POST /api/v1/schedules/{name}/pause operator
POST /api/v1/schedules/{name}/resume operator
POST /api/v1/schedules/{name}/fire operator
GET /api/v1/schedules/{name}/upcoming viewer
GET /api/v1/dead-letters viewer
POST /api/v1/dead-letters/{id}/requeue operator
DELETE /api/v1/dead-letters/{id} operator
GET /api/v1/nodes viewer
POST /callbacks/{token} -
POST /hooks/{slug} -
GET /api/v1/keys admin
POST /api/v1/keys admin
DELETE /api/v1/keys/{id} admin
"""
"""Method, path and role of routes that are promised; `-`: open. Names of parameters do not count."""


def plain(path: str) -> str:
    return re.sub(r"\{\w+\}", "{}", path)


def test_every_promised_route_is_there_with_its_role() -> None:
    described = document(all_routes())["paths"]
    found = {
        (method.upper(), plain(path)): operation["x-role"].replace("open", "-")
        for path, methods in described.items()
        for method, operation in methods.items()
    }
    for line in PROMISED.strip().splitlines():
        method, path, role = line.split(" ", 2)
        assert found.get((method, plain(path))) == role, line


def test_every_reference_leads_to_a_schema() -> None:
    described = document(all_routes())
    known = set(described["components"]["schemas"]) | set(described["components"]["examples"])

    def references(value: Any) -> set[str]:
        if isinstance(value, dict):
            own = {value["$ref"].rpartition("/")[2]} if isinstance(value.get("$ref"), str) else set()
            return own.union(*(references(one) for one in value.values()))
        return set().union(*(references(one) for one in value)) if isinstance(value, list) else set()

    used = references(described)
    assert used and used <= known


def test_operations_have_names_of_their_own() -> None:
    described = document(all_routes())["paths"]
    names = [operation["operationId"] for methods in described.values() for operation in methods.values()]
    assert len(names) == len(set(names))


def test_the_description_is_for_any_key_and_its_page_fetches_nothing_from_elsewhere(served_sqlite: Served) -> None:
    for role in ("viewer", "worker"):
        assert served_sqlite.as_(role).get("/openapi.json")["openapi"].startswith("3.1")
    page = served_sqlite.as_("viewer").api("GET", "/docs")
    assert page.status == 200
    assert page.headers["content-type"].startswith("text/html")
    assert not re.findall(rb"<script|(?:src|href)=\"?https?://|style=", page.raw)
    assert b"/api/v1/runs/{run}/cancel" in page.raw


def test_every_body_answer_and_refusal_has_an_example_that_is_one() -> None:
    description = document(all_routes())
    for route in all_routes():
        operation = description["paths"][route.full_path][route.method.lower()]
        if isinstance(route.body, type) and issubclass(route.body, msgspec.Struct):
            for content in operation["requestBody"]["content"].values():
                assert read_body(json.dumps(content["example"]).encode(), route.body) is not None
        for status, kind in route.answers.items():
            if kind is not None and kind is not bytes:
                msgspec.convert(operation["responses"][str(status)]["content"]["application/json"]["example"], kind)
        for status, answer in operation["responses"].items():
            refused = answer.get("content", {}).get("application/problem+json")
            assert refused is None or refused["examples"], (route.full_path, status)
    for code, example in description["components"]["examples"].items():
        assert msgspec.convert(example["value"], ProblemDocument).code == code
