"""`http {method?, url, headers?, query?, body?, expect_status?, max_bytes?}`: a request; 2xx, else failure by class.

Trouble on the way (connection, 408, 425, 429, 5xx) is retryable; any other status is a business failure. Every hop goes
through the gate of `net.py`. The idempotency key of the step is sent along: a peer that honours it does a thing once.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from treadle.actions.client import GatedClient
from treadle.actions.configured import Settled, with_secrets
from treadle.actions.failure import Retryable, TaskFailure
from treadle.actions.http_body import decoded, read_body
from treadle.actions.http_request import HttpRequest, build_request
from treadle.actions.net import AddressRefused
from treadle.actions.protocol import Call, Done, Failed, Reply, failed
from treadle.actions.secrets import SecretProvider, require_destination

if TYPE_CHECKING:
    import aiohttp

Json = Any

DEFAULT_BYTES = 1024 * 1024
"""An answer becomes part of the run's history: a megabyte is already a lot of it. Larger ones belong into artifacts."""
RETRYABLE = frozenset([408, 425, 429])
REDIRECTS = frozenset([301, 302, 303, 307, 308])
EXCERPT = 1_000
"""Characters of a refusing answer that are kept in the error."""


class HttpKind:
    """Sends through the engine's one client."""

    name = "http"

    def __init__(
        self, client: GatedClient, secrets: SecretProvider, secret_hosts: dict[str, tuple[str, ...]] | None = None
    ) -> None:
        self._client = client
        self._secrets = secrets
        self._secret_hosts = secret_hosts or {}

    def run(self, call: Call) -> Reply:
        return with_secrets(call, self._secrets, self._exchange, checks_host=True)

    async def warm(self) -> None:
        """Imports what it needs, before the clock of an attempt starts."""
        await self._client.prepare()

    async def close(self) -> None:
        """Closes the client: the engine ends."""
        await self._client.close()

    async def _exchange(self, settled: Settled) -> Done | Failed:
        await self._client.prepare()
        import aiohttp

        policy = self._client.policy
        request = build_request(settled, self._client.gate)
        self._check_destination(settled, request)
        limit = min(_whole(settled.get("max_bytes", DEFAULT_BYTES), "max_bytes"), policy.max_bytes)
        timeout_ms = min(settled.call.timeout_ms or policy.timeout_ms, policy.timeout_ms)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                return await self._follow(request, limit, _expected(settled.get("expect_status")))
        except TimeoutError:
            where = request.url.host
            return failed(f"{where} did not answer within {timeout_ms} ms", "TASK_TIMEOUT", retryable=True)
        except (aiohttp.ClientError, OSError) as problem:
            raise classified(problem, request.url.host or "the peer") from None

    def _check_destination(self, settled: Settled, request: HttpRequest) -> None:
        """Refuses to send a secret that is bound to hosts to any other host, such as one that the author controls."""
        require_destination(settled.secrets.values(), request.url.host)
        for name in settled.secrets:
            hosts = self._secret_hosts.get(name)
            if hosts is not None and request.url.host not in hosts:
                raise TaskFailure(f"the secret {name!r} may not be sent to {request.url.host!r}")

    async def _follow(self, request: HttpRequest, limit: int, expected: frozenset[int] | None) -> Done | Failed:
        for _ in range(self._client.policy.redirects_max + 1):
            async with self._client.session().request(
                request.method,
                request.url,
                headers=request.headers,
                data=request.body,
                allow_redirects=False,
                skip_auto_headers=("Content-Type",),
            ) as response:
                location = response.headers.get("Location")
                wanted = expected is not None and response.status in expected
                if response.status not in REDIRECTS or location is None or wanted:
                    return await _answer(request, response, limit, expected)
                request = request.follow(response.status, location, self._client.gate)
        return failed(f"more than {self._client.policy.redirects_max} redirects; the last leads to {request.url.host}")


async def _answer(
    request: HttpRequest, response: aiohttp.ClientResponse, limit: int, expected: frozenset[int] | None
) -> Done | Failed:
    status = response.status
    body = await read_body(response, limit)
    content_type = response.headers.get("Content-Type", "")
    if status in expected if expected is not None else 200 <= status < 300:
        names = dict.fromkeys(name.lower() for name in response.headers)
        headers = {name: ", ".join(response.headers.getall(name)) for name in names}
        return Done({"status": status, "headers": headers, "body": decoded(body, content_type)})
    details: dict[str, Json] = {"status": status}
    wait_ms = _retry_after_ms(response.headers.get("Retry-After"))
    if wait_ms is not None:
        details["retry_after_ms"] = wait_ms
    if excerpt := body[: 4 * EXCERPT].decode(errors="replace")[:EXCERPT]:
        details["body"] = excerpt
    reason = f" {response.reason}" if response.reason else ""
    message = f"{request.method} {request.shown} answered {status}{reason[:80]}"
    return failed(message, retryable=status in RETRYABLE or status >= 500, details=details)


def classified(problem: Exception, host: str) -> Exception:
    """The failure for an exception of aiohttp: infrastructure, unless the peer's certificate is wrong."""
    import aiohttp

    cause: BaseException | None = problem
    while cause is not None:
        if isinstance(cause, AddressRefused):
            return cause
        if isinstance(cause, ssl.SSLCertVerificationError | aiohttp.ClientConnectorCertificateError):
            return TaskFailure(f"the certificate of {host} cannot be trusted: {cause}")
        cause = getattr(cause, "os_error", None) or cause.__cause__ or cause.__context__
    if isinstance(problem, aiohttp.InvalidURL):
        return TaskFailure("`url` cannot be read as a URL")
    text = f"{type(problem).__name__}: {problem}".removesuffix(": ")
    return Retryable(f"{host} could not be reached: {text}", details={"type": type(problem).__qualname__})


def _retry_after_ms(text: str | None) -> int | None:
    """Seconds or a date; None if it is neither."""
    if text is None:
        return None
    if text.strip().isdecimal():
        return min(int(text), 10**9) * 1000
    try:
        return max(0, round((parsedate_to_datetime(text).timestamp() - time.time()) * 1000))
    except (ValueError, OverflowError):
        return None


def _whole(value: Json, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise TaskFailure(f"`{name}` must be a whole number above 0, not {str(value)[:40]!r}")
    return value


def _expected(value: Json) -> frozenset[int] | None:
    if value is None:
        return None
    statuses = value if isinstance(value, list) else [value]
    return frozenset(_whole(status, "expect_status") for status in statuses)
