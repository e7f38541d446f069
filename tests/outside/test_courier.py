"""The courier against real receivers, with the standard's own library as the judge of signatures."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from typing import Any

import pytest
from aiohttp import web
from standardwebhooks import Webhook

from tests.outside.peers import LOOPBACK, Answer, Handler, Peer, answering, peer, run
from treadle.actions.net import NetPolicy
from treadle.actions.outside import OutsideSettings, Subscription, install_outside
from treadle.actions.registry import Registry
from treadle.actions.secrets import DictSecrets
from treadle.model import effects as f
from treadle.model.ids import RunId, TokenId
from treadle.runtime.deliver.callbacks import Callback, read_callback
from treadle.runtime.deliver.courier import WebhookCourier
from treadle.runtime.surroundings.ports import Answered, Undeliverable

KEY = b"k" * 32
OLD, NEW = "whsec_" + "b2xk" * 8, "whsec_" + "bmV3" * 8
RUN = RunId("r1")
CALL = f.CallWebhook(TokenId(7), 2, "work", {"n": 1})
SECRETS = DictSecrets({"SIGN": NEW, "BOTH": f"{NEW} {OLD}", "BAD": "not base64!"})


def settings(**fields: Any) -> OutsideSettings:
    known = {"net": LOOPBACK, "secrets": SECRETS, "signing_secret": "SIGN", "public_url": "https://flows.example"}
    return OutsideSettings(**{**known, **fields})


async def carry(effect: f.Effect, context: Any, given: OutsideSettings, timeout_s: float = 10, times: int = 1) -> Any:
    registry = Registry()
    courier = WebhookCourier(install_outside(registry, given), KEY, timeout_s=timeout_s)
    try:
        for _ in range(times):
            answer = await courier.carry(RUN, effect, context)
        return answer
    finally:
        await registry.close()


def call_worker(handler: Handler, action: Any = None, times: int = 1, **fields: Any) -> Peer:
    async def whole() -> Peer:
        async with peer(handler) as server:
            context = {"workflow": "w", "action": {"url": server.url, **(action or {})}, "key": "r1:7:1"}
            await carry(CALL, context, settings(**fields), times=times)
            return server

    return run(whole())


def test_a_worker_gets_a_signed_post_with_all_it_needs_to_answer() -> None:
    server = call_worker(answering(202), {"config": {"size": 3}}, public_url="https://flows.example/api/")
    seen = server.seen[0]
    body = Webhook(NEW).verify(seen.body, seen.headers)
    token = body.pop("callback_token")
    assert body == {
        "run_id": "r1",
        "workflow": "w",
        "node_id": "work",
        "visit": 7,
        "attempt": 2,
        "idempotency_key": "r1:7:1",
        "input": {"n": 1},
        "config": {"size": 3},
        "callback_url": f"https://flows.example/api/callbacks/{token}",
    }
    assert read_callback(KEY, token) == Callback(RUN, TokenId(7), 2)
    assert (seen.method, seen.headers["webhook-id"]) == ("POST", "r1:7:2")
    assert seen.headers["idempotency-key"] == "r1:7:1"


def test_a_worker_of_stitch_gets_the_names_it_expects() -> None:
    server = call_worker(answering(202), {"config": {"size": 3}, "payload": "stitch"})
    body = Webhook(NEW).verify(server.seen[0].body, server.seen[0].headers)
    token = body.pop("callbackUrl").removeprefix("https://flows.example/callbacks/")
    assert body == {"runId": "r1", "nodeId": "work", "config": {"size": 3}, "input": {"n": 1}}
    assert read_callback(KEY, token) == Callback(RUN, TokenId(7), 2)


def answer_of(handler: Handler, **fields: Any) -> Any:
    async def whole() -> Any:
        async with peer(handler) as server:
            return await carry(CALL, {"action": {"url": server.url}, "key": "k"}, settings(**fields))

    return run(whole())


@pytest.mark.parametrize("output", [{"film": "x"}, None, 0, "", False, []])
def test_a_200_with_an_output_means_that_the_work_is_done(output: Any) -> None:
    body = json.dumps({"output": output})
    assert answer_of(answering(200, text=body, content_type="application/json")) == Answered(output)


@pytest.mark.parametrize(
    ("status", "body"), [(202, '{"output": 1}'), (200, ""), (200, "thanks"), (200, "[]"), (200, '{"id": 7}')]
)
def test_any_other_2xx_means_that_the_worker_will_call_back(status: int, body: str) -> None:
    assert answer_of(answering(status, text=body)) is None
    with pytest.raises(Undeliverable, match=r"`public_url` under \[webhooks\]"):
        answer_of(answering(status, text=body), public_url=None)


def test_a_worker_that_answers_at_once_needs_no_address_to_call_back_to() -> None:
    assert answer_of(answering(200, text='{"output": 1}'), public_url=None) == Answered(1)


@pytest.mark.parametrize("output", ["[" * 110 + "]" * 110, str(10**40)])
def test_an_output_that_cannot_be_kept_is_said(output: str) -> None:
    with pytest.raises(Undeliverable, match="the worker's output"):
        answer_of(answering(200, text=f'{{"output": {output}}}'))


def test_a_second_try_carries_the_same_id_and_body() -> None:
    first, second = call_worker(answering(), times=2).seen
    assert (first.body, first.headers["webhook-id"]) == (second.body, second.headers["webhook-id"])


def test_during_a_rotation_both_secrets_verify() -> None:
    seen = call_worker(answering(), {"secret": "BOTH"}).seen[0]
    for secret in (OLD, NEW):
        assert Webhook(secret).verify(seen.body, seen.headers)


@pytest.mark.parametrize("status", [301, 307, 400, 401, 404, 409, 410, 422])
def test_a_refusal_is_undeliverable(status: int) -> None:
    with pytest.raises(Undeliverable, match=f"answered {status}"):
        call_worker(answering(status, headers={"Location": "/x"}))


@pytest.mark.parametrize("status", [408, 425, 429, 500, 503])
def test_trouble_that_may_pass_is_worth_another_try(status: int) -> None:
    with pytest.raises(Exception, match=f"answered {status}") as problem:
        call_worker(answering(status))
    assert not isinstance(problem.value, Undeliverable)


@pytest.mark.parametrize(
    ("action", "said"), [({"secret": "NONE"}, "no secret 'NONE'"), ({"secret": "BAD"}, "'BAD' is no")]
)
def test_a_webhook_that_cannot_be_signed_is_not_sent(action: Any, said: str) -> None:
    with pytest.raises(Undeliverable, match=said):
        call_worker(answering(), action)
    with pytest.raises(Undeliverable, match="signing_secret"):
        call_worker(answering(), signing_secret=None)


def test_an_address_inside_is_undeliverable() -> None:
    with pytest.raises(Undeliverable, match="not a public address"):
        call_worker(answering(), net=NetPolicy())


def test_no_connection_and_no_answer_are_worth_another_try() -> None:
    async def whole() -> None:
        release = asyncio.Event()

        async def silent(_request: web.BaseRequest) -> Answer:
            await release.wait()
            return web.Response()

        async with peer(silent) as server:
            context = {"action": {"url": server.url}, "key": "k"}
            with pytest.raises(Exception, match="did not accept within") as problem:
                await carry(CALL, context, settings(), timeout_s=0.05)
            assert not isinstance(problem.value, Undeliverable)
            release.set()
        with pytest.raises(Exception, match="could not be reached") as problem:
            await carry(CALL, context, settings())
        assert not isinstance(problem.value, Undeliverable)

    run(whole())


@pytest.mark.parametrize(
    ("action", "says"),
    [
        ({"url": ""}, "it is empty"),
        ({}, "it is not there"),
        ({"url": "$.input.n"}, "it is not int"),
        ({"url": "/jobs"}, "'/jobs' is no address: it must begin with https://"),
    ],
)
def test_an_address_a_run_got_wrong_is_said_instead_of_waited_for(action: Any, says: str) -> None:
    with pytest.raises(Undeliverable, match=says):
        run(carry(CALL, {"action": action}, settings()))


def subscribers(effect: f.Effect, context: Any, handlers: list[Handler], types: list[tuple[str, ...]]) -> list[Peer]:
    async def whole() -> list[Peer]:
        async with AsyncExitStack() as open_peers:
            servers = [await open_peers.enter_async_context(peer(handler)) for handler in handlers]
            subscribed = [Subscription(url=s.url, types=t) for s, t in zip(servers, types, strict=True)]
            await carry(effect, context, settings(subscriptions=tuple(subscribed)))
        return servers

    return run(whole())


def test_an_emitted_event_goes_to_those_who_want_its_type() -> None:
    context = {"workflow": "w", "key": "r1:row9", "at": 0}
    types = [("custom.order.*",), ("gate.*",), ("*",)]
    first, second, third = subscribers(f.Publish("order.paid", {"n": 1}), context, [answering()] * 3, types)  # type: ignore[arg-type]
    assert (len(first.seen), len(second.seen), len(third.seen)) == (1, 0, 1)
    seen = first.seen[0]
    assert Webhook(NEW).verify(seen.body, seen.headers) == {
        "type": "custom.order.paid",
        "timestamp": "1970-01-01T00:00:00+00:00",
        "data": {"run_id": "r1", "workflow": "w", "data": {"n": 1}},
    }
    assert seen.headers["webhook-id"] == "r1:row9"


@pytest.mark.parametrize(
    ("effect", "type"),
    [
        (f.OpenGate(TokenId(3), "ask"), "gate.opened"),
        (f.RemindGate(TokenId(3)), "gate.reminded"),
        (f.EscalateGate(TokenId(3)), "gate.escalated"),
    ],
)
def test_gates_are_told_to_those_who_want_to_know(effect: f.Effect, type: str) -> None:
    known = {"node_id": "ask", "title": "Sign", "form": {"type": "object"}, "assign": "ann", "due": 900}
    (server,) = subscribers(effect, {"workflow": "w", "gate": known, "key": "k"}, [answering()], [(type,)])
    body = json.loads(server.seen[0].body)
    can = ["answer", "claim", "release", "delegate", "comment"]
    assert (body["type"], body["data"]) == (type, {"run_id": "r1", "workflow": "w", "visit": 3, **known, "can": can})


def test_nobody_subscribed_is_nothing_to_do() -> None:
    run(carry(f.Publish("x"), {}, settings()))
    run(carry(f.CloseGate(TokenId(3)), {}, settings()))


def test_one_receiver_worth_another_try_outweighs_one_that_is_not() -> None:
    with pytest.raises(Exception, match="answered 503") as problem:
        subscribers(f.Publish("x"), {"key": "k"}, [answering(400), answering(503)], [("*",)] * 2)
    assert not isinstance(problem.value, Undeliverable)
    with pytest.raises(Undeliverable, match="answered 400"):
        subscribers(f.Publish("x"), {"key": "k"}, [answering(400), answering(200)], [("*",)] * 2)


def test_what_is_not_for_the_world_outside_is_undeliverable() -> None:
    with pytest.raises(Undeliverable, match="StopTask"):
        run(carry(f.StopTask(TokenId(1), 1), {}, settings()))
