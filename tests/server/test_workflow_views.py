"""Looking at workflows over HTTP: the list, versions, pictures, differences, drawings, figures, simulations."""

from __future__ import annotations

import asyncio
import json
import subprocess
from itertools import count
from typing import Any

import pytest

from tests.server.client import COMMAND, Caller, Reply, Served
from treadle import connect
from treadle.language import load_text
from treadle.runtime.client import Deployed

_numbers = count(1)

FIRST = """
workflow: {name}
nodes:
  a: {{}}
  b: {{}}
  c: {{action: {{kind: assert, condition: "input.n == 1"}}, input: {{n: $.input.n}}}}
transitions:
  - {{from: a, to: b, condition: "input.n > 5"}}
  - {{from: a, to: c, condition: "input.n <= 5"}}
"""
MORE = "  - {{from: b, to: d}}\n"
SECOND = FIRST.replace("input.n > 5", "input.n > 6").replace("  b: {{}}", "  b: {{}}\n  d: {{}}") + MORE


@pytest.fixture
def name(served: Served) -> str:
    chosen = f"views/{next(_numbers)}"
    served.deploy(FIRST.format(name=chosen))
    return chosen


def path(name: str, rest: str = "") -> str:
    return f"/workflows/{name.replace('/', '%2F')}{rest}"


def test_the_list_has_the_newest_of_each_with_runs_by_status(served: Served, name: str) -> None:
    operator, viewer = served.as_("operator"), served.as_("viewer")
    operator.post("/runs?wait_ms=20000", {"workflow": name, "input": {"n": 1}})
    operator.post("/runs?wait_ms=20000", {"workflow": name, "input": {"n": 2}})
    own = served.with_key(served.new_key(f"own-{name}", "--role", "viewer", "--workflow", name))
    (row,) = own.get("/workflows")["items"]
    assert (row["workflow"], row["version"], row["runs"]) == (name, 1, {"completed": 1, "failed": 1})
    shown = viewer.get(path(name))
    assert (shown["hash"], shown["version"]) == (row["hash"], 1)
    assert row["deployed"] == shown["deployed"] and abs(shown["deployed"] - viewer.get("/info")["now"]) < 600_000
    first = viewer.get("/workflows?limit=1&text=views")
    assert len(first["items"]) == 1


def test_versions_newest_first_and_the_difference_between_two(served: Served, name: str) -> None:
    served.deploy(SECOND.format(name=name))
    viewer = served.as_("viewer")
    first = viewer.get(path(name, "/versions?limit=1"))
    rest = viewer.get(path(name, f"/versions?limit=1&cursor={first['next']}"))
    assert [row["version"] for row in first["items"] + rest["items"]] == [2, 1]
    assert rest["next"] is None
    changed = viewer.get(path(name, "/diff?from=1&to=2"))
    assert (changed["nodes"]["added"], changed["nodes"]["removed"]) == (["d"], [])
    assert changed["transitions"]["added"] == ["b->d"]
    assert [(each["ref"], each["field"]) for each in changed["transitions"]["changed"]] == [("a->b", "condition")]
    assert changed["nodes"]["changed"] == []
    assert viewer.api("GET", path(name, "/diff?from=1&to=3")).status == 404
    assert viewer.api("GET", path("nothing", "/versions")).status == 404


