"""The address a request comes from, and the address that the browser believes to talk to.

Promises that `X-Forwarded-For` counts only behind a proxy that the operator has named, or that ends TLS: anybody else
could write another address into it. It is read from its end, where the nearest proxy has written.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from starlette.requests import Request

from treadle.server.settings import ServerSettings

UNKNOWN = "unknown"


def address_of(request: Request, settings: ServerSettings) -> str:
    """The address of the caller: of the connection, or as the proxies in front have written it down."""
    nearest = request.client.host if request.client is not None else UNKNOWN
    if not _is_proxy(nearest, settings, nearest=True):
        return nearest
    address = nearest
    for text in reversed(",".join(request.headers.getlist("x-forwarded-for")).split(",")):
        found = _address(text.strip())
        if found is None:
            return address
        address = found
        if not _is_proxy(address, settings, nearest=False):
            return address
    return address


def _is_proxy(address: str, settings: ServerSettings, *, nearest: bool) -> bool:
    if not settings.proxies:
        return nearest and settings.behind_tls
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    return any(parsed in network for network in _networks(settings.proxies))


@lru_cache(16)
def _networks(texts: tuple[str, ...]) -> tuple[IPv4Network | IPv6Network, ...]:
    return tuple(ip_network(text, strict=False) for text in texts)


def _address(text: str) -> str | None:
    """An address without its port, in its usual spelling; None if it is none."""
    plain = text[1:].partition("]")[0] if text.startswith("[") else text
    if plain.count(":") == 1:
        plain = plain.partition(":")[0]
    try:
        return str(ip_address(plain))
    except ValueError:
        return None


def is_tls(request: Request, settings: ServerSettings) -> bool:
    """Whether the browser speaks TLS."""
    return settings.behind_tls or request.url.scheme == "https"


def own_origin(request: Request, settings: ServerSettings) -> str:
    """The origin of the service's own pages. The `Host` header was checked against the list of names before."""
    host = request.headers.get("host", "").lower()
    scheme = "https" if is_tls(request, settings) else "http"
    return f"{scheme}://{host.removesuffix(':443' if scheme == 'https' else ':80')}"
