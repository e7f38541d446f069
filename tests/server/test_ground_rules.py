"""5.1: bodies, refusals, idempotency keys, and a stop in good order."""

from __future__ import annotations

import gzip
import json
import signal
from concurrent.futures import ThreadPoolExecutor
from typing import Any, get_args
from uuid import uuid4

import msgspec
import pytest

from tests.server.client import Served
from treadle.server.table import all_routes

NAP = """
workflow: {name}
nodes:
  nap:
    action: {{kind: wait, ms: {ms}}}
"""
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def flow() -> str:
    return f"ground/{uuid4().hex[:8]}"


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b'{"workflow": "a", "workflow": "b"}', "'workflow' is there twice"),
        (b'{"workflow": NaN}', "NaN is no JSON number"),
        (b'{"workflow": "a", "input": 1e999}', "out of range"),
        (b'{"workflow": ' + b"[" * 101 + b"]" * 101 + b"}", "nested deeper than 100"),
        (b"[" * 1_000_000, "nested deeper than 100"),
        (b'{"input": ' + b"9" * 500 + b"}", "more than 400 digits"),
        (b'{"workflow": "\xff"}', "not UTF-8"),
        (b'{"workflow": "\\ud800"}', "half of a surrogate pair"),
        (b'{"workflow": "a"', "no JSON"),
        (b"[]", "must be an object"),
        (b'{"workflow": "a", "input": {}, "inptu": {}, "x": 1}', "unknown fields: inptu, x"),
        (b'{"workflow": 7}', "Expected `str`, got `int` at $.workflow"),
        (b"{}", "workflow"),
    ],
)
def test_a_body_that_cannot_be_understood_names_what_is_wrong(served: Served, body: bytes, says: str) -> None:
    reply = served.as_("operator").api("POST", "/runs", body, JSON)
    assert (reply.status, reply.json["code"]) == (400, "BAD_REQUEST"), reply
    assert says in reply.json["detail"]


@pytest.mark.parametrize(
    ("body", "place", "detail"),
    [
        ({"workflow": "a", "inptu": {}}, "$.inptu", "unknown field: inptu"),
        ({"workflow": "a", "entity": {"type": "t", "id": "i", "x": 1}}, "$.entity.x", "unknown field: entity.x"),
        ({"workflow": "a", "entity": {"type": "t"}}, "$.entity.id", "missing field: entity.id"),
        ({}, "$.workflow", "missing field: workflow"),
        ({"workflow": "a", "tags": [1]}, "$.tags[0]", "Expected `str`, got `int` at $.tags[0]"),
    ],
)
def test_the_place_of_what_is_wrong_is_a_path(served_sqlite: Served, body: Any, place: str, detail: str) -> None:
    refused = served_sqlite.as_("operator").api("POST", "/runs", body).json
    assert (refused["place"], refused["detail"]) == (place, detail)
    diff = served_sqlite.as_("viewer").api("GET", "/runs/any/diff?from=1").json
    assert (diff["place"], diff["detail"]) == ("to", "missing parameter: to")


def test_unknown_parameters_are_refused_by_name(served_sqlite: Served) -> None:
    reply = served_sqlite.as_("viewer").api("GET", "/info?a=1&b=2")
    assert reply.status == 400
    assert "a, b" in reply.json["detail"]


def test_a_body_over_the_limit_is_refused_also_if_it_is_small_before_decompression(served_sqlite: Served) -> None:
    large = b'{"workflow": "' + b"x" * (1 << 20) + b'"}'
    assert served_sqlite.as_("operator").api("POST", "/runs", large, JSON).status == 413
    bomb = gzip.compress(b" " * (200 << 20), 9)
    reply = served_sqlite.as_("operator").api("POST", "/runs", bomb, {**JSON, "Content-Encoding": "gzip"})
    assert (reply.status, reply.json["code"]) == (413, "TOO_LARGE")


def test_another_media_type_is_refused_with_the_one_to_send(served_sqlite: Served) -> None:
    reply = served_sqlite.as_("operator").api("POST", "/runs", b"a=1", {"Content-Type": "text/plain"})
    assert (reply.status, reply.json["code"]) == (415, "MEDIA_TYPE")
    assert "application/json" in reply.json["remedy"]


def test_the_same_post_with_an_idempotency_key_gives_its_first_answer_again(served: Served, flow: str) -> None:
    served.deploy(NAP.format(name=flow, ms=1))
    key = {"Idempotency-Key": uuid4().hex}
    body = {"workflow": flow}
    first = served.as_("operator").api("POST", "/runs?wait_ms=20000", body, key)
    again = served.as_("operator").api("POST", "/runs?wait_ms=20000", body, key)
    assert first.status == again.status == 201
    assert first.raw == again.raw
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    assert again.headers["location"] == first.headers["location"]
    other = served.as_("operator").api("POST", "/runs?wait_ms=20000", {"workflow": flow, "input": {"a": 1}}, key)
    assert (other.status, other.json["code"]) == (422, "IDEMPOTENCY_MISMATCH")


