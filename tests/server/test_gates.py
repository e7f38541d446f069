"""Gates over HTTP: lists, who may answer, first answer wins, quorums, comments and attachments (5.5)."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from tests.server.client import Caller, Served

NUMBERS = count(1)


def asking(served: Served, *, nodes: int = 1, shown: Any = None, **config: Any) -> tuple[str, list[int]]:
    """A run of a workflow of its own with open gates at one node, which show some input; their visits."""
    name = f"people-{next(NUMBERS)}"
    action = {"kind": "human", "title": f"Sign {name}", **config}
    definition = {
        "workflow": name,
        "nodes": {"a": {}, "sign": {"action": action, "input_mapping": {"about": "$.input.about"}}},
        "transitions": [{"from": "a", "to": "sign", "spawn_count": nodes}],
    }
    served.as_("author").post("/workflows", definition)
    run = served.as_("operator").post("/runs", {"workflow": name, "input": {"about": shown}})["run"]
    return run, sorted(item["visit"] for item in served.as_("viewer").get(f"/gates?run={run}")["items"])


def person(served: Served, name: str, *groups: str, role: str = "approver") -> Caller:
    options = [word for group in groups for word in ("--group", group)]
    return Caller(served.url, served.new_key(name, "--role", role, "--user", name, *options))


@pytest.fixture(scope="module")
def people() -> dict[tuple[str, str], Caller]:
    return {}


def someone(served: Served, people: dict[tuple[str, str], Caller], name: str, *groups: str) -> Caller:
    key = (served.url, f"{name} {groups}")
    if key not in people:
        people[key] = person(served, name, *groups)
    return people[key]


People = dict[tuple[str, str], Caller]


def test_an_assigned_gate_is_answered_by_the_people_it_names(served: Served, people: People) -> None:
    run, [visit] = asking(served, assign={"users": ["ann"], "groups": ["finance"]})
    eve = someone(served, people, "eve", "sales")
    for verb, body in (("answer", {"data": {}}), ("claim", None), ("delegate", {"to": "eve"})):
        assert eve.post(f"/gates/{run}/{visit}/{verb}", body, status=403)["code"] == "FORBIDDEN"
    bob = someone(served, people, "bob", "finance")
    gate = bob.post(f"/gates/{run}/{visit}/answer", {"data": {"ok": True}, "comment": "fine"}, status=200)
    assert (gate["status"], gate["answer"]["by"], gate["answer"]["comment"]) == ("completed", "bob", "fine")
    assert bob.post(f"/gates/{run}/{visit}/answer", {"data": {"ok": True}}, status=200)["answer"]["by"] == "bob"
    for caller, data in (
        (bob, {"ok": False}),
        (served.as_("approver"), {"ok": True}),
        (served.as_("admin"), {"ok": True}),
    ):
        refused = caller.post(f"/gates/{run}/{visit}/answer", {"data": data}, status=409)
        assert refused["code"] == "INVALID_STATE"
        assert "answered by bob at 20" in refused["detail"]
        assert '{"ok":true}' in refused["detail"]
    assert served.as_("viewer").get(f"/runs/{run}")["status"] == "completed"


def test_a_viewer_may_not_answer_and_an_unknown_gate_is_not_found(served: Served) -> None:
    run, [visit] = asking(served)
    assert served.as_("viewer").post(f"/gates/{run}/{visit}/answer", {"data": 1}, status=403)["code"] == "FORBIDDEN"
    assert served.as_("worker").api("GET", "/gates").status == 403
    for path in (f"/gates/{run}/99", "/gates/nobody/1", f"/gates/{run}/x"):
        assert served.as_("approver").api("GET", path).status == 404, path
        assert served.as_("approver").post(f"{path}/answer", {"data": 1}, status=404)["code"] == "NOT_FOUND"
    assert served.as_("approver").post(f"/gates/{run}/{visit}/answer", {"date": 1}, status=400)["code"] == "BAD_REQUEST"


def test_a_claimed_gate_is_its_holders(served: Served, people: People) -> None:
    run, [visit] = asking(served, assign={"groups": ["finance"]})
    ann, bob = someone(served, people, "ann", "finance"), someone(served, people, "bob", "finance")
    assert ann.post(f"/gates/{run}/{visit}/claim")["claimed_by"] == "ann"
    for verb, body in (("answer", {"data": 1}), ("release", {}), ("claim", {}), ("delegate", {"to": "bob"})):
        refused = bob.post(f"/gates/{run}/{visit}/{verb}", body, status=409)
        assert "claimed by 'ann'" in refused["detail"]
    assert ann.post(f"/gates/{run}/{visit}/release")["claimed_by"] is None
    assert bob.post(f"/gates/{run}/{visit}/delegate", {"to": "carl"})["claimed_by"] == "carl"
    carl = someone(served, people, "carl")
    assert carl.post(f"/gates/{run}/{visit}/answer", {"data": 1})["answer"]["by"] == "carl"
    other, [visit] = asking(served, assign={"groups": ["finance"]})
    ann.post(f"/gates/{other}/{visit}/claim")
    assert served.as_("admin").post(f"/gates/{other}/{visit}/answer", {"data": 1})["status"] == "completed"


def test_every_wrong_field_is_named_at_once(served: Served) -> None:
    form = {
        "type": "object",
        "required": ["ok", "why"],
        "properties": {"ok": {"type": "boolean"}, "why": {"type": "string"}, "n": {"type": "integer"}},
    }
    run, [visit] = asking(served, form=form)
    refused = served.as_("approver").post(f"/gates/{run}/{visit}/answer", {"data": {"ok": "yes", "n": 1.5}}, status=422)
    assert refused["code"] == "SCHEMA"
    assert {line["place"] for line in refused["problems"]} == {"$.ok", "$.why", "$.n"}
    assert served.as_("viewer").get(f"/gates/{run}/{visit}")["status"] == "open"


def test_a_quorum_completes_when_enough_agree(served: Served, people: People) -> None:
    run, [visit] = asking(served, assign={"groups": ["board"], "quorum": {"of": 3, "accept": 2}})
    board = [someone(served, people, name, "board") for name in ("una", "vic", "wim")]
    gate = board[0].post(f"/gates/{run}/{visit}/answer", {"data": {"ok": True}})
    assert (gate["status"], gate["answered"], gate["answers"][0]["by"]) == ("open", 1, "una")
    assert board[0].post(f"/gates/{run}/{visit}/answer", {"data": {"ok": True}})["answered"] == 1
    assert "answered by una" in board[0].post(f"/gates/{run}/{visit}/answer", {"data": 2}, status=409)["detail"]
    assert board[1].post(f"/gates/{run}/{visit}/answer", {"data": {"ok": False}})["answered"] == 2
    assert [item["answered"] for item in served.as_("viewer").get(f"/gates?run={run}")["items"]] == [2]
    gate = board[2].post(f"/gates/{run}/{visit}/answer", {"data": {"ok": True}})
    assert (gate["status"], gate["answer"]["data"], gate["answered"]) == ("completed", {"ok": True}, 3)


def test_people_who_cannot_agree_fail_the_run(served: Served, people: People) -> None:
    run, [visit] = asking(served, assign={"groups": ["board"], "quorum": {"of": 2, "accept": 2}})
    someone(served, people, "una", "board").post(f"/gates/{run}/{visit}/answer", {"data": 1})
    gate = someone(served, people, "vic", "board").post(f"/gates/{run}/{visit}/answer", {"data": 2})
    assert (gate["status"], gate["answer"]) == ("closed", None)
    over = served.as_("viewer").get(f"/runs/{run}")
    assert (over["status"], over["error"]["kind"]) == ("failed", "QUORUM_UNREACHABLE")


def test_lists_by_people_words_and_place(served: Served, people: People) -> None:
    run, visits = asking(served, nodes=5, assign={"users": ["zoe"]}, due_ms=3_600_000)
    zoe = someone(served, people, "zoe")
    mine = zoe.get("/gates?mine=true")["items"]
    assert [item["visit"] for item in mine if item["run"] == run] == visits
    assert someone(served, people, "eve", "sales").get(f"/gates?mine=true&run={run}")["items"] == []
    for found in (f"/gates?assignee=zoe&run={run}", f"/gates?node=sign&run={run}", f"/gates?run={run}&text=SIGN"):
        assert len(zoe.get(found)["items"]) == 5, found
    for empty in (f"/gates?run={run}&overdue=true", f"/gates?run={run}&text=nothing", f"/gates?run={run}&node=a"):
        assert zoe.get(empty)["items"] == [], empty
    [counted] = zoe.get(f"/gates?run={run}&by=node")["items"]
    assert (counted["node"], counted["count"], counted["overdue"]) == ("sign", 5, 0)
    walked, cursor = [], ""
    while cursor is not None:
        page = zoe.get(f"/gates?run={run}&limit=2{f'&cursor={cursor}' if cursor else ''}")
        walked += [item["visit"] for item in page["items"]]
        cursor = page["next"]
    assert walked == visits
    assert zoe.api("GET", f"/gates?limit=2&cursor={'x' * 30}").status == 400
    assert zoe.api("GET", "/gates?limit=0").status == 400
    assert zoe.api("GET", "/gates?mine=perhaps").status == 400


def test_many_gates_are_answered_at_once(served: Served) -> None:
    run, visits = asking(served, nodes=3)
    gates = [*({"run": run, "visit": visit} for visit in visits), {"run": run, "visit": 99}, {"run": "no", "visit": 1}]
    results = served.as_("approver").post("/gates/answer", {"gates": gates, "data": {"ok": True}}, status=200)[
        "results"
    ]
    assert [result["ok"] for result in results] == [True, True, True, False, False]
    assert [result.get("problem", {}).get("code") for result in results[3:]] == ["NOT_FOUND", "NOT_FOUND"]
    again = served.as_("approver").post("/gates/answer", {"gates": gates[:1], "data": {"ok": False}})["results"]
    assert again[0]["problem"]["status"] == 409
    assert {"type", "title", "code", "detail", "request_id"} <= set(again[0]["problem"]), "a whole problem document"


def test_a_key_for_some_workflows_sees_only_their_gates(served: Served) -> None:
    run, [visit] = asking(served)
    other, [hidden] = asking(served)
    workflow = served.as_("viewer").get(f"/runs/{run}")["workflow"]
    limited = Caller(served.url, served.new_key("limited", "--role", "approver", "--workflow", workflow))
    assert [item["run"] for item in limited.get("/gates")["items"]] == [run]
    assert limited.api("GET", f"/gates/{other}/{hidden}").status == 404
    gates = [{"run": other, "visit": hidden}, {"run": run, "visit": visit}]
    results = limited.post("/gates/answer", {"gates": gates, "data": 1})["results"]
    assert [(result["ok"], result.get("problem", {}).get("code")) for result in results] == [
        (False, "NOT_FOUND"),
        (True, None),
    ]
    assert served.as_("viewer").get(f"/gates/{other}/{hidden}")["status"] == "open"


def test_comments_carry_attachments(served: Served) -> None:
    run, [visit] = asking(served, description="**Read** this", form={"type": "object"})
    png = b"\x89PNG\r\n\x1a\n" + bytes(2_000)
    path = f"/runs/{run}/artifacts/photo.png"
    put = served.as_("approver").api("PUT", path, png, {"Content-Type": "image/png"})
    assert (put.status, put.headers["location"]) == (201, f"/api/v1{path}")
    assert served.as_("approver").api("PUT", path, png, {"Content-Type": "image/png"}).status == 200
    assert served.as_("viewer").api("PUT", path, png, {"Content-Type": "image/png"}).status == 403
    missing = served.as_("approver").post(
        f"/gates/{run}/{visit}/comment", {"text": "x", "attachments": ["no"]}, status=404
    )
    assert "upload it first" in missing["detail"]
    served.as_("approver").post(f"/gates/{run}/{visit}/comment", {"text": "see", "attachments": ["photo.png"]})
    gate = served.as_("viewer").get(f"/gates/{run}/{visit}")
    assert [(said["text"], said["by"], said["attachments"]) for said in gate["comments"]] == [
        ("see", "approver", ["photo.png"])
    ]
    assert (gate["attachments"][0]["size"], gate["commented"], gate["description"]) == (len(png), 1, "**Read** this")
    assert gate["can"] == ["answer", "claim", "release", "delegate", "comment"]
    [item] = served.as_("viewer").get(f"/runs/{run}/artifacts")["items"]
    assert (item["name"], item["by"], item["content_type"]) == ("photo.png", "approver", "image/png")


def test_a_comment_with_an_idempotency_key_counts_once(served: Served) -> None:
    run, [visit] = asking(served)
    for _ in range(2):
        served.as_("approver").api(
            "POST", f"/gates/{run}/{visit}/comment", {"text": "hm"}, {"Idempotency-Key": f"c-{run}"}
        )
    assert served.as_("viewer").get(f"/gates/{run}/{visit}")["commented"] == 1


@pytest.mark.parametrize(
    ("kind", "inline"), [("image/png", True), ("text/plain", True), ("text/html", False), ("image/svg+xml", False)]
)
def test_only_harmless_types_are_shown_inline(served: Served, kind: str, inline: bool) -> None:
    run, _ = asking(served)
    path = f"/runs/{run}/artifacts/{'%C3%A4%20%22x%22'}"
    served.as_("approver").api("PUT", path, b"<script>alert(1)</script>", {"Content-Type": kind})
    reply = served.as_("viewer").api("GET", path)
    assert reply.headers["content-type"].startswith(kind)
    assert reply.headers["content-disposition"].startswith("inline" if inline else "attachment")
    assert "sandbox" in reply.headers["content-security-policy"]
    assert reply.headers["x-content-type-options"] == "nosniff"


def test_parts_of_an_artifact_are_read_by_range(served: Served) -> None:
    run, _ = asking(served)
    path = f"/runs/{run}/artifacts/bytes"
    content = bytes(range(100)) * 30
    served.as_("approver").api("PUT", path, content, {"Content-Type": "application/octet-stream"})
    ranges = {
        "bytes=0-9": content[:10],
        "bytes=2990-": content[2990:],
        "bytes=-5": content[-5:],
        "bytes=1000-9000": content[1000:],
    }
    for asked, expected in ranges.items():
        reply = served.as_("viewer").api("GET", path, headers={"Range": asked, "Accept-Encoding": "gzip"})
        assert (reply.status, reply.raw) == (206, expected), asked
    assert (
        served.as_("viewer").api("GET", path, headers={"Range": "bytes=0-9"}).headers["content-range"]
        == "bytes 0-9/3000"
    )
    assert served.as_("viewer").api("GET", path, headers={"Range": "bytes=3000-"}).status == 416
    assert served.as_("viewer").api("GET", path, headers={"Range": "lines=1-2"}).raw == content
    etag = served.as_("viewer").api("GET", path).headers["etag"]
    assert served.as_("viewer").api("GET", path, headers={"If-None-Match": etag}).status == 304
    assert served.as_("viewer").api("GET", f"/runs/{run}/artifacts/none").status == 404
