"""The content pipeline of the canvas with real webhook workers, offline: signed POSTs out, callbacks in.

    ./dev python examples/content.py

Writers and artists are one small HTTP server on loopback. It acknowledges at once, works, and calls back.
"""

from __future__ import annotations

import asyncio
import base64
import secrets
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from aiohttp import web
from standardwebhooks import Webhook

from treadle import Engine, EngineSettings, load_text
from treadle.settings import DictSecrets, NetPolicy, OutsideSettings

HERE = Path(__file__).parent
KEY = "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()


def work(node: str, given: Any) -> Any:
    """What each kind of worker makes of its input."""
    match node:
        case "outline":
            return {"sections": ["warp", "weft", "loom"]}
        case "write":
            return {"text": f"about the {given}"}
        case "draw":
            return {"picture": f"{given}.png"}
        case _:
            return {"published": given}


class Workers:
    """Checks the signature, says 202, and answers later."""

    def __init__(self) -> None:
        self.engine: Engine | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def called(self, request: web.Request) -> web.Response:
        job = Webhook(KEY).verify(await request.read(), dict(request.headers))
        task = asyncio.create_task(self._answer(job))
        self._tasks.add(task)
        return web.Response(status=202)

    async def _answer(self, job: dict[str, Any]) -> None:
        assert self.engine is not None
        output = work(job["node_id"], job["input"])
        print(f"{job['node_id']:8} {job['input']!s:.40}")
        await self.engine.run(job["run_id"]).callback(job["visit"], job["attempt"], output)


async def main() -> None:
    workers = Workers()
    app = web.Application()
    app.router.add_post("/{work}", workers.called)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    address = f"http://127.0.0.1:{runner.addresses[0][1]}"
    drawing = (HERE / "content.canvas.json").read_text("utf-8")
    for host in ("writers", "artists", "press"):
        drawing = drawing.replace(f"https://{host}.example", address)
    outside = OutsideSettings(
        net=NetPolicy(allow=("127.0.0.1:*",)), secrets=DictSecrets({"workers": KEY}), signing_secret="workers"
    )
    with TemporaryDirectory() as home:
        async with Engine(Path(home) / "treadle.db", settings=EngineSettings(outside=outside)) as engine:
            workers.engine = engine
            run = await engine.start(load_text(drawing, "content.canvas.json"))
            [brief] = await engine.gates(run.id)
            await engine.complete_gate(run.id, brief.token, {"topic": "looms"}, by="ann")
            print((await run.wait(30)).status)
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(main())