def test_a_refusal_is_given_again_too(served: Served) -> None:
    key = {"Idempotency-Key": uuid4().hex}
    first = served.as_("operator").api("POST", "/runs", {"workflow": "not/there"}, key)
    again = served.as_("operator").api("POST", "/runs", {"workflow": "not/there"}, key)
    assert first.status == again.status == 404
    assert again.headers["idempotency-replayed"] == "true"
    assert again.headers["content-type"] == "application/problem+json"


def test_one_key_of_two_callers_names_two_requests(served: Served, flow: str) -> None:
    served.deploy(NAP.format(name=flow, ms=1))
    key = {"Idempotency-Key": uuid4().hex}
    runs = {
        json.loads(served.as_(role).api("POST", "/runs", {"workflow": flow, "key": uuid4().hex}, key).raw)["run"]
        for role in ("operator", "admin")
    }
    assert len(runs) == 2


def test_posts_with_one_key_at_the_same_moment_start_one_run(served: Served, flow: str) -> None:
    served.deploy(NAP.format(name=flow, ms=1))
    key = {"Idempotency-Key": uuid4().hex}
    with ThreadPoolExecutor(8) as pool:
        replies = list(
            pool.map(lambda _: served.as_("operator").api("POST", "/runs", {"workflow": flow}, key), range(16))
        )
    assert {reply.status for reply in replies} <= {200, 201, 409}
    assert len({reply.json["run"] for reply in replies if reply.status in (200, 201)}) == 1
    assert {reply.json["code"] for reply in replies if reply.status == 409} <= {"IDEMPOTENCY_IN_PROGRESS"}


def test_a_known_run_key_answers_with_its_run_or_names_the_difference(served: Served, flow: str) -> None:
    served.deploy(NAP.format(name=flow, ms=1))
    operator, key = served.as_("operator"), uuid4().hex
    first = operator.api("POST", "/runs", {"workflow": flow, "key": key, "input": {"a": 1}})
    again = operator.api("POST", "/runs", {"workflow": flow, "key": key, "input": {"a": 1}})
    other = operator.api("POST", "/runs", {"workflow": flow, "key": key, "input": {"a": 2}})
    assert (first.status, again.status) == (201, 200)
    assert first.json["run"] == again.json["run"]
    assert (other.status, other.json["code"]) == (409, "DUPLICATE")
    assert first.json["run"] in other.json["detail"]


@pytest.mark.parametrize("size", [1, 2])
def test_the_key_of_an_item_answers_with_its_batch_or_names_the_difference(
    served: Served, flow: str, size: int
) -> None:
    served.deploy(f"workflow: {flow}\nbatch: {{size: {size}, within_ms: 60000}}\nnodes: {{a: {{}}}}\n")
    operator, keys = served.as_("operator"), [uuid4().hex for _ in range(size)]
    bodies = [{"workflow": flow, "key": key, "input": {"a": number}} for number, key in enumerate(keys)]
    first = [operator.api("POST", "/runs?wait_ms=5000" if body is bodies[-1] else "/runs", body) for body in bodies]
    again = [operator.api("POST", "/runs", body) for body in bodies]
    other = [operator.api("POST", "/runs", {**body, "input": {"a": 9}}) for body in bodies]
    assert first[-1].json["status"] == "completed", "the batch is not queued any more"
    assert {reply.json["run"] for reply in (*first, *again)} == {first[0].json["run"]}
    assert [reply.status for reply in again] == [200] * size
    assert [(reply.status, reply.json["code"]) for reply in other] == [(409, "DUPLICATE")] * size


def test_a_service_that_is_stopped_says_so_until_work_in_hand_has_ended(own_service: Served) -> None:
    with own_service as service:
        service.deploy(NAP.format(name="nap", ms=60_000))
        with ThreadPoolExecutor(1) as pool:
            body = {"workflow": "nap", "key": "one"}
            waiting = pool.submit(service.as_("operator").api, "POST", "/runs?wait_ms=60000", body)
            assert service.as_("operator").api("POST", "/runs", body).status in (200, 201)
            assert service.process is not None
            service.process.send_signal(signal.SIGTERM)
            reply = waiting.result(30)
            assert (reply.status, reply.json["code"]) in {(503, "DRAINING"), (503, "NO_ENGINE")}
            assert service.process.wait(30) == 0
    assert "stopped" in service.said()


def test_an_address_that_is_taken_is_named(own_service: Served) -> None:
    with own_service as service:
        done = service.run("serve", "--port", str(service.port))
        assert done.returncode == 5
        assert "choose another --port" in done.stderr


def test_a_port_that_does_not_exist_is_a_wrong_option(own_service: Served) -> None:
    done = own_service.run("serve", "--port", "65536")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--port 65536" in done.stderr


