"""The courier: webhooks to workers and subscribers, signed by Standard Webhooks, one try per call.

Owns the messages and the meaning of each answer: 2xx is accepted; 408, 425, 429, 5xx and a broken connection are worth
another try; any other status, a redirect included, and an address that the gate refuses are not (`Undeliverable`).
Promises that a repeated try carries the same `webhook-id` and body, with a new timestamp, so receivers count it once.
Must not retry (`outgoing` does), and must not change the run (the coordinator does).

To a worker (2.7):    {run_id, workflow, node_id, visit, attempt, idempotency_key, input, config, callback_url?,
                       callback_token}; `payload: stitch` sends {runId, nodeId, config, input, callbackUrl?} instead.
                       `webhook-id` names the message, one per attempt; `Idempotency-Key` names the work, the same in
                       every automatic retry (2.1).
    A worker that answers 200 {"output": …} has done the work already. Any other 2xx means that it will call back: if it
    was told no address, because the operator has set none, the attempt fails and says so.
To a subscriber:      {type, timestamp?, data: {run_id, workflow, …}}
    of a gate: visit, node_id, title, description, assign, escalated, form, opened, due, claimed_by, can (the commands a
               person may give)
"""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any

import msgspec
from msgspec import Struct
from standardwebhooks import Webhook
from yarl import URL

from treadle.actions.failure import TaskFailure
from treadle.actions.http import RETRYABLE, classified
from treadle.actions.http_body import read_body
from treadle.actions.net import AddressRefused
from treadle.actions.outside import Outside, Subscription
from treadle.actions.plain import NotPlain, plain
from treadle.actions.redact import Redactor
from treadle.actions.secrets import Secret, fetch
from treadle.errors import TreadleError
from treadle.expression.sources import compile_source
from treadle.expression.view import DictView
from treadle.kernel.depth import is_too_deep, too_deep
from treadle.model import effects as f
from treadle.model.ids import RunId, attempt_name
from treadle.model.spending import report_in
from treadle.runtime.deliver.callbacks import callback_token
from treadle.runtime.deliver.peers import Peers
from treadle.runtime.surroundings.clock import SystemClock
from treadle.runtime.surroundings.ports import Answered, SteadyClock, Undeliverable
from treadle.store.port import can

Json = Any
TIMEOUT_S = 10.0
"""A worker acknowledges and works afterwards; it must not hold a connection while it works."""
_GATE_TYPES: dict[type[f.Effect], str] = {
    f.OpenGate: "gate.opened",
    f.RemindGate: "gate.reminded",
    f.EscalateGate: "gate.escalated",
}


class DeliveryFailed(TreadleError):
    """This try failed; another may succeed."""