def test_the_graph_is_laid_out_as_json_mermaid_and_svg(served: Served, name: str) -> None:
    viewer = served.as_("viewer")
    reply = viewer.api("GET", path(name, "/graph"))
    graph = reply.json
    assert [node["ref"] for node in graph["nodes"]] == ["a", "b", "c"]
    assert graph["nodes"][0]["start"] and graph["nodes"][1]["y"] > graph["nodes"][0]["y"]
    assert [(edge["source"], edge["target"], edge["condition"]) for edge in graph["transitions"]] == [
        ("a", "b", "input.n > 5"),
        ("a", "c", "input.n <= 5"),
    ]
    assert [edge["tier"] for edge in graph["transitions"]] == [1, 1] and graph["meetings"] == []
    again = viewer.api("GET", path(name, "/graph"), headers={"If-None-Match": reply.headers["etag"]})
    assert again.status == 304
    assert viewer.api("GET", path(name, "/graph?format=mermaid")).raw.startswith(b"flowchart TD")
    svg = viewer.api("GET", path(name, "/graph?format=svg&version=1"))
    assert svg.headers["content-type"] == "image/svg+xml" and svg.raw.startswith(b"<svg")
    assert viewer.api("GET", path(name, "/graph?format=png")).status == 400
    assert viewer.api("GET", path(name, "/graph?version=9")).status == 404


def test_a_drawing_is_replaced_only_if_nobody_has_changed_it(served: Served, name: str) -> None:
    author = served.as_("author")
    before = author.api("GET", path(name))
    tag = before.headers["etag"]
    assert before.json["canvas"] is None
    put = author.api("PUT", path(name, "/canvas"), {"zoom": 1}, {"If-Match": tag})
    assert (put.status, put.json["canvas"], put.json["version"]) == (201, {"zoom": 1}, 1)
    stale = author.api("PUT", path(name, "/canvas"), {"zoom": 2}, {"If-Match": tag})
    assert (stale.status, stale.json["code"]) == (409, "STALE_VERSION")
    fresh = author.api("PUT", path(name, "/canvas"), {"zoom": 2}, {"If-Match": put.headers["etag"]})
    assert (fresh.status, fresh.json["canvas"]) == (200, {"zoom": 2})
    assert author.api("PUT", path(name, "/canvas"), [1]).status == 400
    assert served.as_("viewer").api("PUT", path(name, "/canvas"), {}).status == 403


def yaml(author: Caller, text: str, **headers: str) -> Reply:
    sent = {"Content-Type": "application/yaml", **{name.replace("_", "-"): value for name, value in headers.items()}}
    return author.api("POST", "/workflows", text.encode(), sent)


def test_a_version_is_deployed_only_if_nobody_has_deployed_since_it_was_read(served: Served, name: str) -> None:
    author = served.as_("author")
    tag = author.api("GET", path(name)).headers["etag"]
    author.api("PUT", path(name, "/canvas"), {"zoom": 1})
    first = yaml(author, SECOND.format(name=name), If_Match=tag)
    assert (first.status, first.json["version"]) == (201, 2), "a drawing that was changed since is no newer version"
    stale = yaml(author, FIRST.format(name=name), If_Match=tag)
    assert (stale.status, stale.json["code"]) == (409, "STALE_VERSION")
    assert "version 2 is the newest" in stale.json["detail"] and "If-Match" in stale.json["remedy"]
    assert author.get(path(name))["version"] == 2
    assert yaml(author, FIRST.format(name=name), If_Match='"2"').json["version"] == 3
    assert yaml(author, SECOND.format(name=name), If_Match="*").json["version"] == 4


def test_a_first_version_is_deployed_only_if_there_is_none(served: Served, name: str) -> None:
    author = served.as_("author")
    fresh = f"{name}/fresh"
    assert yaml(author, FIRST.format(name=fresh), If_Match='"1"').json["code"] == "STALE_VERSION"
    assert yaml(author, FIRST.format(name=fresh), If_None_Match="*").status == 201
    taken = yaml(author, SECOND.format(name=fresh), If_None_Match="*")
    assert (taken.status, taken.json["code"]) == (409, "STALE_VERSION")
    assert yaml(author, SECOND.format(name=fresh), If_None_Match='"1"').json["code"] == "BAD_REQUEST"


