"""Webhook workers in a real engine, over real HTTP: what their answers mean, and what a dead one costs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from aiohttp import web
from msgspec.structs import replace

from tests.outside.peers import Answer, Handler, answering, peer, run
from tests.outside.test_in_engine import SETTINGS, deploy
from tests.runtime.executing import turns
from treadle.model.events import TokenDispatched
from treadle.runtime.deliver.courier import WebhookCourier
from treadle.runtime.engine import Engine

assert SETTINGS.outside is not None
NO_ADDRESS = replace(SETTINGS, outside=replace(SETTINGS.outside, public_url=None))
TWICE = {"retry_policy": {"max_attempts": 2, "initial_delay_ms": 1}}


def played(handler: Handler, settings: Any = SETTINGS, **node: Any) -> tuple[Any, list[Any], int]:
    """A run of one worker: how it ended, its history, and how often the worker was called."""

    async def whole() -> tuple[Any, list[Any], int]:
        async with peer(handler) as server, Engine(":memory:", settings=settings) as engine:
            action = {"kind": "webhook", "url": server.url, **node.pop("action", {})}
            task = {"steps": [{"ref": "call", "action": action}], **node.pop("task", {})}
            await deploy(engine, nodes={"a": {"task": task, **node}}, output={"got": "$.nodes.a.output"})
            started = await engine.start("w", {})
            ended = await started.wait(15)
            return ended, await started.history(), len(server.seen)

    return run(whole())


def done(output: Any) -> Handler:
    return answering(200, text=json.dumps({"output": output}), content_type="application/json")


def test_a_worker_that_answers_at_once_completes_the_node() -> None:
    for settings in (SETTINGS, NO_ADDRESS):
        ended, history, calls = played(done({"film": "x"}), settings)
        assert (ended.status, ended.output, calls) == ("completed", {"got": {"film": "x"}}, 1)
        assert "callback.received" in [event.type for event in history]


def test_an_answer_given_at_once_is_checked_like_a_callback() -> None:
    ended, _, calls = played(done({"film": 7}), task={"output_schema": {"properties": {"film": {"type": "string"}}}})
    assert (ended.status, ended.error.kind, calls) == ("failed", "SCHEMA", 1)


def test_without_a_public_url_a_worker_that_would_call_back_fails_the_attempt_with_the_remedy() -> None:
    ended, _, calls = played(answering(202), NO_ADDRESS, retry={"max_attempts": 3})
    assert (ended.status, ended.error.kind, calls) == ("failed", "TASK_FAILED", 1)
    assert "`public_url` under [webhooks] of treadle.toml" in ended.error.message


@pytest.mark.parametrize("status", [302, 404, 410])
def test_a_worker_that_refuses_is_not_asked_again(status: int) -> None:
    refuses = answering(status, headers={"Location": "http://127.0.0.1:1/"})
    ended, _, calls = played(refuses, retry={"max_attempts": 3})
    assert (ended.error.kind, ended.error.retryable, calls) == ("TASK_FAILED", False, 1)


def test_trouble_that_may_pass_is_tried_by_the_actions_policy_and_then_by_the_nodes() -> None:
    ended, _, calls = played(answering(503), action={"execution": TWICE}, retry={"max_attempts": 2})
    assert (ended.error.kind, ended.error.retryable, ended.error.attempts, calls) == ("TASK_FAILED", True, 2, 4)


def test_what_is_tried_by_the_actions_policy_is_one_attempt() -> None:
    answers = iter([answering(503), answering(429), done(1)])

    async def flaky(request: web.BaseRequest) -> Answer:
        return await next(answers)(request)

    policy = {"retry_policy": {"max_attempts": 3, "initial_delay_ms": 1}}
    ended, history, calls = played(flaky, action={"execution": policy})
    assert (ended.output, calls) == ({"got": 1}, 3)
    assert [event.attempt for event in history if event.type == "token.dispatched"] == [1]


def test_a_dead_worker_costs_its_neighbours_nothing() -> None:
    """Twenty branches of one run wait for a worker that is dead, and its breaker is open; one branch has another
    worker. That one is called at once, and nothing has counted against those that wait."""

    async def whole() -> None:
        async with (
            peer(done("dead no more")) as dead,
            peer(done("alive")) as alive,
            Engine(":memory:", settings=SETTINGS) as engine,
        ):
            courier = engine._core.outgoing._courier
            assert isinstance(courier, WebhookCourier)
            peers = courier._peers
            for _ in range(5):
                with pytest.raises(OSError):
                    async with peers.turn(f"127.0.0.1:{dead.port}"):
                        raise OSError("nobody is there")
            ask = {"kind": "webhook", "execution": TWICE}
            nodes = {
                "a": {},
                "dead": {"action": {**ask, "url": dead.url}},
                "alive": {"action": {**ask, "url": alive.url}, "output": {"output.said": "$"}},
            }
            many = {"id": "many", "from": "a", "to": "dead", "spawn_count": 20}
            await deploy(engine, nodes=nodes, transitions=[many, {"from": "a", "to": "alive"}])
            started = await engine.start("w", {})
            await _until(lambda: bool(alive.seen))
            assert dead.seen == []
            history = await started.history()
            assert "token.failed" not in [event.type for event in history]
            peers._peers[f"127.0.0.1:{dead.port}"].breaker.until = 0  # the pause is over
            peers._admit(peers._peers[f"127.0.0.1:{dead.port}"])
            assert (await started.wait(10)).status == "completed"
            assert len(dead.seen) == 20
            history = await started.history()
            assert {event.attempt for event in history if isinstance(event, TokenDispatched)} == {1}

    run(whole())


def test_a_visit_cancelled_while_its_worker_is_dead_is_not_sent_later() -> None:
    async def whole() -> None:
        async with peer(done(1)) as dead, Engine(":memory:", settings=SETTINGS) as engine:
            courier = engine._core.outgoing._courier
            assert isinstance(courier, WebhookCourier)
            name = f"127.0.0.1:{dead.port}"
            for _ in range(5):
                with pytest.raises(OSError):
                    async with courier._peers.turn(name):
                        raise OSError("nobody is there")
            await deploy(engine, nodes={"a": {"action": {"kind": "webhook", "url": dead.url}}})
            started = await engine.start("w", {})
            await _until(lambda: bool(courier._peers._peers[name].line))
            await started.cancel()
            courier._peers._peers[name].breaker.until = 0
            courier._peers._admit(courier._peers._peers[name])
            await engine._core.outgoing.wait_idle()
            assert dead.seen == []

    run(whole())


async def _until(holds: Any) -> None:
    while not holds():
        await turns(1)