class WebhookCourier:
    """Implements `ports.Courier` on the engine's gated client."""

    def __init__(
        self,
        outside: Outside,
        key: bytes,
        *,
        now: Callable[[], float] = time.time,
        timeout_s: float = TIMEOUT_S,
        clock: SteadyClock | None = None,
    ) -> None:
        self._client = outside.client
        self._settings = outside.settings
        self._key = key
        self._now = now
        self._timeout_s = timeout_s
        self._peers = Peers(clock or SystemClock())

    def turn(self, effect: f.Effect, context: Json) -> AbstractAsyncContextManager[None]:
        """Waits until the worker of a webhook has room and its breaker is closed; messages to subscribers wait by
        themselves."""
        url = _setting(context["action"], effect.input, "url") if isinstance(effect, f.CallWebhook) else None
        name = receiver(url)
        return nullcontext() if name is None else self._peers.turn(name)

    async def carry(self, run: RunId, effect: f.Effect, context: Json) -> Answered | None:
        """Makes one try. `context` has `workflow`; for a webhook also `action` (its config), for a gate also `gate`
        (its title, form and so on). Except for a webhook it has `key`, the stable name of the outbox row, and may have
        `at`, the milliseconds of the decision."""
        match effect:
            case f.CallWebhook():
                return await self._call_worker(run, effect, context)
            case f.Publish():
                await self._tell(run, f"custom.{effect.type}", {"data": effect.data}, context)
            case f.OpenGate() | f.RemindGate() | f.EscalateGate():
                type = _GATE_TYPES[effect.__class__]
                known = {"visit": effect.token, **context["gate"], "can": can(effect.token, context["gate"]["title"])}
                await self._tell(run, type, known, context)
            case f.CloseGate() | f.NoteGate() | f.NoteItem() | f.NoteMove() | f.NoteVersion():
                pass
            case _:
                raise Undeliverable(f"{effect.__class__.__name__} is not for the world outside")
        return None

    async def _call_worker(self, run: RunId, effect: f.CallWebhook, context: Json) -> Answered | None:
        action = context["action"]
        url = _setting(action, effect.input, "url")
        token = callback_token(self._key, run, effect.token, effect.attempt)
        public = self._settings.public_url
        callback = f"{public.rstrip('/')}/callbacks/{token}" if public is not None else None
        if action.get("payload") == "stitch":
            body = _stitch(run, effect, action, callback)
        else:
            body = {
                "run_id": run,
                "workflow": context.get("workflow"),
                "node_id": effect.node,
                "visit": effect.token,
                "attempt": effect.attempt,
                "idempotency_key": context.get("key"),
                "input": effect.input,
                "config": action.get("config"),
                "callback_token": token,
            }
            if callback is not None:
                body["callback_url"] = callback
        message = _Message(
            attempt_name(run, effect.token, effect.attempt), body, context.get("key"), context.get("trace")
        )
        answer = await self._send(url, action.get("secret"), message)
        if answer is None and callback is None:
            raise Undeliverable(
                "the worker accepted and will answer later, but it was given no address to answer to; the operator "
                "sets one: `public_url` under [webhooks] of treadle.toml, where workers reach `treadle serve`",
                answered=True,
            )
        return answer

    async def _tell(self, run: RunId, type: str, what: dict[str, Json], context: Json) -> None:
        """Posts to every subscriber. If some fail, raises a failure worth another try rather than one that is not."""
        wanted = [s for s in self._settings.subscriptions if any(fnmatchcase(type, pattern) for pattern in s.types)]
        data = {"run_id": run, "workflow": context.get("workflow"), **what}
        body: dict[str, Json] = {"type": type, "data": data}
        if (at := context.get("at")) is not None:
            body["timestamp"] = datetime.fromtimestamp(at / 1000, UTC).isoformat()
        if not wanted:
            return
        results = await asyncio.gather(*(self._post(s, context["key"], body) for s in wanted), return_exceptions=True)
        problems = [result for result in results if isinstance(result, BaseException)]
        if problems:
            raise min(problems, key=lambda problem: isinstance(problem, Undeliverable))

    async def _post(self, to: Subscription, key: str, body: Json) -> None:
        name = receiver(to.url)
        async with nullcontext() if name is None else self._peers.turn(name):
            await self._send(to.url, to.secret, _Message(key, body))

    async def post(self, url: str, secret: str | None, id: str, body: Json) -> None:
        """Sends one message to an address of its own, signed with a secret's value, or with the operator's own secret.
        Waits for its turn; raises as `carry` does."""
        known = Secret("secret of the subscription", secret) if secret is not None else None
        name = receiver(url)
        async with nullcontext() if name is None else self._peers.turn(name):
            await self._send(url, known, _Message(id, body))

    async def _send(self, url: Json, secret: str | Secret | None, message: _Message) -> Answered | None:
        redactor = Redactor(())
        try:
            signing = secret if isinstance(secret, Secret) else await self._signing(secret)
            redactor = Redactor([signing])
            status, answer = await self._exchange(url, *_signed(signing, message, self._now()))
        except (AddressRefused, TaskFailure) as problem:
            again = isinstance(problem, TaskFailure) and problem.retryable
            raise (DeliveryFailed if again else Undeliverable)(redactor.text(str(problem))) from None
        if 200 <= status < 300:
            return _answered(answer) if status == 200 else None
        if status in RETRYABLE or status >= 500:
            raise DeliveryFailed(f"the receiver answered {status}")
        where = "; redirects are not followed: name the address it leads to" if 300 <= status < 400 else ""
        raise Undeliverable(f"the receiver answered {status}{where}", answered=True)

    async def _signing(self, name: str | None) -> Secret:
        name = name or self._settings.signing_secret
        if name is None:
            raise TaskFailure("webhooks are signed: name a `secret` in the action, or set a `signing_secret`")
        return (await fetch({"secret": name}, self._settings.secrets))[name]

    async def _exchange(self, url: Json, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        """Returns the status, and the body of a 200."""
        if not isinstance(url, str) or not url:
            found = "empty" if url == "" else f"not {'there' if url is None else type(url).__name__}"
            raise TaskFailure(f"the `url` of a webhook must be an address such as https://host/path; it is {found}")
        target = self._client.gate.check_url(url)
        await self._client.prepare()
        import aiohttp

        try:
            async with (
                asyncio.timeout(self._timeout_s),
                self._client.session().post(target, data=body, headers=headers, allow_redirects=False) as response,
            ):
                limit = self._client.policy.max_bytes
                return response.status, await read_body(response, limit) if response.status == 200 else b""
        except TimeoutError:
            raise DeliveryFailed(f"{target.host} did not accept within {self._timeout_s:g} s") from None
        except (aiohttp.ClientError, OSError) as problem:
            raise classified(problem, target.host or "the receiver") from None


class _Message(Struct, frozen=True):
    """A message by its name, which is the same in every try."""

    id: str
    body: Json
    work: str | None = None
    """The idempotency key of the work it asks for."""
    trace: dict[str, str] | None = None
    """Headers that make the work a part of the run's trace."""


def _signed(secret: Secret, message: _Message, now: float) -> tuple[dict[str, str], bytes]:
    """Headers and body of a message. During a rotation a secret has several words, and each gives a signature."""
    at = datetime.fromtimestamp(int(now), UTC)
    body = msgspec.json.encode(message.body)
    try:
        keys = [_key(word) for word in secret.reveal().split()]
    except ValueError:
        text = f"the secret {secret.name!r} is no signing secret: it must be `whsec_` and 24 to 64 bytes in base64"
        raise TaskFailure(text) from None
    signatures = [Webhook(key).sign(message.id, at, body.decode()) for key in keys]
    return {
        "Content-Type": "application/json",
        "webhook-id": message.id,
        "webhook-timestamp": str(int(now)),
        "webhook-signature": " ".join(signatures),
        **({"Idempotency-Key": message.work} if message.work is not None else {}),
        **(message.trace or {}),
    }, body


def _stitch(run: RunId, effect: f.CallWebhook, action: Json, callback: str | None) -> dict[str, Json]:
    """The body that workers of Stitch expect."""
    body = {"runId": run, "nodeId": effect.node, "config": action.get("config"), "input": effect.input}
    return body if callback is None else {**body, "callbackUrl": callback}


def _answered(body: bytes) -> Answered | None:
    """The answer of a worker that has done the work at once; None: it will answer later."""
    try:
        answer = msgspec.json.decode(body, type=dict[str, Json])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if "output" not in answer:
        return None
    try:
        output = plain(answer["output"])
    except NotPlain as problem:
        raise Undeliverable(f"the worker's output is no JSON that can be kept: {problem}", answered=True) from None
    if is_too_deep(output):
        raise Undeliverable(too_deep("the worker's output"), answered=True)
    return Answered(output, report_in(answer))


def receiver(url: Json) -> str | None:
    """The host and port an address leads to; None if it cannot be read, which the gate says better."""
    try:
        target = URL(url)
        return f"{target.raw_host}:{target.port}" if target.raw_host else None
    except (ValueError, TypeError):
        return None


def _key(word: str) -> bytes:
    """Decodes a signing key strictly: the library would drop characters that are not base64 and sign with the rest."""
    key = base64.b64decode(word.removeprefix("whsec_"), validate=True)
    if not 24 <= len(key) <= 64:
        raise ValueError
    return key


def _setting(action: dict[str, Json], input: Json, name: str) -> Json:
    if name in action:
        return compile_source(action[name]).evaluate(DictView({"input": input}))
    return input.get(name) if isinstance(input, dict) else None
