"""Ingress hooks over HTTP, from outside: signatures, rules, keys, the log of deliveries and its replays."""

from __future__ import annotations

import hashlib
import json
import threading
from typing import Any

import pytest

from tests.server.client import Caller, Connected, Reply
from tests.server.hooked import BODY, FLOW, SECRET, Hooked, generic


def test_rules_read_the_delivery(connected: Connected) -> None:
    hooked = Hooked(
        connected,
        "rules",
        input={
            "name": "$.body.who.name",
            "event": "$.headers.x-event",
            "page": "$.query.page",
            "twice": {"cel": "body.id * 2"},
            "hook": "$.delivery.hook",
            "fixed": "yes",
        },
        when="body.kind == 'opened'",
        respond="result",
    )
    reply = hooked.deliver(headers={**generic(BODY), "X-Event": "issue", "Authorization": "Bearer x"}, query="?page=2")
    assert (reply.status, reply.json["status"]) == (200, "completed")
    assert reply.json["output"] == {
        "got": {"name": "Ann", "event": "issue", "page": "2", "twice": 14, "hook": "rules", "fixed": "yes"}
    }
    closed = b'{"id": 7, "kind": "closed"}'
    unwanted = hooked.deliver(closed)
    assert (unwanted.status, list(unwanted.json)) == (202, ["delivery"])
    failing = b'{"id": "x", "kind": "opened"}'
    refused = hooked.deliver(failing)
    assert (refused.status, refused.json["code"]) == (422, "SCHEMA")
    kept = hooked.deliveries()[-1]
    assert "authorization" not in kept["headers"]
    assert (kept["text"], kept["digest"]) == (BODY.decode(), hashlib.sha256(BODY).hexdigest())


def test_a_form_is_an_object_of_texts_and_other_bodies_are_text(connected_sqlite: Connected) -> None:
    hooked = Hooked(connected_sqlite, "forms", source="none", secret=None, input={"body": "$.body"}, respond="result")
    forms = {
        b"a=1&b=x+y&c=": ("application/x-www-form-urlencoded", {"a": "1", "b": "x y", "c": ""}),
        b"hello": ("text/plain", "hello"),
        b"[1, 2]": ("application/json", [1, 2]),
        b'{"a": 1}': ("application/vnd.x+json; charset=utf-8", {"a": 1}),
    }
    for body, (media_type, seen) in forms.items():
        reply = hooked.deliver(body, {"Content-Type": media_type})
        assert reply.json["output"] == {"got": {"body": seen}}, reply
    assert hooked.deliver(b"{", {}).json["code"] == "BAD_REQUEST"


def test_without_a_mapping_the_body_is_the_input(connected_sqlite: Connected) -> None:
    hooked = Hooked(connected_sqlite, "whole", respond="result")
    assert hooked.deliver().json["output"] == {"got": json.loads(BODY)}


def test_who_waits_for_the_result_and_delivers_again_gets_it_again(connected_sqlite: Connected) -> None:
    hooked = Hooked(connected_sqlite, "result-again", key="$.body.id", respond="result")
    first, again = hooked.deliver(), hooked.deliver()
    assert (first.status, again.status) == (200, 200)
    assert again.json["delivery"] > first.json["delivery"]
    assert {**again.json, "delivery": 0} == {**first.json, "delivery": 0}
    assert first.json["output"] == {"got": json.loads(BODY)}


def test_a_key_counts_once_per_hook(connected: Connected) -> None:
    hooked = Hooked(connected, "keyed", key="$.body.id")
    other = Hooked(connected, "keyed-too", key="$.body.id")
    first, again = hooked.deliver(), hooked.deliver(b'{"id": 7, "kind": "other"}')
    assert (first.status, again.status) == (202, 200)
    assert again.json["run"] == first.json["run"]
    assert other.deliver().json["run"] != first.json["run"]
    missing = hooked.deliver(b"{}")
    assert (missing.status, missing.json["code"]) == (422, "SCHEMA")
    connected.deploy(FLOW.format(name="keyed-later"))
    connected.as_("author").api(
        "PUT", "/hooks/keyed", {"source": "generic", "workflow": "keyed-later", "key": "$.body.id"}
    )
    later = hooked.deliver()
    assert (later.status, later.json["run"]) == (200, first.json["run"]), "also when the hook starts something else now"


