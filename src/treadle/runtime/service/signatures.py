"""Signatures of deliveries that come in: whether a sender knows the hook's secret (5.4).

Owns one check per scheme. Promises that signatures are compared in constant time, over the bytes as they came, and that
a scheme with a time of its own accepts five minutes before and after, no more. Must not know what a delivery means.

    generic    X-Signature-256: sha256=<hex HMAC of the body>
    github     X-Hub-Signature-256: sha256=<hex HMAC of the body>
    standard   webhook-id, webhook-timestamp, webhook-signature (Standard Webhooks)
    stripe     Stripe-Signature: t=<seconds>,v1=<hex HMAC of "t.body">
    slack      X-Slack-Request-Timestamp, X-Slack-Signature: v0=<hex HMAC of "v0:t:body">
    none       no signature: the address is all a sender needs to know
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime

from standardwebhooks import Webhook

TOLERANCE_S = 300
"""How far the time of a signed delivery may be from now, both ways (Standard Webhooks, Stripe and Slack agree)."""
_SECONDS = re.compile(r"[0-9]{1,11}")
Headers = Mapping[str, str]
"""By names in lower case."""


def secret_problem(source: str, secret: str | None) -> str | None:
    """Why a secret cannot be used for a scheme; None: it can."""
    if source == "none":
        return None if secret is None else "a hook without signatures has no secret"
    if not secret:
        return f"deliveries of {source!r} are signed: give the secret"
    if source == "standard":
        try:
            key = _standard_key(secret)
        except ValueError:
            return "it must be `whsec_` and base64"
        return None if 16 <= len(key) <= 64 else "it must have 16 to 64 bytes"
    return None


def is_signed(source: str, secret: str, headers: Headers, body: bytes, now_s: float) -> bool:
    """Whether a delivery was signed with this secret."""
    check = _CHECKS[source]
    return check(secret, headers, body, now_s)


def _none(_secret: str, _headers: Headers, _body: bytes, _now_s: float) -> bool:
    return True


def _hex_of_body(header: str) -> Callable[[str, Headers, bytes, float], bool]:
    def check(secret: str, headers: Headers, body: bytes, _now_s: float) -> bool:
        return _is_one(f"sha256={_hex(secret, body)}", [headers.get(header, "")])

    return check


def _standard(secret: str, headers: Headers, body: bytes, now_s: float) -> bool:
    id, stamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    given = headers.get("webhook-signature", "").split(" ")
    seconds = _seconds(stamp)
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return False
    expected = Webhook(_standard_key(secret)).sign(id, datetime.fromtimestamp(seconds or 0, UTC), text)
    return _is_one(expected, given) and bool(id) and _is_fresh(seconds, now_s)


def _stripe(secret: str, headers: Headers, body: bytes, now_s: float) -> bool:
    parts = [part.strip().partition("=") for part in headers.get("stripe-signature", "").split(",")]
    stamps = [value for name, _, value in parts if name == "t"]
    stamp = stamps[0] if len(stamps) == 1 else ""
    expected = _hex(secret, stamp.encode() + b"." + body)
    return _is_one(expected, [value for name, _, value in parts if name == "v1"]) and _is_fresh(_seconds(stamp), now_s)


def _slack(secret: str, headers: Headers, body: bytes, now_s: float) -> bool:
    stamp = headers.get("x-slack-request-timestamp", "")
    expected = f"v0={_hex(secret, b'v0:' + stamp.encode() + b':' + body)}"
    return _is_one(expected, [headers.get("x-slack-signature", "")]) and _is_fresh(_seconds(stamp), now_s)


_CHECKS: dict[str, Callable[[str, Headers, bytes, float], bool]] = {
    "generic": _hex_of_body("x-signature-256"),
    "github": _hex_of_body("x-hub-signature-256"),
    "standard": _standard,
    "stripe": _stripe,
    "slack": _slack,
    "none": _none,
}
SOURCES = tuple(_CHECKS)


def _hex(secret: str, signed: bytes) -> str:
    return hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def _is_one(expected: str, given: Iterable[str]) -> bool:
    """Whether one of the given signatures is the expected one. All are compared, each in constant time."""
    wanted = expected.encode()
    found = [hmac.compare_digest(wanted, text.encode(errors="replace")) for text in given]
    return True in found


def _seconds(text: str) -> int | None:
    return int(text) if _SECONDS.fullmatch(text) else None


def _is_fresh(seconds: int | None, now_s: float) -> bool:
    return seconds is not None and abs(now_s - seconds) <= TOLERANCE_S


def _standard_key(secret: str) -> bytes:
    """Raises ValueError for a secret that is no base64."""
    return base64.b64decode(secret.removeprefix("whsec_"), validate=True)
