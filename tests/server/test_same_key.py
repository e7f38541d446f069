"""5.1: requests that come twice, at the same moment, at two nodes, or after the first server has died."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest

from tests.server.client import Caller, Reply, Served
from tests.server.test_app_in_process import asked
from treadle.runtime.engine import Engine
from treadle.runtime.service.records import Records
from treadle.server import app
from treadle.store.memory import MemoryStore

ASKS = "workflow: {name}\nnodes: {{ask: {{action: {{kind: human}}}}}}\n"
AT_ONCE = 8
JSON = {"Content-Type": "application/json"}


@pytest.fixture
def flow(served: Served) -> str:
    name = f"same/{uuid4().hex[:10]}"
    served.deploy(ASKS.format(name=name))
    return name


def start(caller: Caller, flow: str, **more: Any) -> Reply:
    return caller.api("POST", "/runs", {"workflow": flow, **more})


def test_of_starts_with_one_key_at_the_same_moment_one_makes_the_run(served: Served, flow: str) -> None:
    operator = served.as_("operator")
    for key in ("first", "second", "third"):
        with ThreadPoolExecutor(AT_ONCE) as pool:
            replies = list(pool.map(lambda _, key=key: start(operator, flow, key=key), range(AT_ONCE)))
        assert sorted(reply.status for reply in replies) == [200] * (AT_ONCE - 1) + [201]
        assert len({reply.json["run"] for reply in replies}) == 1


def test_of_starts_with_one_key_and_two_inputs_at_the_same_moment_one_is_refused(served: Served, flow: str) -> None:
    operator = served.as_("operator")
    with ThreadPoolExecutor(AT_ONCE) as pool:
        replies = list(
            pool.map(lambda number: start(operator, flow, key="k", input={"odd": number % 2}), range(AT_ONCE))
        )
    (made,) = [reply.json for reply in replies if reply.status == 201]
    for number, reply in enumerate(replies):
        is_same = made["input"] == {"odd": number % 2}
        assert reply.status in ((200, 201) if is_same else (409,)), reply
        assert is_same or reply.json["code"] == "DUPLICATE"


def test_true_is_another_input_than_one(served: Served, flow: str) -> None:
    operator, key = served.as_("operator"), uuid4().hex
    run = start(operator, flow, key=key, input={"a": [1]}).json["run"]
    for value, status in ((1, 200), (1.0, 200), (True, 409)):
        again = start(operator, flow, key=key, input={"a": [value]})
        assert again.status == status, again
    operator.post(f"/runs/{run}/fork", {"at": 2, "key": "one", "changes": {"input": 1}})
    refused = operator.post(f"/runs/{run}/fork", {"at": 2, "key": "one", "changes": {"input": True}}, status=409)
    assert "other changes" in refused["detail"]


def test_the_key_of_a_fork_gives_that_fork_again_or_names_the_difference(served: Served, flow: str) -> None:
    operator = served.as_("operator")
    run, other = (start(operator, flow).json["run"] for _ in range(2))
    forked = operator.post(f"/runs/{run}/fork", {"at": 2, "key": "f", "changes": {"input": {"a": 1}}})
    assert operator.post(f"/runs/{run}/fork", {"at": 2, "key": "f", "changes": {"input": {"a": 1}}}) == forked
    for origin, body, says in (
        (run, {"at": 2, "changes": {"input": {"a": 2}}}, "other changes"),
        (run, {"at": 2}, "other changes"),
        (other, {"at": 2, "changes": {"input": {"a": 1}}}, "no fork of run"),
    ):
        refused = operator.post(f"/runs/{origin}/fork", {"key": "f", **body}, status=409)
        assert (refused["code"], says in refused["detail"]) == ("DUPLICATE", True), refused
    operator.post(f"/runs/{run}/pause")
    last = operator.get(f"/runs/{run}")["seq"]
    refused = operator.post(f"/runs/{run}/fork", {"at": last, "key": "f", "changes": {"input": {"a": 1}}}, status=409)
    assert "forked at event" in refused["detail"]


def test_no_body_and_an_empty_one_are_the_same_request(served: Served, flow: str) -> None:
    operator, key = served.as_("operator"), {"Idempotency-Key": uuid4().hex}
    path = f"/runs/{start(operator, flow).json['run']}/pause"
    replies = [operator.api("POST", path, body, {**JSON, **key}) for body in (None, b"{}", None)]
    assert [reply.status for reply in replies] == [200, 200, 200]
    assert [reply.headers.get("idempotency-replayed") for reply in replies] == [None, "true", "true"]


def test_a_refusal_of_what_is_there_already_is_given_again(served: Served) -> None:
    operator, key = served.as_("operator"), {"Idempotency-Key": uuid4().hex}
    record = {"type": "same", "id": uuid4().hex}
    operator.post("/entities", record)
    replies = [operator.api("POST", "/entities", record, key) for _ in range(2)]
    assert [reply.json["code"] for reply in replies] == ["DUPLICATE", "DUPLICATE"]
    assert replies[1].headers["idempotency-replayed"] == "true"


def test_a_start_whose_server_died_before_it_answered_gives_its_first_answer(own_service: Served) -> None:
    key, body = {"Idempotency-Key": "once"}, {"workflow": "dies"}
    with own_service as service:
        service.deploy(ASKS.format(name="dies"))
        with ThreadPoolExecutor(1) as pool:
            lost = pool.submit(lambda: service.as_("operator").api("POST", "/runs?wait_ms=50000", body, key))
            viewer = service.as_("viewer")
            while not (gates := viewer.get("/gates")["items"]):
                assert not lost.done()
            service.kill()
            assert lost.exception() is not None
        service.start()
        service.as_("approver").post(f"/gates/{gates[0]['run']}/{gates[0]['visit']}/answer", {"data": {}})
        again = service.as_("operator").api("POST", "/runs?wait_ms=50000", body, key)
        assert (again.status, again.json["run"]) == (201, gates[0]["run"])
        assert again.headers["idempotency-replayed"] == "true"


@pytest.mark.parametrize(
    ("path", "given"), [("keys", {"name": "n", "roles": ["viewer"]}), ("entities", {"type": "lead", "id": "ada"})]
)
def test_one_request_at_two_nodes_at_the_same_moment_has_one_answer(
    path: str, given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        really, both = Records.note, asyncio.Barrier(2)
        looked = 0

        async def note(self: Records, key: str) -> Any:
            """Neither node finds the note of the other when it looks for the first time."""
            nonlocal looked
            found, looked = await really(self, key), looked + 1
            if looked <= 2:
                await both.wait()
            return found

        monkeypatch.setattr(Records, "note", note)
        async with Engine(MemoryStore()) as engine:
            _, key = await engine.keys.create("a", ["admin"])
            nodes = [app(engine), app(engine)]
            replies = await asyncio.gather(
                *(asked(node, f"/api/v1/{path}", key, given, idempotency_key="once") for node in nodes)
            )
            assert [status for status, _ in replies] == [201, 201], replies
            assert json.loads(replies[0][1]) == json.loads(replies[1][1])

    asyncio.run(test())
