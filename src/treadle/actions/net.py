"""The gate to the network: which addresses an action may talk to.

Owns the policy. Promises: only http and https; no user information in an address; a numeric host only in its usual
spelling (`2130706433`, `0x7f.1`, `127.1`, `0177.0.0.1` are refused, not interpreted); every address that is not public
is refused unless the operator lists it, after unwrapping IPv4 inside IPv6 (mapped, compatible, 6to4, NAT64). A name is
judged by *all* the addresses it resolves to. `client.py` makes sure that the address judged is the one connected to.

    NetPolicy(allow=("127.0.0.1:*", "10.0.0.0/8", "*.internal:443", "[::1]:8080"))

An entry is an address, a network or a name (`*.` stands for any depth below), with an optional port. A name opens
loopback and private addresses only: to reach link-local ones, where clouds keep their metadata, list the address.
"""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

from msgspec import Struct
from yarl import URL

from treadle.errors import TreadleError

Address = IPv4Address | IPv6Address

_NUMERIC = re.compile(r"(?:0[xX][0-9a-fA-F]*|[0-9]+)\Z")
_HOST = re.compile(r"[A-Za-z0-9_.-]{1,253}\Z")
_AUTHORITY = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:)?//([^/?#]*)")
_PATH = re.compile(r"[^?#]{0,60}")
"""The part of an address that may be shown: its query may hold secrets."""
_GLOBAL_6 = ip_network("2000::/3")
_NEVER_PUBLIC = tuple(
    map(
        ip_network,
        (
            "168.63.129.16/32",  # Azure's host services answer on a public address
            "192.0.0.0/24",  # protocol assignments; Oracle's metadata among them
            "192.88.99.0/24",  # 6to4 relays
            "2001::/23",  # Teredo, ORCHID, benchmarking
            "2001:db8::/32",
            "3fff::/20",  # documentation; younger than some of our Pythons' tables
        ),
    )
)
_NAT64 = ip_network("64:ff9b::/96")
_COMPATIBLE = ip_network("::/96")


class AddressRefused(TreadleError):
    """The policy does not let an action talk to this address."""


class NetPolicy(Struct, frozen=True, kw_only=True):
    """The addresses that the operator lets actions reach, and the limits of every exchange."""

    allow: tuple[str, ...] = ()
    """Addresses that are not public and are allowed nevertheless."""
    max_bytes: int = 16 * 1024 * 1024
    """Most bytes of an answer, whatever an action's config says: an answer becomes part of a run's history."""
    timeout_ms: int = 300_000
    """Longest exchange, whatever an action's config says: a slow peer must not occupy an attempt for ever."""
    redirects_max: int = 5

    def __post_init__(self) -> None:
        for entry in self.allow:
            _entry(entry)


class _Entry(Struct, frozen=True):
    port: int | None
    network: Any = None
    name: str = ""

    def admits_address(self, address: Address, port: int) -> bool:
        return self.network is not None and self.port in (None, port) and address in self.network

    def admits_name(self, host: str, port: int) -> bool:
        if not self.name or self.port not in (None, port):
            return False
        return host.endswith(self.name[1:]) if self.name.startswith("*.") else host == self.name


@lru_cache(256)
def _entry(text: str) -> _Entry:
    host, port = _split(text.strip())
    try:
        return _Entry(port, ip_network(host, strict=False))
    except ValueError:
        pass
    name = host.lower().rstrip(".")
    if not re.fullmatch(r"(?:\*\.)?[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?", name) or _NUMERIC.match(
        name.rpartition(".")[2]
    ):
        raise ValueError(
            f"{text!r} is neither an address, a network nor a name; write '10.0.0.0/8' or '*.internal:443'"
        )
    return _Entry(port, name=name)


def _split(text: str) -> tuple[str, int | None]:
    match = re.fullmatch(r"\[([^\]]+)\](?::(\*|\d+))?|([^:]+)(?::(\*|\d+))?|([0-9a-fA-F:./]+)", text)
    if match is None:
        raise ValueError(f"{text!r} is no entry of an allow list; write '127.0.0.1:8080', '[::1]:*' or '*.internal'")
    port = match[2] or match[4]
    return match[1] or match[3] or match[5], None if port in (None, "*") else int(port)