def test_of_two_who_deploy_at_once_on_the_same_version_one_is_refused(served: Served, name: str) -> None:
    async def both() -> list[str]:
        async with (
            connect(served.url, key=served.keys["author"]) as one,
            connect(served.url, key=served.keys["author"]) as other,
        ):
            texts = (SECOND.format(name=name), FIRST.format(name=name).replace("input.n > 5", "input.n > 7"))
            done = await asyncio.gather(
                one.deploy(load_text(texts[0]).require(), expected=1),
                other.deploy(load_text(texts[1]).require(), expected=1),
                return_exceptions=True,
            )
            return sorted(
                f"v{each.version}" if isinstance(each, Deployed) else str(getattr(each, "kind", each)) for each in done
            )

    assert asyncio.run(both()) == ["STALE_VERSION", "v2"]


def test_a_check_shows_the_definition_and_its_mermaid_text_when_asked(served: Served, name: str) -> None:
    viewer = served.as_("viewer")
    canvas = {
        "name": f"{name}/drawn",
        "nodes": [
            {"id": "ask", "type": "UX", "position": {"x": 10, "y": 20}, "data": {"label": "Ask"}},
            {"id": "part", "type": "section", "position": {"x": 0, "y": 0}, "data": {"label": "Part"}},
        ],
        "edges": [],
    }
    plain = viewer.post("/workflows/validate", canvas)
    assert (plain["ok"], plain["definition"], plain["mermaid"]) == (True, None, None)
    shown = viewer.post("/workflows/validate?show=definition&show=mermaid", canvas)
    assert shown["definition"]["nodes"]["ask"]["task"]["steps"][0]["action"]["kind"] == "human"
    assert shown["definition"]["canvas"]["nodes"]["ask"]["position"] == {"x": 10, "y": 20}
    assert shown["definition"]["canvas"]["sections"][0]["id"] == "part"
    assert shown["mermaid"].startswith("flowchart")
    broken = viewer.post("/workflows/validate?show=definition", {"workflow": "x"})
    assert (broken["ok"], broken["definition"]) == (False, None)


def test_figures_by_node_and_transition(served: Served, name: str) -> None:
    operator, viewer = served.as_("operator"), served.as_("viewer")
    for n in (1, 2, 9):
        operator.post("/runs?wait_ms=20000", {"workflow": name, "input": {"n": n}})
    shown = viewer.get(path(name, "/stats"))
    assert shown["runs"] == {"completed": 2, "failed": 1}
    assert (shown["counted"], shown["complete"]) == (3, True)
    nodes = {part["ref"]: part for part in shown["nodes"]}
    assert {ref: (part["visits"], part["failures"]) for ref, part in nodes.items()} == {
        "a": (3, 0),
        "b": (1, 0),
        "c": (2, 1),
    }
    assert nodes["a"]["work_p50_ms"] is not None and shown["duration_p95_ms"] >= shown["duration_p50_ms"]
    assert {part["ref"]: part["visits"] for part in shown["transitions"]} == {"a->b": 1, "a->c": 2}
    later = viewer.get(path(name, f"/stats?since={viewer.get('/info')['now'] + 60_000}"))
    assert (later["runs"], later["counted"], later["nodes"]) == ({}, 0, [])
    assert viewer.api("GET", path("nothing", "/stats")).status == 404


def simulated(served: Served, name: str, body: Any) -> Any:
    reply = served.as_("viewer").api("POST", path(name, "/simulate"), body)
    assert reply.status == 200, reply
    return reply.json


def test_a_simulation_plays_a_deployed_version_and_stores_nothing(served: Served, name: str) -> None:
    played = simulated(served, name, {"input": {"n": 1}, "expect": {"visits": {"a": 1, "c": 1}}})
    assert played["result"]["status"] == "completed" and played["result"]["ok"]
    assert [event["type"] for event in played["history"]][:2] == ["run.started", "token.created"]
    assert served.as_("viewer").get(path(name, "/stats"))["runs"] == {}
    other = simulated(served, name, {"input": {"n": 1}, "expect": {"status": "failed"}})
    assert not other["result"]["ok"] and "status" in other["result"]["reason"]


