"""The kinds inside a real engine: retries, secrets in history, cancelling, webhooks."""

from __future__ import annotations

import asyncio
import base64
import os
import sys
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web
from standardwebhooks import Webhook

from tests.outside.peers import LOOPBACK, Answer, answering, peer, run
from tests.outside.programs import OPEN, is_gone, told
from tests.outside.test_shell import STUBBORN
from treadle.actions.outside import OutsideSettings
from treadle.actions.secrets import DictSecrets
from treadle.language import load_text
from treadle.runtime.engine import Engine, EngineSettings

CANARY = "c4nary-of-the-engine"
SIGNING = "whsec_" + "b2xk" * 8
SETTINGS = EngineSettings(
    outside=OutsideSettings(
        net=LOOPBACK,
        shell=OPEN,
        secrets=DictSecrets({"KEY": CANARY, "SIGN": SIGNING}),
        signing_secret="SIGN",
        public_url="https://flows.example",
    )
)


def read_callback_claims(token: str) -> Any:
    """What a worker can see of its token."""
    text = token.partition(".")[0]
    return msgspec.json.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))


async def deploy(engine: Engine, **document: Any) -> None:
    text = msgspec.json.encode({"workflow": "w", **document}).decode()
    await engine.deploy(load_text(text, "w.json"))


def test_an_action_retries_what_may_pass_with_the_same_key_and_hides_what_it_sends() -> None:
    statuses = iter([503, 200])

    async def flaky(request: web.BaseRequest) -> Answer:
        return web.json_response({"said": request.headers["X-Key"]}, status=next(statuses))

    async def whole() -> None:
        async with peer(flaky) as server, Engine(":memory:", settings=SETTINGS) as engine:
            ask = {"kind": "http", "url": server.url, "headers": {"X-Key": {"secret": "KEY"}}}
            ask["execution"] = {"retry_policy": {"max_attempts": 2, "initial_delay_ms": 1}}
            print_it = {"kind": "shell", "argv": ["sh", "-c", "echo $KEY"], "env": {"KEY": {"secret": "KEY"}}}
            nodes = {
                "ask": {"action": ask, "output": {"output.said": "$.body.said"}},
                "print": {"action": print_it, "output": {"output.printed": "$.stdout"}},
            }
            await deploy(engine, nodes=nodes, transitions=[{"from": "ask", "to": "print"}])
            started = await engine.start("w", {})
            assert await started.result() == {"said": "***", "printed": "***\n"}
            first, second = server.seen
            assert first.headers["idempotency-key"] == second.headers["idempotency-key"]
            assert first.headers["x-key"] == CANARY
            history = [repr(event) for event in await started.history()]
            assert len(history) > 5
            assert CANARY not in "".join(history)

    run(whole())


def test_every_automatic_retry_carries_the_same_key_and_an_operators_retry_a_new_one() -> None:
    statuses = iter([503, 503, 503, 503, 200])

    async def flaky(_request: web.BaseRequest) -> Answer:
        return web.json_response({}, status=next(statuses))

    async def whole() -> None:
        async with peer(flaky) as server, Engine(":memory:", settings=SETTINGS) as engine:
            ask = {"kind": "http", "url": server.url, "headers": {"X-Visit": "$._visit.key", "X-Run": "$._run.id"}}
            ask["execution"] = {"retry_policy": {"max_attempts": 2}}
            node = {"action": ask, "retry": {"max_attempts": 2}}
            await deploy(engine, nodes={"pay": node})
            started = await engine.start("w", {})
            assert (await started.wait(10)).status == "failed"
            await started.retry()
            assert (await started.wait(10)).status == "completed"
            seen = [(one.headers["idempotency-key"], one.headers["treadle-attempt"]) for one in server.seen]
            first, second = f"{started.id}:1:1", f"{started.id}:1:2"
            assert [key for key, _ in seen] == [f"{first}:main"] * 4 + [f"{second}:main"]
            assert [attempt for _, attempt in seen] == ["1", "1", "2", "2", "3"]
            assert [one.headers["x-visit"] for one in server.seen] == [first] * 4 + [second]
            assert {one.headers["x-run"] for one in server.seen} == {started.id}

    run(whole())


def test_cancelling_a_run_ends_its_program_and_what_that_started(tmp_path: Path) -> None:
    fifo = tmp_path / "told"
    os.mkfifo(fifo)

    async def whole() -> list[int]:
        async with Engine(":memory:", settings=SETTINGS) as engine:
            await deploy(
                engine, nodes={"a": {"action": {"kind": "shell", "argv": [sys.executable, "-c", STUBBORN, str(fifo)]}}}
            )
            started = await engine.start("w", {})
            pids = await told(fifo)
            await started.cancel()
        return pids

    pids = run(whole())
    assert len(pids) == 2
    assert all(map(is_gone, pids))


def test_a_webhook_leaves_the_engine_signed() -> None:
    arrived = asyncio.Event()

    async def worker(_request: web.BaseRequest) -> Answer:
        arrived.set()
        return web.Response(status=202)

    async def whole() -> None:
        async with peer(worker) as server, Engine(":memory:", settings=SETTINGS) as engine:
            action = {"kind": "webhook", "url": server.url, "config": {"size": 1}}
            await deploy(engine, nodes={"a": {"action": action, "input": {"n": "$.input.n"}}})
            started = await engine.start("w", {"n": 5})
            await arrived.wait()
            body = Webhook(SIGNING).verify(server.seen[0].body, server.seen[0].headers)
            assert (body["run_id"], body["node_id"], body["input"]) == (started.id, "a", {"n": 5})
            claims = read_callback_claims(body["callback_token"])
            assert claims == [started.id, body["visit"], 1]
            assert await started.callback(body["visit"], body["attempt"], {"film": "x"})
            assert (await started.wait()).status == "completed"
            assert not await started.callback(body["visit"], body["attempt"], {"film": "x"})
            assert len(server.seen) == 1

    run(whole())


def test_an_engine_reaches_no_private_address_by_default() -> None:
    async def whole() -> None:
        async with peer(answering()) as server, Engine(":memory:") as engine:
            await deploy(engine, nodes={"a": {"action": {"kind": "http", "url": server.url}}})
            started = await engine.start("w", {})
            try:
                await started.result()
            except Exception as problem:
                assert "not a public address" in str(problem)
            else:
                raise AssertionError("the run should have failed")
            assert server.seen == []

    run(whole())
