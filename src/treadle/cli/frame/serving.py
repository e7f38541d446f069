"""Serving a store over HTTP from a verb: its options, whom an address lets in, and the end in good order."""

from __future__ import annotations

import asyncio
import ipaddress
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from socket import socket
from typing import TYPE_CHECKING, Annotated, NamedTuple

from cyclopts import Parameter

from treadle.cli.frame.exits import STORE, USAGE, VerbFailed
from treadle.project.settings import Configuration

if TYPE_CHECKING:
    from treadle.runtime.client import Client
    from treadle.server.settings import ServerSettings

PORT = 8787
HostOption = Annotated[str, Parameter(help="The address to listen on.")]
PortOption = Annotated[int | None, Parameter(help="The port to listen on; 0: any. Else 8787, or any if that is taken.")]
BehindTlsOption = Annotated[
    bool, Parameter(help="A proxy in front ends TLS: allows an address other than loopback.", negative="")
]
AllowHostOption = Annotated[
    tuple[str, ...], Parameter(help="Names under which the service may be asked for, beside loopback.", negative="")
]


ProjectOption = Annotated[
    tuple[str, ...],
    Parameter(help="Serve another store, too, below /p/NAME: NAME=STORE. Repeat it.", negative="", name="--project"),
]
_PROJECT = re.compile(r"([a-z0-9][a-z0-9_-]{0,62})=(.+)")


def project_stores(texts: Sequence[str]) -> dict[str, str]:
    """`NAME=STORE` by name. Raises VerbFailed."""
    found: dict[str, str] = {}
    for text in texts:
        match = _PROJECT.fullmatch(text)
        if match is None or match[1] in found:
            why = "is there twice" if match is not None else "is not NAME=STORE, with a name of a-z, 0-9, _ and -"
            raise VerbFailed(USAGE, f"--project {text}: it {why}")
        found[match[1]] = match[2]
    return found


class ListenAt(NamedTuple):
    """Where to serve, and under which names."""

    host: str
    port: int | None
    """None: the usual one, or any other if that is taken."""
    behind_tls: bool = False
    hosts: tuple[str, ...] = ()


def listen(at: ListenAt) -> socket:
    """A socket that listens. Raises VerbFailed."""
    from treadle.server.serving import CannotListen, bound

    if at.port is not None and not 0 <= at.port < 1 << 16:
        raise VerbFailed(USAGE, f"--port {at.port}: a port is a number from 0 to 65535")
    try:
        return bound(at.host, PORT if at.port is None else at.port)
    except CannotListen as taken:
        if at.port is None and is_loopback(at.host):
            return bound(at.host, 0)  # the line that is printed says which
        raise VerbFailed(STORE, str(taken)) from None


async def refuse_strangers(client: Client, at: ListenAt) -> None:
    """Refuses an address that strangers reach, unless TLS is in front and there is a key. Raises VerbFailed."""
    host = at.host
    if is_loopback(host):
        return
    if not at.behind_tls:
        raise VerbFailed(
            USAGE,
            f"--host {host}: others on the network could read what is sent; put a proxy with TLS in front and say"
            " --behind-tls, or listen on 127.0.0.1",
        )
    if not await client.keys.list():
        raise VerbFailed(
            USAGE,
            f"--host {host}: there is no key yet, so nobody could sign in;"
            " `treadle keys create NAME --role admin` makes one",
        )


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def server_settings(config: Configuration, at: ListenAt) -> ServerSettings:
    """The settings of the service, out of those of the project and of the command line. Raises SettingsInvalid."""
    import msgspec

    from treadle.errors import SettingsInvalid
    from treadle.server.settings import ServerSettings

    given = {
        name.removeprefix("server."): config[name]
        for name in config.values
        if name.startswith("server.") and config[name] is not None
    }
    own = f"[{at.host}]" if ":" in at.host else at.host.lower()  # the address that the service itself says
    hosts = (*ServerSettings().hosts, own, *given.pop("hosts"), *at.hosts)
    known = {**given, "hosts": hosts, "behind_tls": at.behind_tls, "net_allow": config["net.allow"]}
    try:
        return msgspec.convert(known, ServerSettings)
    except (msgspec.ValidationError, ValueError) as problem:
        raise SettingsInvalid(f"settings: server: {problem} (treadle config --origin shows them)") from None


async def until_stopped(
    clients: Mapping[str, Client],
    listening: socket,
    config: Configuration,
    at: ListenAt,
    *,
    beside: Sequence[asyncio.Task[None]] = (),
    landing: str = "/",
    told: Callable[[str], object] = lambda _link: None,
) -> None:
    """Serves projects by name (the one without a name at the root) until the process is asked to stop, or one of the
    tasks `beside` it fails: then that failure is raised. The start-up link leads to the page `landing`; `told` is
    called with the link."""
    from treadle.cli.frame.inputs import shared
    from treadle.cli.screen.output import say
    from treadle.runtime.engine import Engine
    from treadle.server.projects import ProjectsApplication
    from treadle.server.serving import address_of, serve

    application = ProjectsApplication(clients, server_settings(config, at))
    for service in application.services:
        service.known = shared(config)
        service.landing = landing
    stopping = asyncio.Event()

    def ready() -> None:
        address = address_of(listening)
        for service in application.services if is_loopback(at.host) else ():
            link = f"{address}{service.prefix}/?token={service.make_link()}"
            say(f"sign in by this link, once: {link}")
            told(link)
        print(f"treadle: serving {address}", flush=True)

    async def drain() -> None:
        say("stopping; requests and attempts under way may end")
        await asyncio.gather(*(service.close() for service in application.services))
        await asyncio.gather(*(client.close() for client in clients.values() if isinstance(client, Engine)))

    task = asyncio.create_task(serve(application, listening, ready=ready, stopping=stopping, drain=drain))
    with suppress(asyncio.CancelledError):  # asked to stop: in good order, below
        await asyncio.wait({task, *beside}, return_when=asyncio.FIRST_COMPLETED)
    stopping.set()
    await task
    say("stopped")
    for other in beside:
        if other.done():
            other.result()