def test_twenty_deliveries_with_one_key_at_the_same_moment_start_one_run(connected: Connected) -> None:
    hooked = Hooked(connected, "racing", key="$.body.id")
    replies: list[Reply] = []
    threads = [threading.Thread(target=lambda: replies.append(hooked.deliver())) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(reply.status for reply in replies) == [200] * 19 + [202]
    assert len({reply.json["run"] for reply in replies}) == 1


def test_a_hook_names_the_entity_of_its_run(connected_sqlite: Connected) -> None:
    entity = {"type": "person", "id": "$.body.id", "name": "$.body.who.name", "attributes": {"kind": "$.body.kind"}}
    hooked = Hooked(connected_sqlite, "about", entity=entity)
    run = hooked.deliver().json["run"]
    assert connected_sqlite.as_("viewer").get(f"/runs/{run}")["entity"] == "person/7"


def test_a_hook_signals_the_runs_that_wait(connected: Connected) -> None:
    connected.deploy(
        "workflow: waits-for-payment\nnodes: {pay: {action: {kind: signal, name: paid, key: $.input.order}}}\n"
    )
    start = {"workflow": "waits-for-payment", "input": {"order": "A"}}
    run = connected.as_("operator").post("/runs", start)["run"]
    connected.as_("operator").post("/runs", {**start, "input": {"order": "B"}})
    given = {"name": "paid", "key": "$.body.order"}
    hooked = Hooked(connected, "signals", workflow=None, signal=given, key="$.body.id", source="none", secret=None)
    body = b'{"id": 1, "order": "A", "amount": 3}'
    first, again = hooked.deliver(body, {}), hooked.deliver(body, {})
    assert (first.status, first.json["runs"], again.status, again.json["runs"]) == (202, [run], 200, [run])
    nobody = hooked.deliver(b'{"id": 2, "order": "C"}', {})
    assert (nobody.status, nobody.json["runs"]) == (202, [])


def test_a_delivery_can_be_replayed_unless_its_signature_was_refused(connected: Connected) -> None:
    hooked = Hooked(connected, "replayed", input={"n": {"cel": "body.n + 1"}})
    author = connected.as_("author")
    refused = hooked.deliver(b'{"n": "x"}')
    assert refused.status == 422
    forged = hooked.deliver(headers={})
    assert forged.status == 401
    newest, first = hooked.deliveries()
    reply = author.api("POST", f"/hooks/replayed/deliveries/{newest['id']}/replay")
    assert (reply.status, reply.json["code"]) == (409, "INVALID_STATE")
    author.api("PUT", "/hooks/replayed", {"source": "generic", "workflow": "replayed", "input": {"n": "$.body.n"}})
    again = author.api("POST", f"/hooks/replayed/deliveries/{first['id']}/replay")
    assert again.status == 202, again
    assert hooked.deliveries()[0]["replay_of"] == first["id"]
    assert author.api("POST", "/hooks/replayed/deliveries/999999/replay").status == 404


def test_a_secret_is_never_read_back_and_stays_when_a_hook_is_replaced(connected: Connected) -> None:
    hooked = Hooked(connected, "secretive")
    author = connected.as_("author")
    shown = author.get("/hooks/secretive")
    assert shown["has_secret"] is True
    assert SECRET not in json.dumps([shown, author.get("/hooks")])
    again = author.api("PUT", "/hooks/secretive", {"source": "generic", "workflow": "secretive", "when": "true"})
    assert again.status == 200
    assert hooked.deliver().status == 202
    changed = author.api("PUT", "/hooks/secretive", {"source": "github", "workflow": "secretive"})
    assert (changed.status, changed.json["code"]) == (400, "BAD_REQUEST"), "another scheme needs its secret"
    if not connected.store.startswith("postgres"):
        from pathlib import Path

        for file in Path(connected.store).parent.glob("treadle.db*"):
            assert SECRET.encode() not in file.read_bytes()


@pytest.mark.parametrize(
    ("fields", "status", "said"),
    [
        ({"source": "gitlab"}, 400, "source"),
        ({"source": "generic", "secret": None}, 400, "secret"),
        ({"source": "standard", "secret": "not base64!"}, 400, "whsec_"),
        ({"source": "none"}, 400, "no secret"),
        ({"workflow": None}, 400, "workflow"),
        ({"signal": {"name": "x"}}, 400, "one of them"),
        ({"when": "body.kind =="}, 422, "when"),
        ({"when": {"type": "compare"}}, 422, "when"),
        ({"input": {"a": "$.body["}}, 422, "input.a"),
        ({"key": {"cel": "nobody.knows"}}, 422, "key"),
        ({"key": "body.id"}, 400, "$.body.id"),
        ({"entity": {"type": "lead", "id": "body.mail"}}, 400, "$.body.mail"),
        ({"respond": "never"}, 400, "respond"),
        ({"colour": "blue"}, 400, "colour"),
    ],
    ids=str,
)
def test_a_hook_that_cannot_work_is_refused_with_the_place(
    connected_sqlite: Connected, fields: dict[str, Any], status: int, said: str
) -> None:
    given = {"source": "generic", "secret": SECRET, "workflow": "w", **fields}
    body = {name: value for name, value in given.items() if value is not None}
    reply = connected_sqlite.as_("author").api("PUT", "/hooks/wrong", body)
    assert reply.status == status, reply
    assert said in json.dumps(reply.json)
    assert connected_sqlite.as_("author").api("GET", "/hooks/wrong").status == 404


def test_hooks_are_listed_shown_and_removed_and_their_addresses_end(connected: Connected) -> None:
    hooked = Hooked(connected, "short-lived")
    author = connected.as_("author")
    assert "short-lived" in [hook["slug"] for hook in author.get("/hooks")["items"]]
    assert author.api("DELETE", "/hooks/short-lived").status == 204
    assert author.api("DELETE", "/hooks/short-lived").status == 404
    assert hooked.deliver().status == 404
    assert Caller(connected.url, None)("POST", "/hooks/..%2fx", b"{}").status == 404
    assert connected.as_("viewer").api("GET", "/hooks").status == 403


def test_a_delivery_that_its_process_did_not_survive_is_replayed_once(tmp_path: Any) -> None:
    """The process is stopped before the effect of a delivery: it is in the log, without an outcome. Replayed twice, it
    has had its effect once."""
    service = Connected(str(tmp_path / "treadle.db"), tmp_path)
    with service:
        hooked = Hooked(service, "crashing")
        hooked.deliver()
    from tests.server.crashing import write_delivery

    id = write_delivery(service.store, "crashing", BODY, generic(BODY))
    forged = write_delivery(service.store, "crashing", BODY, {})
    with service:
        author = service.as_("author")
        first = author.api("POST", f"/hooks/crashing/deliveries/{id}/replay")
        assert first.status == 202, first
        assert author.api("POST", f"/hooks/crashing/deliveries/{forged}/replay").json["code"] == "UNAUTHENTICATED"
        outcomes = {one["id"]: one["outcome"] for one in hooked.deliveries()}
        assert outcomes[id]["run"] == first.json["run"]
        assert hooked.runs() == 2
