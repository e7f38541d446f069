"""The client process: people, workers and other systems that speak HTTP with the tortured servers, until SIGTERM.

Owns the client's journal. After SIGTERM it ends what it has begun, waits until every run it knows has ended, starts a
last run that its streams wait for, and writes down what the streams have brought.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import random
import signal
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
from aiohttp import web

from tests.torture.engine import CLIENT, tell
from tests.torture.journal import Journal
from tests.torture.service.asking import AGAIN_S, Answer, Asking
from tests.torture.service.changes import CHANGED, WAYS, Operators, answer_of, definitions, start_of
from tests.torture.service.streams import follow

Json = Any
ACTORS, PULLERS = 8, 3
SECRET = "of-the-tortured-hook"
QUEUE = "pulled"
LEASE_MS = 3_000
SIMPLE = ("asked", "called", "pulled", "hooked")
KINDS = (*SIMPLE, CHANGED)
MARKER = "the last one"


def workflows(worker: str) -> list[Json]:
    """What is started; the workflow of hooks has nothing to do, so that only its start counts."""
    said = {"state.n": "$.n"}
    ask = {"action": {"kind": "human"}, "input_mapping": {"key": "$.input.key"}, "output_mapping": said}
    call = {"action": {"kind": "webhook", "url": worker}, "input_mapping": {"n": "$.input.n"}, "output_mapping": said}
    pull = {
        "queue": QUEUE,
        "action": {"kind": "work", "name": "n"},
        "input_mapping": {"n": "$.input.n"},
        "output_mapping": {"state.n": "$.n", "state.by": "$.by"},
    }
    keep = {"action": {"kind": "set", "values": {}}}
    outputs = {"asked": {"n": "$.state.n"}, "called": {"n": "$.state.n"}, "hooked": {"n": "$.input.n"}}
    outputs["pulled"] = {"n": "$.state.n", "by": "$.state.by"}
    nodes = {"asked": ask, "called": call, "pulled": pull, "hooked": keep}
    simple = [{"workflow": kind, "nodes": {"a": nodes[kind]}, "output": outputs[kind]} for kind in SIMPLE]
    return [*simple, *definitions(QUEUE)]


class ServiceClient:
    """See the module's docstring."""

    def __init__(self, asking: Asking, choose: random.Random) -> None:
        self._asking = asking
        self._journal = asking.journal
        self._choose = choose
        self._operators = Operators(asking, choose)
        self._first = [*((kind, "") for kind in SIMPLE), *((CHANGED, way) for way in WAYS)]
        """One journey of each kind is made in any case, however short the torture is."""
        self._begun = 0
        self._runs: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.over = asyncio.Event()

    async def go(self) -> None:
        """Journeys until it is told to end, and then to their end."""
        everything = self._stream("/api/v1/stream?after=0", "run.completed")
        gates = self._stream("/api/v1/gates/stream?after=0", "gate.completed")
        pullers = [asyncio.create_task(self._pull(f"worker {number}")) for number in range(PULLERS)]
        async with asyncio.TaskGroup() as actors:
            for _ in range(ACTORS):
                actors.create_task(self._act())
        await self._ended()
        while self._tasks:
            await asyncio.gather(*self._tasks)
        await self._one("asked", name=MARKER)
        await asyncio.gather(everything, gates)
        for puller in pullers:
            puller.cancel()

    def _later(self, work: Any) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _act(self) -> None:
        while self._first or not self.over.is_set():
            kind, way = self._first.pop() if self._first else (self._choose.choice(KINDS), self._choose.choice(WAYS))
            await self._one(kind, way if kind == CHANGED else "")

    async def _one(self, kind: str, way: str = "", name: str = "") -> None:
        self._begun += 1
        key = name or f"{kind}-{self._begun}"
        n = self._choose.randrange(1_000)
        self._journal.say(op="intend", key=key, kind=kind, n=n, way=way)
        body = start_of(way, key, n) if way else {"workflow": kind, "input": {"key": key, "n": n}}
        started = await (self._deliver(key, n) if kind == "hooked" else self._start(key, body))
        run = started.body["run"]
        self._runs.add(run)
        if self._choose.random() < 0.4:
            self._later(self._stream_run(run))
        if kind == "asked":
            await self._answer_gate(run, n)
        if way:
            self._runs.update(await self._operators.change(way, run, n))
        if name or self._choose.random() < 0.7:
            await self._wait(run)

    def _note(self, op: str, answer: Answer, **more: Any) -> None:
        self._journal.say(
            sure=True, op=op, status=answer.status, request=answer.request, sure_of_it=answer.is_sure, **more
        )

    async def _start(self, key: str, body: Json) -> Answer:
        """Every third start is sent again, with the same key."""
        for _ in range(2 if self._choose.random() < 0.3 else 1):
            answer = await self._asking.ask("operator", "POST", "/api/v1/runs", body, {"Idempotency-Key": key})
            self._note("started", answer, key=key, run=answer.body.get("run"), replayed=answer.is_replayed)
        return answer

    async def _deliver(self, key: str, n: int) -> Answer:
        body = msgspec.json.encode({"key": key, "n": n})
        signed = {"X-Signature-256": "sha256=" + hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()}
        for _ in range(2 if self._choose.random() < 0.3 else 1):
            answer = await self._asking.ask(None, "POST", "/hooks/tortured", body, signed)
            self._note("delivered", answer, key=key, run=answer.body.get("run"))
        return answer

    async def _answer_gate(self, run: str, n: int) -> None:
        while True:
            shown = await self._asking.ask("viewer", "GET", f"/api/v1/gates?run={run}")
            if shown.status == 200 and shown.body["items"]:
                break
            await asyncio.sleep(AGAIN_S)
        visit = shown.body["items"][0]["visit"]
        for number in range(2):
            headers = {"Idempotency-Key": f"{run}/{number if self._choose.random() < 0.5 else 0}"}
            answer = await self._asking.ask(
                "approver", "POST", f"/api/v1/gates/{run}/{visit}/answer", {"data": {"n": answer_of(n)}}, headers
            )
            self._note("answered", answer, run=run, visit=visit)

    async def _wait(self, run: str) -> None:
        while True:
            shown = await self._asking.ask("viewer", "GET", f"/api/v1/runs/{run}")
            if shown.body["status"] not in ("running", "waiting", "paused"):
                self._journal.say(
                    sure=True, op="ended", run=run, status=shown.body["status"], output=shown.body["output"]
                )
                self._runs.discard(run)
                return
            await asyncio.sleep(AGAIN_S * 4)

    async def _ended(self) -> None:
        for run in tuple(self._runs):
            await self._wait(run)

    # Workers

    async def told(self, request: web.Request) -> web.Response:
        """The webhook worker: takes everything, and answers twice, later."""
        body = await request.json()
        self._later(self._call_back(body))
        return web.Response(status=202)

    async def _call_back(self, told: Json) -> None:
        run, visit = told["run_id"], told["visit"]
        body = {"status": "completed", "output": {"n": answer_of(told["input"]["n"])}}

        async def send() -> None:
            await asyncio.sleep(self._choose.random() * 0.3)
            answer = await self._asking.ask(None, "POST", f"/callbacks/{told['callback_token']}", body)
            applied = answer.body.get("applied")
            self._note("called back", answer, run=run, visit=visit, applied=applied, said=answer.body.get("code"))

        await asyncio.gather(send(), send())

    async def _pull(self, name: str) -> None:
        wanted = {"queues": [QUEUE], "worker": name, "limit": 3, "lease_ms": LEASE_MS, "wait_ms": 1_000}
        while True:
            claimed = await self._asking.ask("worker", "POST", "/api/v1/tasks/claim", wanted)
            for task in claimed.body["tasks"]:
                await self._work(task, f"{name}/{self._choose.random()}")

    async def _work(self, task: Json, mine: str) -> None:
        """Answers twice, or forgets it; work fails if its data says so."""
        given = task["input"]
        is_bad = given.get("must") is False and given.get("index", 1) == 1
        place = {"run": task["run"], "visit": task["visit"], "attempt": task["attempt"], "by": mine}
        self._journal.say(sure=True, op="worked", **place)
        if self._choose.random() < 0.1:
            return  # somebody claims it again
        output = {**given, "n": answer_of(given["n"]), "by": mine}
        error = {"message": "the data is not good", "kind": "NOT_GOOD", "details": {"by": mine}}
        verb, body = ("fail", {"error": error}) if is_bad else ("complete", {"output": output})
        for _ in range(2):
            done = await self._asking.ask("worker", "POST", f"/api/v1/tasks/{task['task']}/{verb}", body)
            said = (done.body or {}).get("code")
            self._note("failed" if is_bad else "completed", done, said=said, **place)

    # Streams

    async def _stream_run(self, run: str) -> None:
        seen = await follow(self._asking, f"/api/v1/runs/{run}/stream", lambda event, _data: event == "end")
        self._journal.say(sure=True, op="streamed", stream="run", seen=[(run, seq) for _, seq in seen])

    def _stream(self, path: str, last: str) -> asyncio.Task[None]:
        """A stream of all runs, until the last run has this event."""
        marked: set[str] = set()

        def is_last(event: str, data: Json) -> bool:
            if event == "gate.opened" or event == "run.started":
                marked.add(data["run"]) if MARKER in str(data.get("input")) else None
            return event == last and data["run"] in marked

        async def read() -> None:
            seen = await follow(self._asking, path, is_last)
            self._journal.say(sure=True, op="streamed", stream=path.split("?")[0].removeprefix("/api/v1/"), seen=seen)

        return asyncio.create_task(read())


