"""Small JSON documents from elsewhere, for the service itself: an OpenID provider's description, keys and tokens.

Promises what every action's request promises (`actions/net.py`): a name is resolved once, all its addresses are judged,
and the address that was judged is the one connected to; no redirects, a bound on bytes and on time.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import aiohttp
from yarl import URL

from treadle.actions.client import GatedClient
from treadle.actions.http_body import read_body
from treadle.actions.net import AddressRefused, NetPolicy, literal
from treadle.actions.secrets import EnvironmentSecrets, fetch, require_destination
from treadle.actions.task_failure import TaskFailure
from treadle.errors import TreadleError
from treadle.runtime.access.secrets import Secrets, SecretsInOrder
from treadle.runtime.surroundings.clock import SystemClock

BYTES_MAX = 256 * 1024
WAIT_S = 10.0


class FetchFailed(TreadleError):
    """The document could not be fetched; says why, without what was sent."""


class GatedFetch:
    """See the module's docstring."""

    def __init__(self, allow: tuple[str, ...]) -> None:
        self._client = GatedClient(NetPolicy(allow=allow))

    async def json(
        self, url: str, form: Mapping[str, str] | None = None, login: tuple[str, str] | None = None
    ) -> dict[str, Any]:
        """A JSON object: by GET, or by POST of a form. Raises FetchFailed."""
        try:
            target = self._checked(url)
            auth = aiohttp.BasicAuth(*login) if login is not None else None
            async with (
                asyncio.timeout(WAIT_S),
                self._client.session().request(
                    "GET" if form is None else "POST",
                    target,
                    data=dict(form) if form is not None else None,
                    auth=auth,
                    allow_redirects=False,
                    headers={"Accept": "application/json"},
                ) as response,
            ):
                body = await read_body(response, BYTES_MAX)
                if response.status != 200:
                    raise FetchFailed(f"{target.host} answered {response.status}")
            found = json.loads(body)
        except (AddressRefused, TaskFailure, TimeoutError, aiohttp.ClientError, OSError, ValueError) as problem:
            raise FetchFailed(f"{type(problem).__name__}: {problem}"[:300]) from None
        if not isinstance(found, dict):
            raise FetchFailed("the answer is no JSON object")
        return found

    def _checked(self, url: str) -> URL:
        target = self._client.gate.check_url(url)
        address = literal(target.host or "")
        if target.scheme != "https" and not (address is not None and address.is_loopback):
            raise FetchFailed("only https is used, but for loopback")
        return target

    async def close(self) -> None:
        await self._client.close()


async def own_secret(secrets: Secrets, name: str, url: str) -> str:
    """A secret that the service itself sends to an address: a stored one, else of the environment. Raises FetchFailed
    if there is none, or it is for other hosts."""
    try:
        clock = SystemClock()
        found = await fetch({"secret": name}, SecretsInOrder(secrets, clock, EnvironmentSecrets()))
        require_destination(found.values(), URL(url).host)
    except TaskFailure as problem:
        raise FetchFailed(str(problem)) from None
    return found[name].reveal()