def test_a_request_that_could_not_be_read_is_refused_again_in_the_same_words(served: Served) -> None:
    """Every 4xx that speaks of the request itself is kept: a key that was used stays used."""
    operator = served.as_("operator")
    for body, media_type, status in (
        (b'{"workflow": "a", "bad": 1}', "application/json", 400),
        (b"{", "application/json", 400),
        (b"workflow: a", "text/plain", 415),
    ):
        sent = {"Content-Type": media_type, "Idempotency-Key": uuid4().hex}
        first, again = (operator.api("POST", "/runs", body, sent) for _ in range(2))
        assert (first.status, again.status, again.raw) == (status, status, first.raw)
        assert "idempotency-replayed" not in first.headers
        assert again.headers["idempotency-replayed"] == "true"
        other = operator.api("POST", "/runs", {"workflow": "b"}, {"Idempotency-Key": sent["Idempotency-Key"]})
        assert (other.status, other.json["code"]) == (422, "IDEMPOTENCY_MISMATCH")


@pytest.mark.parametrize(
    "text",
    ["a: [", "a: 1\na: 2\n", "workflow: a\nnodes: {a: {action: {kind: set, values: {x: .nan}}}}\n", "\tx: 1"],
)
@pytest.mark.parametrize("path", ["/workflows", "/workflows/validate"])
def test_a_text_that_is_no_yaml_cannot_be_understood(served_sqlite: Served, path: str, text: str) -> None:
    reply = served_sqlite.as_("author").api("POST", path, text.encode(), {"Content-Type": "application/yaml"})
    assert (reply.status, reply.json["code"]) == (400, "BAD_REQUEST")
    assert reply.json["problems"][0]["line"] >= 1


def test_a_body_of_a_hundred_levels_is_read_and_its_input_runs(served: Served) -> None:
    name = f"ground/{uuid4().hex[:8]}"
    served.deploy(f"workflow: {name}\nnodes: {{a: {{}}}}\noutput: {{got: $.input}}\n")
    body = b'{"workflow": "%s", "input": {"a": %s}}' % (name.encode(), b"[" * 98 + b"]" * 98)
    reply = served.as_("operator").api("POST", "/runs?wait_ms=30000", body, JSON)
    assert (reply.status, reply.json["status"]) == (201, "completed"), reply
    assert reply.json["output"]["got"] == reply.json["input"] == json.loads(body)["input"]


def test_the_answer_to_a_start_has_the_input_of_the_run(served: Served) -> None:
    name = f"ground/{uuid4().hex[:8]}"
    served.deploy(f"workflow: {name}\nnodes: {{a: {{}}}}\n")
    operator = served.as_("operator")
    assert operator.post("/runs", {"workflow": name, "input": {"n": 1}, "key": "k"})["input"] == {"n": 1}
    assert operator.post("/runs", {"workflow": name, "input": {"n": 1}, "key": "k"}, status=200)["input"] == {"n": 1}
    assert operator.post("/runs", {"workflow": name})["input"] == {}


def test_gzip_is_sent_only_to_those_who_take_it(served_sqlite: Served) -> None:
    viewer = served_sqlite.as_("viewer")
    for accepted, is_sent in (("gzip", True), ("br, GZIP;q=0.5", True), ("gzip;q=0", False), ("identity", False)):
        reply = viewer.api("GET", "/openapi.json", headers={"Accept-Encoding": accepted})
        assert ("content-encoding" in reply.headers) == is_sent, accepted


def test_a_filter_with_an_unknown_field_reaches_no_run(served: Served) -> None:
    name = f"ground/{uuid4().hex[:8]}"
    served.deploy(NAP.format(name=name, ms=3_600_000))
    operator = served.as_("operator")
    run = operator.post("/runs", {"workflow": name})["run"]
    for path, body in (
        ("/runs/batch", {"action": "cancel", "filter": {"workflw": name}}),
        ("/migrations", {"to": 1, "filter": {"workflow": name, "statuses": ["running"]}}),
        ("/gates/answer", {"gates": [{"run": run, "visit": 1, "node": "nap"}], "data": {}}),
    ):
        reply = served.as_("admin").api("POST", path, body)
        assert (reply.status, reply.json["code"]) == (400, "BAD_REQUEST"), reply
        assert any(word in reply.json["detail"] for word in ("workflw", "statuses", "node"))
    assert operator.get(f"/runs/{run}")["status"] == "running"
    done = operator.post("/runs/batch", {"action": "cancel", "filter": {"text": run[:-1], "status": "running"}})
    assert done["results"] == [{"run": run, "ok": True}]


def test_every_object_in_a_body_refuses_fields_it_does_not_know() -> None:
    """The door looks at the outermost object; those inside must be strict themselves."""
    loose = []
    for route in all_routes():
        kinds = [route.body] if route.body not in (None, bytes) else []
        for inner in [field.type for kind in kinds if is_struct(kind) for field in msgspec.structs.fields(kind)]:
            loose += [kind for kind in structs_in(inner) if not kind.__struct_config__.forbid_unknown_fields]
    assert loose == []


def is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def structs_in(kind: Any) -> list[Any]:
    """The Structs in a type, those in their fields included."""
    inner = [field.type for field in msgspec.structs.fields(kind)] if is_struct(kind) else get_args(kind)
    return ([kind] if is_struct(kind) else []) + [found for part in inner for found in structs_in(part)]
