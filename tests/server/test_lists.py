"""5.1: every list takes `limit` and `cursor`, and a walk through it neither repeats nor skips a row."""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import msgspec
import pytest

from tests.server.client import Caller, Served
from treadle.server.table import all_routes

BEYOND_THE_PAGE = {"/api/v1/runs/{run}/decisions", "/api/v1/workflows/{name}/queue"}
"""Lists for the canvas, which follow another rule: `after` an event; the first in a queue."""


def walked(caller: Caller, path: str, size: int = 1) -> list[Any]:
    """All rows of a list, in pages of that size."""
    rows: list[Any] = []
    cursor = ""
    mark = "&" if "?" in path else "?"
    while True:
        page = caller.get(f"{path}{mark}limit={size}{cursor}")
        assert len(page["items"]) <= size
        rows += page["items"]
        if page["next"] is None:
            return rows
        cursor = f"&cursor={quote(page['next'])}"


def test_every_list_takes_a_limit_and_a_cursor() -> None:
    def names(kind: Any) -> set[str]:
        return {field.encode_name for field in msgspec.structs.fields(kind)} if kind is not None else set()

    lists = [route for route in all_routes() if "items" in names_of(route.answers.get(200))]
    assert len(lists) > 20
    lacking = {route.full_path for route in lists if not {"limit", "cursor"} <= names(route.query)}
    assert lacking == BEYOND_THE_PAGE


def names_of(kind: Any) -> set[str]:
    is_struct = isinstance(kind, type) and issubclass(kind, msgspec.Struct)
    return {field.name for field in msgspec.structs.fields(kind)} if is_struct else set()


@pytest.mark.parametrize("noun", ["keys", "secrets", "hooks", "subscriptions"])
def test_named_things_are_listed_newest_first_and_page_by_page(served: Served, noun: str) -> None:
    admin, mark = served.as_("admin"), f"m{uuid4().hex[:8]}"
    made = [f"{mark}{letter}" for letter in "bca"]
    for name in made:
        if noun == "keys":
            admin.post("/keys", {"name": name, "roles": ["viewer"]})
        else:
            path = {"secrets": f"/secrets/{name.upper()}"}.get(noun, f"/{noun}/{name}")
            bodies = {
                "secrets": {"value": "a secret"},
                "hooks": {"source": "none", "workflow": "any"},
                "subscriptions": {"url": "https://example.com/", "types": ["run.*"]},
            }
            assert admin.api("PUT", path, bodies[noun]).status == 201
        began = int(time.time() * 1_000)
        while int(time.time() * 1_000) == began:
            pass  # the next one is made in another millisecond
    field = "slug" if noun == "hooks" else "name"
    whole = [row[field].lower() for row in walked(admin, f"/{noun}", 1_000)]
    assert [name for name in whole if name.startswith(mark)] == made[::-1]
    assert [row[field].lower() for row in walked(admin, f"/{noun}")] == whole


def test_a_row_that_is_removed_or_made_meanwhile_moves_no_other_row_of_a_walk(served: Served) -> None:
    admin, mark = served.as_("admin"), uuid4().hex[:8]
    ids = [admin.post("/keys", {"name": f"{mark} {number}", "roles": ["viewer"]})["id"] for number in range(4)]
    before = [row["id"] for row in walked(admin, "/keys", 1_000)]
    first = admin.get("/keys?limit=2")
    assert admin.api("DELETE", f"/keys/{first['items'][-1]['id']}").status == 204
    admin.post("/keys", {"name": f"{mark} late", "roles": ["viewer"]})
    rest = admin.get(f"/keys?limit=1000&cursor={quote(first['next'])}")
    assert [row["id"] for row in first["items"] + rest["items"]] == before
    assert set(ids) <= set(before)


def test_a_history_is_walked_by_cursors_that_hold_only_for_its_filters(served: Served) -> None:
    name = f"lists/{uuid4().hex[:8]}"
    served.deploy(f"workflow: {name}\nnodes: {{a: {{}}, b: {{}}}}\ntransitions: [{{from: a, to: b}}]\n")
    run = served.as_("operator").api("POST", "/runs?wait_ms=30000", {"workflow": name}).json["run"]
    viewer = served.as_("viewer")
    whole = viewer.get(f"/runs/{run}/history")["items"]
    assert [event["seq"] for event in whole] == list(range(1, len(whole) + 1))
    assert walked(viewer, f"/runs/{run}/history", 2) == whole
    created = walked(viewer, f"/runs/{run}/history?type=token.created")
    assert created == [event for event in whole if event["type"] == "token.created"]
    cursor = quote(viewer.get(f"/runs/{run}/history?type=token.created&limit=1")["next"])
    assert viewer.api("GET", f"/runs/{run}/history?cursor={cursor}").status == 400


@pytest.mark.parametrize("path", ["/nodes", "/queues"])
def test_nodes_and_queues_are_listed_page_by_page(served: Served, path: str) -> None:
    for number in range(2):
        served.as_("admin").api("PUT", f"/queues/lists-{number}", {"concurrency": 1})
    viewer = served.as_("viewer")
    field = path.strip("/").removesuffix("s")
    assert [row[field] for row in walked(viewer, path)] == [row[field] for row in viewer.get(path)["items"]]


def test_artifacts_are_listed_page_by_page(served: Served) -> None:
    name = f"lists/{uuid4().hex[:8]}"
    served.deploy(f"workflow: {name}\nnodes: {{a: {{action: {{kind: human}}}}}}\n")
    run = served.as_("operator").post("/runs", {"workflow": name})["run"]
    for letter in "cab":
        assert served.as_("approver").api("PUT", f"/runs/{run}/artifacts/{letter}", b"1").status == 201
    assert [row["name"] for row in walked(served.as_("viewer"), f"/runs/{run}/artifacts")] == ["a", "b", "c"]