class AddressGate:
    """Judges addresses by one policy."""

    def __init__(self, policy: NetPolicy) -> None:
        self._entries = [_entry(text) for text in policy.allow]

    def check_url(self, text: str | URL) -> URL:
        """The address, understood; raises `AddressRefused`. Where a name leads is judged when it resolves."""
        check_spelling(str(text))
        try:
            url = URL(text)
            port = url.port
        except (ValueError, TypeError):
            raise AddressRefused("the address cannot be read as a URL") from None
        if not url.scheme:
            shown = _PATH.match(str(text))
            raise AddressRefused(f"{shown[0] if shown else ''!r} is no address: it must begin with https:// or http://")
        if url.scheme not in ("http", "https"):
            raise AddressRefused(f"only http and https are supported, not {url.scheme!r}")
        host = url.raw_host
        if not host or port is None or not 0 < port < 65536:
            raise AddressRefused("the address has no host or no usable port")
        self._check_host(host, port)
        return url

    def _check_host(self, host: str, port: int) -> None:
        address = literal(host)
        if address is not None:
            self.check_address(address, port)
        elif not _HOST.match(host) or _NUMERIC.match(host.rstrip(".").rpartition(".")[2]):
            raise AddressRefused(f"{host!r} is an unusual spelling of an address; write it in the usual form")

    def check_resolved(self, host: str, port: int, addresses: list[str]) -> bool:
        """All addresses of a name; raises `AddressRefused`. True if a name entry opened them."""
        name = host.lower().rstrip(".")
        named = any(entry.admits_name(name, port) for entry in self._entries)
        for text in addresses:
            address = literal(text)
            if address is None:
                raise AddressRefused(f"{host!r} resolves to something that is not an address")
            if not (named and _is_private(unwrapped(address))):
                self.check_address(address, port, host)
        return named

    def check_address(self, address: Address, port: int, host: str = "") -> None:
        """One address; raises `AddressRefused`."""
        inner = unwrapped(address)
        if is_public(inner) or any(entry.admits_address(inner, port) for entry in self._entries):
            return
        what = f"{host!r} resolves to {inner}, which" if host else f"{address}"
        entry = f"[{inner}]:{port}" if inner.version == 6 else f"{inner}:{port}"
        raise AddressRefused(
            f"{what} is not a public address; the operator can allow it: the setting `net.allow`, "
            f'`allow = ["{entry}"]` under [net] of treadle.toml'
        )


def check_spelling(text: str) -> None:
    """What URL libraries quietly repair, each in its own way, is refused: they would not agree on the host."""
    if not text.isprintable():
        raise AddressRefused("an address must not hold control characters")
    match = _AUTHORITY.match(text)
    authority = match[1] if match is not None else ""
    if "@" in authority:
        raise AddressRefused("an address must not hold user information: use an Authorization header with a secret")
    if "\\" in authority or any(map(str.isspace, authority)):
        raise AddressRefused("the host of an address must not hold spaces or backslashes")


def literal(host: str) -> Address | None:
    """An address in its usual spelling, else None. Zones (`fe80::1%eth0`) are no usual spelling."""
    if "%" in host:
        return None
    try:
        return ip_address(host)
    except ValueError:
        return None


def unwrapped(address: Address) -> Address:
    """The IPv4 address inside an IPv6 one, where packets would end up; else the address itself."""
    if isinstance(address, IPv4Address):
        return address
    inside = address.ipv4_mapped or address.sixtofour
    if inside is not None:
        return inside
    if address in _NAT64 or (address in _COMPATIBLE and int(address) > 1):
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def is_public(address: Address) -> bool:
    """Whether an address, already unwrapped, is on the public internet."""
    if any(address in network for network in _NEVER_PUBLIC if network.version == address.version):
        return False
    if isinstance(address, IPv6Address) and address not in _GLOBAL_6:
        return False
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)


_UNIQUE_LOCAL = IPv6Network("fc00::/7")
_METADATA = ip_address("fd00:ec2::254")


def _is_private(address: Address) -> bool:
    """What a name entry may open: loopback and private networks, never link-local, multicast or metadata."""
    if isinstance(address, IPv6Address):
        return address.is_loopback or (address in _UNIQUE_LOCAL and address != _METADATA)
    inside = address.is_loopback or address.is_private
    return inside and not (
        address.is_link_local or address.is_multicast or address.is_unspecified or address.is_reserved
    )
