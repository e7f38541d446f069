"""A worker that knows a service and no store: claims work of its queues over HTTP, executes it, and reports.

    async with HttpWorker("https://treadle.example", key, queues={"gpu": 1}, functions={"render": render}) as worker:
        await worker.wait()

Part of the composition root. Owns the work it has claimed, until its result is answered. Promises what `queue.claimant`
promises, as far as HTTP can: it claims no more than it can begin, renews while it works, stops what it has lost, and
sends a result until the service has answered. Must not know a store or a run.

Known limits: artifacts and requests to the run (`emit`, `send`) need a store and fail here. Work that needs a function
this process lacks fails so that trying again may help: over HTTP nothing can be given back.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from typing import Any, Self

import aiohttp
import msgspec
from msgspec import Struct

from treadle.actions.protocol import AttemptFacts
from treadle.actions.registry import Registry
from treadle.errors import CommandRefused, EngineStopped
from treadle.model import commands as c
from treadle.model.definition import Action, Execution, Step, Task
from treadle.model.ids import RunId, TokenId
from treadle.runtime.equipment import equip, executing, workshop
from treadle.runtime.execute.progress import Progress
from treadle.runtime.garbage import spare_collector
from treadle.runtime.queue.claim_reports import Identity, ended
from treadle.runtime.queue.outside_attempt import WHOLE
from treadle.runtime.settings import EngineSettings
from treadle.runtime.surroundings.clock import SystemClock
from treadle.runtime.surroundings.logs import logger
from treadle.runtime.surroundings.ports import Attempt
from treadle.tasks.trust import Trust

Json = Any

WAIT_MS = 30_000
"""How long a claim waits for work: less than the minute after which proxies give an idle request up."""
AGAIN_S = (0.5, 5.0)
"""The pause after a service that did not answer: doubled from the first to the last."""
LAST_WORDS_S = 5.0
LEASE_MIN_MS = 1_000
KINDS_ELSEWHERE = frozenset({"work", "human", "wait", "signal", "workflow_call", "webhook", "emit", "send"})
"""Kinds that it does not claim: work for other languages, and what only a run itself can do."""

log = logger("treadle.worker")


class InHand(Struct):
    """One task in hand."""

    task: str
    queue: str
    result: c.FinishAttempt | c.FailAttempt | None = None


class HttpWorker:
    """See the module's docstring. `queues`: how many attempts of each at once."""

    def __init__(
        self,
        url: str,
        key: str,
        *,
        queues: Mapping[str, int],
        functions: Mapping[str, Callable[..., Any]] | None = None,
        settings: EngineSettings | None = None,
        name: str | None = None,
    ) -> None:
        self.name = name or f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(2)}"
        self.url = url.rstrip("/")
        self.queues = dict(queues)
        self.settings = settings or EngineSettings()
        self.registry = Registry()
        self.registry.functions.update(functions or {})
        self.registry.node = self.name
        self.registry.trust = Trust(self.settings.functions_allow)
        self._key = key
        self._in_hand: dict[Identity, InHand] = {}
        self._parts = AsyncExitStack()
        self._over = asyncio.Event()
        self._free = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def executing(self) -> int:
        """How much it has in hand."""
        return len(self._in_hand)

    async def __aenter__(self) -> Self:
        if self.settings.spare_collector:
            spare_collector()
        clock, settings, defer = SystemClock(), self.settings, self._parts.push_async_callback
        headers = {"Authorization": f"Bearer {self._key}"}
        self._http = aiohttp.ClientSession(headers=headers, timeout=aiohttp.ClientTimeout(total=90))
        defer(self._http.close)
        try:
            await self._ask("GET", "/me")
        except BaseException:
            await self._parts.aclose()
            raise
        equip(self.registry, settings.outside, settings.llm, settings.mcp)
        defer(self.registry.close)
        shop = workshop(self.registry, clock, settings, self.name)
        defer(shop.close)
        self._executor = executing(shop, settings, self.name)(self._report)
        self._progress = Progress(self._report, clock)
        self._claiming = [asyncio.create_task(self._claim(queue)) for queue in self.queues]
        self._renewing = asyncio.create_task(self._renew())
        defer(self._end)
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.close()

    async def wait(self) -> None:
        """Until somebody closes it."""
        await self._over.wait()

    async def close(self) -> None:
        """Claims nothing more, lets what it has end for `grace_ms`, and leaves the rest to others soon."""
        await self._parts.aclose()
        self._over.set()

    async def _end(self) -> None:
        await ended(*self._claiming)
        await self._executor.close(self.settings.grace_ms)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._last_words(), LAST_WORDS_S)
        await ended(self._renewing, *self._tasks)

    async def _last_words(self) -> None:
        """Waits for the answers to results. The lease of everything else shall run out soon."""
        for entry in self._in_hand.values():
            if entry.result is None:
                with suppress(EngineStopped, CommandRefused):
                    await self._ask("POST", f"/tasks/{entry.task}/heartbeat", {"lease_ms": LEASE_MIN_MS})
        if self._tasks:
            await asyncio.wait(self._tasks)

    # Claiming

    async def _claim(self, queue: str) -> None:
        pause = AGAIN_S[0]
        while True:
            free = self.queues[queue] - sum(one.queue == queue for one in self._in_hand.values())
            if free <= 0:
                self._free.clear()
                await self._free.wait()
                continue
            kinds = [WHOLE, *(kind for kind in self.registry.kinds() if kind not in KINDS_ELSEWHERE)]
            body = {
                "queues": [queue],
                "worker": self.name,
                "kinds": kinds,
                "limit": free,
                "lease_ms": self.settings.claim_ms,
                "wait_ms": WAIT_MS,
            }
            try:
                found = await self._ask("POST", "/tasks/claim", body)
                pause = AGAIN_S[0]
            except (EngineStopped, CommandRefused) as problem:
                log.warning("cannot claim", queue=queue, error=str(problem))
                await asyncio.sleep(pause)
                pause = min(pause * 2, AGAIN_S[1])
                continue
            for task in found["tasks"]:
                self._begin(task)

    def _begin(self, task: dict[str, Json]) -> None:
        run, token, attempt = RunId(task["run"]), TokenId(task["visit"]), task["attempt"]
        identity = (run, token, attempt)
        facts = AttemptFacts(
            run=run,
            token=token,
            attempt=attempt,
            node=task["node"],
            workflow=task["workflow"],
            retries=int(task["idempotency_key"].rpartition(":")[2]) - 1,
            emit=self._progress.teller(identity),
            trace=task.get("trace"),
        )
        if identity in self._in_hand:
            self._executor.stop(*identity)  # an older claim of this process, which was lost without notice
        self._in_hand[identity] = InHand(task["task"], task["queue"])
        self._executor.begin(Attempt(run, token, attempt, task["node"], task_of(task), task["input"], facts=facts))

    # Reporting

    def _report(self, run: RunId, command: c.Command) -> None:
        """A report of the executor."""
        assert isinstance(command, c.FinishAttempt | c.FailAttempt | c.ReportProgress)
        identity = (run, command.token, command.attempt)
        entry = self._in_hand.get(identity)
        if entry is None or entry.result is not None:
            return
        if isinstance(command, c.ReportProgress):
            self._spawn(self._say(entry, command))
            return
        self._progress.ended(*identity)
        entry.result = command
        self._spawn(self._answer(identity, entry, command))

    async def _say(self, entry: InHand, command: c.ReportProgress) -> None:
        with suppress(EngineStopped, CommandRefused):  # it is no result
            await self._ask("POST", f"/tasks/{entry.task}/progress", {"name": command.name, "data": command.data})

    async def _answer(self, identity: Identity, entry: InHand, result: c.FinishAttempt | c.FailAttempt) -> None:
        """Sends a result until it is answered."""
        if isinstance(result, c.FinishAttempt):
            verb, body = "complete", {"output": result.output}
        else:
            error = result.error
            given = {"kind": error.kind, "message": error.message, "retryable": error.retryable}
            verb, body = "fail", {"error": {**given, "details": error.details}}
        if result.spent is not None:
            body |= {name: result.spent[name] for name in ("cost", "usage") if result.spent.get(name) is not None}
        pause = AGAIN_S[0]
        while True:
            try:
                await self._ask("POST", f"/tasks/{entry.task}/{verb}", body)
                break
            except CommandRefused as refused:
                log.info("refused", run=identity[0], visit=identity[1], reason=str(refused))
                break
            except EngineStopped as problem:
                log.warning("cannot report", run=identity[0], error=str(problem))
                await asyncio.sleep(pause)
                pause = min(pause * 2, AGAIN_S[1])
        self._forget(identity, entry)

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self.settings.claim_ms / 3_000)
            for identity, entry in list(self._in_hand.items()):
                if entry.result is None:
                    self._spawn(self._renew_one(identity, entry))

    async def _renew_one(self, identity: Identity, entry: InHand) -> None:
        with suppress(EngineStopped):
            try:
                await self._ask("POST", f"/tasks/{entry.task}/heartbeat", {"lease_ms": self.settings.claim_ms})
            except CommandRefused:
                if entry.result is None:
                    log.warning("lost a claim", run=identity[0], visit=identity[1])
                    self._forget(identity, entry)

    def _forget(self, identity: Identity, entry: InHand) -> None:
        if self._in_hand.get(identity) is entry:
            del self._in_hand[identity]
            self._executor.stop(*identity)
            self._free.set()

    def _spawn(self, work: Any) -> None:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _ask(self, method: str, path: str, body: Json = None) -> Json:
        """The answer. Raises CommandRefused for a refusal, EngineStopped if the service cannot be asked now."""
        sent = msgspec.json.encode(body) if body is not None else None
        headers = {"Content-Type": "application/json"} if sent is not None else None
        try:
            async with self._http.request(
                method, f"{self.url}/api/v1{path}", data=sent, headers=headers, allow_redirects=False
            ) as reply:
                content = await reply.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as problem:
            raise EngineStopped(f"{self.url} does not answer: {problem or type(problem).__name__}") from None
        if reply.status < 300:
            return msgspec.json.decode(content)
        try:
            told = msgspec.json.decode(content)
            code, detail = str(told["code"]), str(told["detail"])
        except (msgspec.DecodeError, KeyError, TypeError):
            code, detail = "BAD_REQUEST", f"it answers {reply.status}"
        if reply.status in (429, 500, 502, 503, 504):
            raise EngineStopped(f"{self.url}: {code}: {detail}")
        raise CommandRefused(code, detail)


def task_of(task: dict[str, Json]) -> Task:
    """The task that a question asks for: a whole one, or one that is nothing but its action."""
    if task["kind"] == WHOLE:
        return msgspec.convert(task["config"], Task)
    execution = msgspec.convert(task["execution"], Execution) if task.get("execution") is not None else None
    return Task([Step("main", Action(task["kind"], task["config"], execution))])