async def _prepare(asking: Asking, port: int) -> None:
    for definition in workflows(f"http://127.0.0.1:{port}/told"):
        deployed = await asking.ask("author", "POST", "/api/v1/workflows", definition)
        assert deployed.status in (200, 201), deployed
    hook = {"source": "generic", "secret": SECRET, "workflow": "hooked", "key": "$.body.key"}
    made = await asking.ask(
        "author", "PUT", "/api/v1/hooks/tortured", {**hook, "input": {"key": "$.body.key", "n": "$.body.n"}}
    )
    assert made.status in (200, 201), made


async def travel(place: Path, seed: int, keys: dict[str, str], servers: list[str]) -> int:
    choose = random.Random(seed)
    journal = Journal(place / CLIENT)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:
        asking = Asking(session, servers, keys, journal, choose)
        client = ServiceClient(asking, choose)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, client.over.set)
        worker = web.Application()
        worker.router.add_post("/told", client.told)
        runner = web.AppRunner(worker, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        await _prepare(asking, runner.addresses[0][1])
        tell(event="ready")
        await client.go()
        await runner.cleanup()
    journal.close()
    return 0


def main(arguments: list[str]) -> int:
    place, seed, keys, *servers = arguments
    return asyncio.run(travel(Path(place), int(seed), msgspec.json.decode(keys), servers))
