"""Hooks for tests, and deliveries signed after each scheme."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from standardwebhooks import Webhook

from tests.server.client import Caller, Reply, Served

FLOW = """
workflow: {name}
nodes: {{keep: {{action: {{kind: set, values: {{}}}}}}}}
output: {{got: $.input}}
"""
SECRET = "s3cret-of-the-hook"
STANDARD = "whsec_" + base64.b64encode(b"k" * 32).decode()
BODY = b'{"id": 7, "kind": "opened", "who": {"name": "Ann"}}'


def hexed(secret: str, text: bytes) -> str:
    return hmac.new(secret.encode(), text, hashlib.sha256).hexdigest()


def generic(body: bytes, secret: str = SECRET) -> dict[str, str]:
    return {"X-Signature-256": f"sha256={hexed(secret, body)}"}


def github(body: bytes, secret: str = SECRET) -> dict[str, str]:
    return {"X-Hub-Signature-256": f"sha256={hexed(secret, body)}"}


def standard(body: bytes, at: float | None = None) -> dict[str, str]:
    moment = datetime.fromtimestamp(int(time.time() if at is None else at), UTC)
    return {
        "webhook-id": "msg_1",
        "webhook-timestamp": str(int(moment.timestamp())),
        "webhook-signature": "v1,AAAA " + Webhook(STANDARD).sign("msg_1", moment, body.decode()),
    }


def stripe(body: bytes, at: float | None = None) -> dict[str, str]:
    stamp = int(time.time() if at is None else at)
    right = hexed(SECRET, f"{stamp}.".encode() + body)
    return {"Stripe-Signature": f"t={stamp},v0=old,v1={'0' * 64},v1={right}"}


def slack(body: bytes, at: float | None = None) -> dict[str, str]:
    stamp = int(time.time() if at is None else at)
    signed = hexed(SECRET, f"v0:{stamp}:".encode() + body)
    return {"X-Slack-Request-Timestamp": str(stamp), "X-Slack-Signature": f"v0={signed}"}


SCHEMES: dict[str, tuple[Callable[..., dict[str, str]], str]] = {
    "generic": (generic, SECRET),
    "github": (github, SECRET),
    "standard": (standard, STANDARD),
    "stripe": (stripe, SECRET),
    "slack": (slack, SECRET),
}


class Hooked:
    """A hook with a workflow of its own."""

    def __init__(self, service: Served, slug: str, **fields: Any) -> None:
        self.service = service
        self.slug = slug
        service.deploy(FLOW.format(name=slug))
        given = {"source": "generic", "secret": SECRET, "workflow": slug, **fields}
        reply = service.as_("author").api("PUT", f"/hooks/{slug}", {k: v for k, v in given.items() if v is not None})
        assert reply.status in (200, 201), reply

    def deliver(self, body: bytes = BODY, headers: dict[str, str] | None = None, query: str = "") -> Reply:
        sent = {"Content-Type": "application/json", **(generic(body) if headers is None else headers)}
        return Caller(self.service.url, None)("POST", f"/hooks/{self.slug}{query}", body, sent)

    def runs(self) -> int:
        done = self.service.run("runs", "list", "--workflow", self.slug, "--output", "json")
        assert done.returncode == 0, done.stderr
        return len(json.loads(done.stdout))

    def output(self, run: str) -> Any:
        done = self.service.run("runs", "show", run, "--output", "json")
        return json.loads(done.stdout)["output"]["got"]

    def deliveries(self) -> list[Any]:
        items: list[Any] = self.service.as_("author").get(f"/hooks/{self.slug}/deliveries")["items"]
        return items
