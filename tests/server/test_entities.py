"""Entities over HTTP: records, journeys, moves by hand, positions, conversion."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Any
from urllib.parse import quote

from tests.server.client import Caller, Served
from treadle import connect

LEAD = """
workflow: {name}
input_schema: {{type: object}}
nodes:
  score: {{}}
  call: {{action: {{kind: human}}}}
  win:
    action: {{kind: set, values: {{done: true}}}}
    entity: {{on_success: {{complete_as: success, set_type: customer}}}}
  nurture:
    action: {{kind: set, values: {{done: true}}}}
    entity: {{on_success: {{section: newsletter}}}}
transitions:
  - {{from: score, to: call, condition: "input.big == true"}}
  - {{from: score, to: nurture, priority: 2}}
  - {{from: call, to: win}}
"""


def deployed(served: Served, name: str) -> Caller:
    text = LEAD.format(name=name).encode()
    reply = served.as_("author").api("POST", "/workflows", text, {"Content-Type": "application/yaml"})
    assert reply.status in (200, 201), reply
    return served.as_("operator")


def start(caller: Caller, workflow: str, type: str, id: str, big: bool, /, **more: Any) -> Any:
    about = {"type": type, "id": id, **more}
    return caller.post(
        "/runs?wait_ms=" + ("0" if big else "20000"), {"workflow": workflow, "input": {"big": big}, "entity": about}
    )


def test_a_record_is_made_changed_listed_and_deleted(served: Served) -> None:
    caller = served.as_("operator")
    id = "a/b ü%"
    path = f"/entities/person/{quote(id, safe='')}"
    reply = caller.api(
        "POST", "/entities", {"type": "person", "id": id, "name": "Ann", "attributes": {"n": 1, "m": None}}
    )
    assert (reply.status, reply.headers["location"]) == (201, f"/api/v1{path}")
    assert reply.json["attributes"] == {"n": 1}
    again = caller.api("POST", "/entities", {"type": "person", "id": id})
    assert (again.status, again.json["code"]) == (409, "DUPLICATE")
    changed = caller.api("PATCH", path, {"email": "ann@x.org", "name": None, "attributes": {"n": None, "k": {"a": 1}}})
    assert changed.status == 200
    shown = caller.get(path)
    assert shown == changed.json
    assert (shown["name"], shown["email"], shown["attributes"]) == (None, "ann@x.org", {"k": {"a": 1}})
    assert [one["id"] for one in caller.get("/entities?type=person&text=ANN@")["items"]] == [id]
    assert caller.get("/entities?type=person&text=bea")["items"] == []
    assert caller.api("DELETE", path).status == 204
    assert caller.api("GET", path).json["code"] == "NOT_FOUND"
    assert caller.api("DELETE", path).status == 404


def test_wrong_bodies_are_refused_by_name(served: Served) -> None:
    caller = served.as_("operator")
    for body in ({"type": "a/b", "id": "1"}, {"type": "", "id": "1"}, {"type": "p"}, {"type": "p", "id": "1", "x": 1}):
        reply = caller.api("POST", "/entities", body)
        assert (reply.status, reply.json["code"]) == (400, "BAD_REQUEST"), body
    assert caller.api("GET", "/entities?colour=red").status == 400
    assert caller.api("PATCH", "/entities/p/none", {"attributes": None}).status == 400
    assert served.as_("viewer").api("POST", "/entities", {"type": "p", "id": "1"}).status == 403
    assert served.as_("worker").api("GET", "/entities").status == 403


def test_the_same_request_again_makes_one_record(served: Served) -> None:
    caller = served.as_("operator")
    mark = {"Idempotency-Key": "make-1"}
    first = caller.api("POST", "/entities", {"type": "once", "id": "1"}, mark)
    again = caller.api("POST", "/entities", {"type": "once", "id": "1"}, mark)
    assert (first.status, again.status, again.json) == (201, 201, first.json)
    assert again.headers["idempotency-replayed"] == "true"


def test_pages_hold_every_record_once(served: Served) -> None:
    caller = served.as_("operator")
    for number in range(5):
        caller.post("/entities", {"type": "paged", "id": str(number)})
    seen: list[str] = []
    cursor = ""
    while True:
        page = caller.get(f"/entities?type=paged&limit=2{cursor}")
        seen += [one["id"] for one in page["items"]]
        if page["next"] is None:
            break
        cursor = f"&cursor={page['next']}"
    assert seen == ["4", "3", "2", "1", "0"]
    assert caller.api("GET", f"/entities?type=other{cursor}").status == 400, "a cursor is for its own filters"


def test_a_journey_from_start_to_success_moves_to_a_new_address(served: Served) -> None:
    name = "lead-success"
    caller = deployed(served, name)
    run = start(caller, name, "lead", "hanna", True, name="Hanna", attributes={"from": "site"})["run"]
    assert caller.api("DELETE", "/entities/lead/hanna").json["code"] == "INVALID_STATE"
    answer(served, run)
    wait_for(lambda: ended(caller, run))
    moved = caller.api("GET", "/entities/lead/hanna")
    assert (moved.status, moved.headers["location"]) == (308, "/api/v1/entities/customer/hanna")
    entity = caller.get("/entities/customer/hanna")
    assert entity["entity"] == "customer/hanna", "as in the rows of the command line"
    assert (entity["name"], entity["attributes"]) == ("Hanna", {"from": "site"})
    (place,) = entity["positions"]
    assert (place["workflow"], place["node"], place["completed_as"]) == (name, "win", "success")
    assert caller.api("GET", "/entities/lead/hanna/journey").headers["location"].endswith("/customer/hanna/journey")
    asked = caller.api("GET", "/entities/lead/hanna/journey?limit=1").headers["location"]
    assert asked.endswith("/customer/hanna/journey?limit=1"), "a page of it stays that page"
    assert caller.api("PATCH", "/entities/lead/hanna", {"name": "H"}).status == 308
    assert caller.api("POST", "/entities", {"type": "lead", "id": "hanna"}).json["code"] == "DUPLICATE"
    (leg,) = caller.get("/entities/customer/hanna/journey")["items"]
    assert (leg["run"], leg["workflow"], leg["status"]) == (run, name, "completed")
    places = [one.get("node") or one.get("edge") for one in leg["moves"]]
    assert places == ["->score", "score", places[2], "call", places[4], "win", "win"]
    assert leg["moves"][-1]["type"] == "customer"
    assert all(move["until"] >= move["at"] for move in leg["moves"][:-1])


def test_positions_and_conversion_count_who_is_where(served: Served) -> None:
    name = "lead-crowd"
    caller = deployed(served, name)
    for number in range(6):
        start(caller, name, "crowd", str(number), number % 3 == 0)
    wait_for(lambda: len(gates(served, name)) == 2)
    found = caller.get(f"/workflows/{name}/positions?limit=4")
    assert found["places"] == [
        {"count": 2, "node": "call", "states": {"waiting_for_user": 2}},
        {"count": 4, "section": "newsletter"},
    ]
    assert [one["id"] for one in found["items"]] == ["5", "4", "3", "2"]
    rest = caller.get(f"/workflows/{name}/positions?limit=4&cursor={found['next']}")
    assert ([one["id"] for one in rest["items"]], rest["next"]) == (["1", "0"], None)
    at_call = caller.get(f"/workflows/{name}/positions?node=call")["items"]
    assert [(one["id"], one["positions"][0]["state"]) for one in at_call] == [
        ("3", "waiting_for_user"),
        ("0", "waiting_for_user"),
    ]
    assert [one["id"] for one in caller.get(f"/entities?workflow={name}&section=newsletter")["items"]] == [
        "5",
        "4",
        "2",
        "1",
    ]
    flow = caller.get(f"/workflows/{name}/conversion?since=0")
    (section,) = flow["sections"]
    assert {k: section[k] for k in ("section", "entered", "left", "converted")} == {
        "section": "newsletter",
        "entered": 4,
        "left": 0,
        "converted": 0,
    }
    (entry,) = [one for one in flow["edges"] if one["edge"] == "->score"]
    assert (entry["entered"], entry["left"]) == (6, 6)
    assert entry["spent_p95_ms"] >= entry["spent_p50_ms"] >= 0
    assert caller.get(f"/workflows/{name}/conversion?since=99999999999999")["edges"] == []
    assert caller.api("GET", "/workflows/no-such/positions").status == 404
    assert caller.api("GET", "/workflows/no-such/conversion").status == 404


def test_a_section_of_the_drawing_is_entered_with_the_first_of_its_nodes(served: Served) -> None:
    name = "lead-drawn"
    caller = deployed(served, name)
    drawing = {"sections": [{"id": "leads", "nodes": ["score", "call"]}, {"id": "newsletter", "nodes": ["nurture"]}]}
    assert served.as_("author").api("PUT", f"/workflows/{name}/canvas", drawing).status in (200, 201)
    for number in range(3):
        start(caller, name, "drawn", str(number), number == 0)
    wait_for(lambda: len(gates(served, name)) == 1)
    flow = caller.get(f"/workflows/{name}/conversion")
    counts = {one["section"]: (one["entered"], one["left"]) for one in flow["sections"]}
    assert counts == {"leads": (3, 2), "newsletter": (2, 0)}
    assert {one["node"]: one["entered"] for one in flow["nodes"]} == {"score": 3, "call": 1, "nurture": 2}


def test_a_move_by_hand_is_on_the_journey_and_does_not_disturb_the_run(served: Served) -> None:
    name = "lead-by-hand"
    caller = deployed(served, name)
    run = start(caller, name, "hand", "1", True)["run"]
    wait_for(lambda: gates_of(served, run))
    moved = caller.post("/entities/hand/1/move", {"workflow": name, "section": "vip", "reason": "called"})
    assert moved["positions"][0]["section"] == "vip"
    answer(served, run)
    done = wait_for(lambda: ended(caller, run))
    assert done["status"] == "completed"
    (leg,) = [leg for leg in caller.get("/entities/customer/1/journey")["items"] if leg["run"] == run]
    by_hand = [move for move in leg["moves"] if move.get("by")]
    assert [(move["section"], move["by"], move["reason"]) for move in by_hand] == [("vip", "operator", "called")]
    assert caller.get("/entities/customer/1")["positions"][0]["section"] == "vip", "it no longer travels with the run"
    caller.post("/entities/customer/1/move", {"workflow": name, "node": "call"})
    legs = caller.get("/entities/customer/1/journey?limit=1")
    assert (legs["items"][0]["run"], legs["items"][0]["moves"][0]["node"]) == (None, "call")
    rest = caller.get(f"/entities/customer/1/journey?limit=1&cursor={legs['next']}")
    assert ([one["run"] for one in rest["items"]], rest["next"]) == ([run], None)
    for body, status in (
        ({"workflow": name}, 400),
        ({"workflow": name, "node": "call", "section": "vip"}, 400),
        ({"workflow": name, "node": "nowhere"}, 404),
        ({"workflow": "no-such", "section": "vip"}, 404),
    ):
        assert caller.api("POST", "/entities/customer/1/move", body).status == status, body


def test_the_python_client_of_the_service_has_the_same_methods(served: Served) -> None:
    name = "lead-remote"
    deployed(served, name)
    key = served.as_("operator").key
    with connect(served.url, key=key) as remote, connect(served.store) as client:
        made = remote.entities.create("remote", "r/1", name="Ann", attributes={"a": 1})
        assert made == client.entities.get("remote", "r/1")
        changed = remote.entities.update("remote", "r/1", name=None, attributes={"b": 2})
        assert (changed.name, changed.attributes) == (None, {"a": 1, "b": 2})
        remote.entities.move("remote", "r/1", name, section="vip", reason="called")
        run = remote.start(name, {"big": False}, entity="remote/r/1")
        run.wait(20)
        assert remote.entities.journey("remote", "r/1") == client.entities.journey("remote", "r/1")
        assert remote.entities.positions(name) == client.entities.positions(name)
        assert remote.entities.conversion(name) == client.entities.conversion(name)
        assert remote.entities.list(type="remote") == client.entities.list(type="remote")
        remote.entities.delete("remote", "r/1")
        assert client.entities.list(type="remote") == []


def test_a_former_address_leads_the_python_client_to_the_entity(served: Served) -> None:
    name = "lead-moved"
    caller = deployed(served, name)
    run = start(caller, name, "early", "9", True)["run"]
    answer(served, run)
    wait_for(lambda: ended(caller, run))
    with connect(served.url, key=caller.key) as remote:
        assert remote.entities.get("early", "9").type == "customer"
        assert remote.entities.update("early", "9", name="Nina").name == "Nina"


def wait_for(ask: Callable[[], Any]) -> Any:
    """What is asked for, as soon as it is there; the service works while this asks."""
    deadline = monotonic() + 30
    while not (found := ask()):
        assert monotonic() < deadline, "it did not come"
    return found


def ended(caller: Caller, run: str) -> Any:
    found = caller.get(f"/runs/{run}")
    return found if found["ended"] is not None else None


def gates(served: Served, workflow: str) -> list[Any]:
    """Open gates, asked of the store as another process would."""
    with connect(served.store) as client:
        return [gate for gate in client.gates(limit=1_000) if gate.workflow == workflow]


def answer(served: Served, run: str) -> None:
    (gate,) = wait_for(lambda: gates_of(served, run))
    with connect(served.store) as client:
        client.complete_gate(run, gate.visit, {})


def gates_of(served: Served, run: str) -> list[Any]:
    with connect(served.store) as client:
        return list(client.gates(run))
