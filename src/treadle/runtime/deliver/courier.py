"""The courier: webhooks to workers and subscribers, signed by Standard Webhooks, one try per call.

Owns the messages and the meaning of each answer: 2xx is accepted; 408, 425, 429, 5xx and a broken connection are worth
another try; any other status, a redirect included, and an address that the gate refuses are not (`Undeliverable`).
Promises that a repeated try carries the same `webhook-id` and body, with a new timestamp, so receivers count it once.
Must not retry (`outgoing` does), and must not change the run (the coordinator does).

To a worker (2.7):    {run_id, workflow, node_id, visit, attempt, idempotency_key, input, config, callback_url?,
                       callback_token}. `webhook-id` names the message, one per attempt; `idempotency_key` names the
                       work, the same in every automatic retry (2.1).
To a subscriber:      {type, timestamp?, data: {run_id, workflow, …}}
    of a gate: visit, node_id, title, assign, form, opened, due, claimed_by, can (the commands a person may give)
"""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Callable
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any

import aiohttp
import msgspec
from standardwebhooks import Webhook

from treadle.actions.failure import TaskFailure
from treadle.actions.http import RETRYABLE, classified
from treadle.actions.net import AddressRefused
from treadle.actions.outside import Outside, Subscription
from treadle.actions.redact import Redactor
from treadle.actions.secrets import Secret, fetch
from treadle.errors import TreadleError
from treadle.expression.sources import compile_source
from treadle.expression.view import DictView
from treadle.model import effects as f
from treadle.model.ids import RunId, attempt_name
from treadle.runtime.base.ports import Undeliverable
from treadle.runtime.deliver.callbacks import callback_token
from treadle.store.port import can

Json = Any
TIMEOUT_S = 10.0
"""A worker acknowledges and works afterwards; it must not hold a connection while it works."""


class DeliveryFailed(TreadleError):
    """This try failed; another may succeed."""


class WebhookCourier:
    """Implements `ports.Courier` on the engine's gated client."""

    def __init__(
        self, outside: Outside, key: bytes, *, now: Callable[[], float] = time.time, timeout_s: float = TIMEOUT_S
    ) -> None:
        self._client = outside.client
        self._settings = outside.settings
        self._key = key
        self._now = now
        self._timeout_s = timeout_s

    async def carry(self, run: RunId, effect: f.Effect, context: Json) -> None:
        """Makes one try. `context` has `workflow`; for a webhook also `action` (its config), for a gate also `gate`
        (its title, form and so on). Except for a webhook it has `key`, the stable name of the outbox row, and may have
        `at`, the milliseconds of the decision."""
        match effect:
            case f.CallWebhook():
                await self._call_worker(run, effect, context)
            case f.Publish():
                await self._tell(run, f"custom.{effect.type}", {"data": effect.data}, context)
            case f.OpenGate() | f.RemindGate():
                type = "gate.opened" if isinstance(effect, f.OpenGate) else "gate.reminded"
                known = {"visit": effect.token, **context["gate"], "can": can(effect.token)}
                await self._tell(run, type, known, context)
            case f.CloseGate() | f.NoteClaim():
                pass
            case _:
                raise Undeliverable(f"{effect.__class__.__name__} is not for the world outside")

    async def _call_worker(self, run: RunId, effect: f.CallWebhook, context: Json) -> None:
        action = context["action"]
        url = _setting(action, effect.input, "url")
        token = callback_token(self._key, run, effect.token, effect.attempt)
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
        if self._settings.public_url is not None:
            body["callback_url"] = f"{self._settings.public_url.rstrip('/')}/callbacks/{token}"
        await self._send(url, action.get("secret"), attempt_name(run, effect.token, effect.attempt), body)

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
        await self._send(to.url, to.secret, key, body)

    async def _send(self, url: Json, secret: str | None, id: str, body: Json) -> None:
        redactor = Redactor(())
        try:
            signing = await self._signing(secret)
            redactor = Redactor([signing])
            status = await self._exchange(url, _signed(signing, id, self._now(), msgspec.json.encode(body)))
        except (AddressRefused, TaskFailure) as problem:
            again = isinstance(problem, TaskFailure) and problem.retryable
            raise (DeliveryFailed if again else Undeliverable)(redactor.text(str(problem))) from None
        if 200 <= status < 300:
            return
        again = status in RETRYABLE or status >= 500
        raise (DeliveryFailed if again else Undeliverable)(f"the receiver answered {status}")

    async def _signing(self, name: str | None) -> Secret:
        name = name or self._settings.signing_secret
        if name is None:
            raise TaskFailure("webhooks are signed: name a `secret` in the action, or set a `signing_secret`")
        return (await fetch({"secret": name}, self._settings.secrets))[name]

    async def _exchange(self, url: Json, message: tuple[dict[str, str], bytes]) -> int:
        if not isinstance(url, str) or not url:
            found = "empty" if url == "" else f"not {'there' if url is None else type(url).__name__}"
            raise TaskFailure(f"the `url` of a webhook must be an address such as https://host/path; it is {found}")
        target = self._client.gate.check_url(url)
        headers, body = message
        try:
            async with (
                asyncio.timeout(self._timeout_s),
                self._client.session().post(target, data=body, headers=headers, allow_redirects=False) as response,
            ):
                return response.status
        except TimeoutError:
            raise DeliveryFailed(f"{target.host} did not accept within {self._timeout_s:g} s") from None
        except (aiohttp.ClientError, OSError) as problem:
            raise classified(problem, target.host or "the receiver") from None


def _signed(secret: Secret, id: str, now: float, body: bytes) -> tuple[dict[str, str], bytes]:
    """Headers and body of a message. During a rotation a secret has several words, and each gives a signature."""
    at = datetime.fromtimestamp(int(now), UTC)
    try:
        keys = [_key(word) for word in secret.reveal().split()]
    except ValueError:
        message = f"the secret {secret.name!r} is no signing secret: it must be `whsec_` and 24 to 64 bytes in base64"
        raise TaskFailure(message) from None
    signatures = [Webhook(key).sign(id, at, body.decode()) for key in keys]
    return {
        "Content-Type": "application/json",
        "webhook-id": id,
        "webhook-timestamp": str(int(now)),
        "webhook-signature": " ".join(signatures),
    }, body


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
