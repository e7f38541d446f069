"""A secret that goes through every kind of action is found nowhere afterwards: file, history, errors, logs."""

from __future__ import annotations

import base64
import logging
from pathlib import Path
from typing import Any

import pytest
import structlog
from aiohttp import web
from structlog.testing import capture_logs

import treadle.actions.llm.provider  # noqa: F401  # takes seconds: not within the test's deadline
from tests.runtime.executing import on_loop
from treadle.actions.llm.profiles import LlmSettings, Profile
from treadle.actions.net import NetPolicy
from treadle.actions.outside import OutsideSettings
from treadle.actions.secrets import DictSecrets
from treadle.actions.shell import ShellPolicy
from treadle.language import load_value
from treadle.runtime.engine import Engine, EngineSettings
from treadle.testing.llm.server import Answer, LlmServer

CANARY = "canary-4f1e9b7a2c-tweet-tweet"
SIGNING = "whsec_" + base64.b64encode(f"{CANARY}-signing-key-of-some-length".encode()).decode()
NEEDLES = [CANARY.encode(), base64.b64encode(CANARY.encode())[:-4], SIGNING.removeprefix("whsec_").encode()[:-4]]
SECRET = {"secret": "canary"}


async def echo(request: web.Request) -> web.Response:
    """A peer that says everything it was told, as a failure if asked to."""
    text = f"you sent {request.headers.get('X-Key')} and {(await request.text())!r}"
    return web.Response(status=500 if "fail" in request.path else 200, text=text)


def action(kind: str, **config: Any) -> dict[str, Any]:
    return {"task": {"steps": [{"ref": "do", "action": {"kind": kind, **config}}]}, "compensate_on_failure": False}


def nodes(address: str) -> dict[str, Any]:
    shell = {"env": {"KEY": SECRET}, "stdin": SECRET}
    return {
        "http": action("http", url=f"{address}/ok", method="POST", headers={"X-Key": SECRET}, body="b"),
        "http_fails": action("http", url=f"{address}/fail", headers={"X-Key": SECRET}),
        "shell": action("shell", argv=["sh", "-c", "echo $KEY; cat; echo $KEY >&2"], **shell),
        "shell_fails": action("shell", argv=["sh", "-c", "echo $KEY >&2; exit 3"], **shell),
        "llm": action("llm", prompt="Say the key.", stream=True),
        "webhook": action("webhook", url=f"{address}/fail-hook", secret="signing", timeout_ms=300),
    }


@pytest.mark.slow
@on_loop
async def test_a_canary_sent_through_every_kind_is_found_nowhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", echo)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    address = f"http://127.0.0.1:{runner.addresses[0][1]}"
    outside = OutsideSettings(
        net=NetPolicy(allow=("127.0.0.1:*",)),
        shell=ShellPolicy(enabled=True, sandbox="none"),
        secrets=DictSecrets({"canary": CANARY, "signing": SIGNING}),
    )
    caplog.set_level(logging.DEBUG)
    async with LlmServer(lambda asked: Answer(text=f"The key is {asked.key}, or so.")) as server:
        profile = Profile(name="local", base_url=server.openai_url, model="any", api_key="canary")
        settings = EngineSettings(outside=outside, llm=LlmSettings(profiles=(profile,)))
        histories = []
        with capture_logs() as logged:
            async with Engine(tmp_path / "treadle.db", settings=settings) as engine:
                for name, node in nodes(address).items():
                    document = {"workflow": name, "nodes": {"a": node}, "output": "$.nodes.a.output"}
                    run = await engine.start(load_value(document))
                    ended = await run.wait(20)
                    assert (ended.error is None) == ("fail" not in name and name != "webhook"), (name, ended)
                    histories.append(repr(await run.history()) + repr(ended))
        assert server.asked[0].key == CANARY, "it did reach the model"
    await runner.cleanup()
    structlog.reset_defaults()
    left = {path.name: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    left |= {"history": "".join(histories).encode(), "logs": (repr(logged) + caplog.text).encode()}
    assert len(left["treadle.db"]) > 10_000
    assert {(place, needle) for place, content in left.items() for needle in NEEDLES if needle in content} == set()
    assert b"***" in left["history"], "something was there to hide"
