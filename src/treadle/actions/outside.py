"""The kinds that reach outside, for an engine or a worker: one call installs them, one closes them.

`Registry()` alone stays offline: in a scenario `http` and `shell` must be mocked. An engine or a worker calls

    outside = install_outside(registry, OutsideSettings(net=NetPolicy(allow=("10.0.0.0/8",))))
    …
    await registry.close()

Owns the operator's settings for these kinds. Must not read files or the environment by itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import Struct, field

from treadle.actions.client import GatedClient
from treadle.actions.http import HttpKind
from treadle.actions.net import NetPolicy
from treadle.actions.registry import Registry
from treadle.actions.secrets import EnvironmentSecrets, SecretProvider
from treadle.actions.shell import ShellKind, ShellPolicy
from treadle.actions.unavailable import OutsideKind


class Subscription(Struct, frozen=True, kw_only=True):
    """An address that events are sent to: `custom.<type>` of `emit`, `gate.opened`, `gate.reminded`."""

    url: str
    types: tuple[str, ...] = ("*",)
    """Patterns: `custom.order.*`, `gate.opened`, `*`."""
    secret: str | None = None
    """Name of the signing secret; `OutsideSettings.signing_secret` unless given."""


class OutsideSettings(Struct, frozen=True, kw_only=True):
    """The operator's settings for everything that leaves the engine."""

    net: NetPolicy = field(default_factory=NetPolicy)
    shell: ShellPolicy = field(default_factory=ShellPolicy)
    secrets: SecretProvider = field(default_factory=EnvironmentSecrets)
    secret_hosts: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Secret → the only hosts it may be sent to by `http`."""
    signing_secret: str | None = None
    """Name of the secret that signs webhooks without one of their own."""
    subscriptions: tuple[Subscription, ...] = ()
    public_url: str | None = None
    """Address at which workers reach this engine's API: the start of callback addresses."""


@dataclass(frozen=True, slots=True)
class Outside:
    """The installed kinds' client and settings; the courier of webhooks uses the same client."""

    settings: OutsideSettings
    client: GatedClient


def install_outside(registry: Registry, settings: OutsideSettings | None = None) -> Outside:
    """Puts the real `http` and `shell` in place of the offline ones; a kind registered by the user stays."""
    settings = settings or OutsideSettings()
    client = GatedClient(settings.net)
    for kind in (
        HttpKind(client, settings.secrets, settings.secret_hosts),
        ShellKind(settings.shell, settings.secrets),
    ):
        if isinstance(registry.kind(kind.name), OutsideKind | HttpKind | ShellKind):
            registry.register(kind)
    return Outside(settings, client)