def test_a_simulation_runs_no_code_and_reads_no_file_and_its_scenario_passes(served: Served, name: str) -> None:
    code = {
        "workflow": name,
        "nodes": {
            "run": {"action": {"kind": "python", "function": "os:getcwd"}},
            "wait": {"action": {"kind": "wait", "ms": 3_600_000}},
        },
        "transitions": [{"from": "run", "to": "wait"}],
    }
    scenario = {
        "scenario": "whole",
        "definitions": [code],
        "start": {"input": {"n": 7}},
        "mocks": {"run": {"output": {}}},
    }
    assert simulated(served, name, scenario)["history"][0]["input"] == {"n": 7}, "a scenario is played as it is"
    failed = simulated(served, name, {"definition": code})
    assert failed["result"]["status"] == "failed" and "mock it" in failed["result"]["error"]["message"]
    mocked = simulated(served, name, {"definition": code, "mocks": {"run": {"output": {}}}})
    assert (mocked["result"]["status"], mocked["result"]["elapsed_ms"]) == ("completed", 3_600_000)
    file = served.folder / f"{name.replace('/', '-')}.scenario.yaml"
    file.write_text(json.dumps({**failed["scenario"], "expect": {"status": "failed", "visits": {"run": 1}}}), "utf-8")
    said = subprocess.run([*COMMAND, "test", str(file)], capture_output=True, text=True, cwd=served.folder)
    assert said.returncode == 0, said.stdout + said.stderr
    viewer = served.as_("viewer")
    for body in ({"definition": {"file": "/etc/passwd"}}, {"steps": [{"deploy": {"file": "/etc/passwd"}}]}):
        reply = viewer.api("POST", path(name, "/simulate"), body)
        assert (reply.status, reply.json["code"]) == (422, "SCHEMA")
        assert "root:" not in reply.raw.decode()
    lost = {"workflow": "w", "nodes": {"a": {}}, "transitions": [{"from": "a", "to": "b"}, {"from": "c", "to": "a"}]}
    unknown = viewer.api("POST", path(name, "/simulate"), {"definition": lost})
    assert unknown.status == 422
    assert [(one["code"], one["place"]) for one in unknown.json["problems"]] == [
        ("UNKNOWN_NODE", "transitions[0].to"),
        ("UNKNOWN_NODE", "transitions[1].from"),
    ]
    wrong = viewer.api("POST", path(name, "/simulate"), {"mocks": {"nowhere": {"output": {}}}})
    assert (wrong.status, wrong.json["code"]) == (422, "SCHEMA")


@pytest.mark.parametrize("store", ["sqlite"])
def test_a_client_of_the_service_tells_what_a_client_of_the_store_tells(
    store: str, request: pytest.FixtureRequest
) -> None:
    service: Served = request.getfixturevalue(f"served_{store}")
    name = f"views/{next(_numbers)}"
    service.deploy(FIRST.format(name=name))
    service.deploy(SECOND.format(name=name))
    service.as_("operator").post("/runs?wait_ms=20000", {"workflow": name, "input": {"n": 2}})

    async def both() -> None:
        async with (
            connect(service.store) as near,
            connect(service.url, key=service.keys["admin"]) as far,
        ):
            for client in (near, far):
                assert [row.version for row in await client.versions(name)] == [2, 1]
            assert await near.workflow_difference(name, 1, 2) == await far.workflow_difference(name, 1, 2)
            assert await near.drawn_graph(name) == await far.drawn_graph(name)
            assert await near.graph_text(name, 1) == await far.graph_text(name, 1)
            assert await near.stats(name) == await far.stats(name)
            assert await near.run_counts(name) == await far.run_counts(name) == {name: {"failed": 1}}
            assert await near.signal_all("nobody-waits") == await far.signal_all("nobody-waits") == []

    asyncio.run(both())
