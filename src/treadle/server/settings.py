"""Settings of the service: limits and names an operator decides about."""

from __future__ import annotations

from ipaddress import ip_network

from msgspec import Struct

MIB = 1024 * 1024


class OidcSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An OpenID provider, and what its claims mean here."""

    issuer: str
    """Its address; `/.well-known/openid-configuration` below it says the rest."""
    client_id: str
    client_secret: str | None = None
    """The name of the secret that holds the client's secret; None: a public client, with PKCE alone."""
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    user_claim: str = "email"
    """The claim that names the person, as gates know them. An e-mail address counts only if it was verified."""
    groups_claim: str = "groups"
    roles_claim: str | None = None
    """A claim that lists roles by their names here."""
    roles: dict[str, tuple[str, ...]] = {}
    """Group → roles of its members; `*` stands for everybody who signs in."""


class ServerSettings(Struct, frozen=True, kw_only=True):
    """How a service behaves. The defaults suit one machine and a handful of clients."""

    body_max: int = MIB
    """Bytes of a request's body, after decompression."""
    artifact_max: int = 64 * MIB
    """Bytes of an uploaded artifact."""
    body_wait_s: float = 20.0
    """How long the body of a request may take to arrive: a client that sends a byte a minute must not hold a place."""
    hosts: tuple[str, ...] = ("localhost", "127.0.0.1", "[::1]")
    """Values of the `Host` header that are answered, without port; `*`: any. Others get 400: a page elsewhere that
    makes a browser resolve its own name to this machine must not reach the service."""
    origins: tuple[str, ...] = ()
    """Origins that browsers may call the API from (CORS); none: only pages of the service itself."""
    metrics_from: tuple[str, ...] = ()
    """Addresses that may read `/metrics` without a key."""
    behind_tls: bool = False
    """TLS ends in front of this process: cookies are `Secure`, and addresses begin with https."""
    wait_max_ms: int = 60_000
    """The longest a request may ask to wait for something."""
    requests_per_s: int | None = None
    """Requests a second that each key and each address may make; None: no limit."""
    requests_burst: int = 100
    """Requests that may come at once before the limit counts."""
    failures_per_min: int = 30
    """Wrong keys a minute from one address; beyond that they are told to wait. A key has 256 random bits: this is for
    those who do not know that, and for the log."""
    proxies: tuple[str, ...] = ()
    """Addresses and networks of proxies in front, whose `X-Forwarded-For` is believed; none: with `behind_tls` the one
    that connects."""
    session_idle_ms: int = 12 * 3_600_000
    """How long a browser session lives without being used."""
    session_max_ms: int = 7 * 24 * 3_600_000
    """How long a browser session lives at most."""
    oidc: OidcSettings | None = None
    """An OpenID provider that people sign in with; None: they sign in with a key."""
    stream_ping_s: float = 15.0
    """How often a stream sends a comment line, so that proxies and readers see that it is alive."""
    stream_slow_s: float = 5.0
    """A reader of a stream that does not take a message for so long is too slow to follow."""
    stream_give_up_s: float = 30.0
    """A reader of a stream that takes nothing at all for so long is cut off without a word: it would not hear it."""
    stream_after_end_s: float = 30.0
    """How long the stream of a run stays open after `end`: late events may come."""
    net_allow: tuple[str, ...] = ()
    """Addresses that are not public and that the service may reach nevertheless: an OpenID provider inside."""

    def __post_init__(self) -> None:
        for text in self.proxies:
            ip_network(text, strict=False)
        if self.failures_per_min < 1 or (self.requests_per_s is not None and self.requests_per_s < 1):
            raise ValueError("failures_per_min and requests_per_s must be at least 1")
