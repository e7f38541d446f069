"""Rate limits: requests of each key and of each address (5.6). Off unless the operator sets them."""

from __future__ import annotations

from starlette.requests import Request

from treadle.server.addresses import address_of
from treadle.server.buckets import TokenBuckets
from treadle.server.callers import slowed
from treadle.server.settings import ServerSettings
from treadle.server.who import Who


class RequestLimits:
    """See the module's docstring."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self.is_off = settings.requests_per_s is None
        self._buckets: TokenBuckets | None = None
        if settings.requests_per_s is not None:
            self._buckets = TokenBuckets(settings.requests_per_s, max(1, settings.requests_burst))

    def count_address(self, request: Request) -> None:
        """Counts a request for the address it comes from. Raises RATE_LIMITED."""
        if self._buckets is not None:
            self._count("address:" + address_of(request, self._settings), "this address asks too often")

    def count_caller(self, who: Who) -> None:
        """Counts a request for its key or session. Raises RATE_LIMITED."""
        if self._buckets is not None and who.id:
            self._count(who.id, "this key asks too often")

    def _count(self, name: str, detail: str) -> None:
        assert self._buckets is not None
        wait_s = self._buckets.take(name)
        if wait_s > 0:
            raise slowed(wait_s, detail)
