"""Provider profiles: the operator describes a provider once, and a workflow only names the profile.

Owns the settings of the kind `llm`. Promises that no secret is in them: `api_key` is the *name* of a secret. Must not
know any provider's client.
"""

from __future__ import annotations

from typing import Literal
from urllib.parse import urlsplit

from msgspec import Struct

from treadle.actions.failure import TaskFailure
from treadle.actions.nearest import nearest

TIMEOUT_MS = 600_000
"""Time without a byte from the provider. Reasoning models think for minutes before the first one; both SDKs wait as
long."""


_PUBLIC = {"openai": "api.openai.com", "anthropic": "api.anthropic.com"}


class Price(Struct, frozen=True, forbid_unknown_fields=True):
    """What a million tokens cost, in the operator's currency."""

    input: float
    output: float


class Profile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One way to reach a model."""

    name: str
    provider: Literal["openai", "anthropic"] = "openai"
    """The protocol: `openai` is chat completions, which most local servers and gateways speak too."""
    base_url: str | None = None
    """The provider's address; None: its public one."""
    api_key: str | None = None
    """The name of a secret; None: the server needs no key."""
    model: str
    """The model of actions that name none."""
    models: tuple[str, ...] = ()
    """Other models that an action may name; empty: any."""
    temperature: float | None = None
    max_tokens: int | None = None
    price: Price | None = None
    """The price of `model`; without a price there is no `cost`."""
    prices: dict[str, Price] = {}
    """The prices of other models, by name."""
    structured: Literal["auto", "native", "tool", "prompt"] = "auto"
    """How JSON is asked for: `native` response format, a forced `tool`, by instructions in the `prompt`. `auto` is
    native for openai and tool for anthropic."""
    timeout_ms: int = TIMEOUT_MS

    def __post_init__(self) -> None:
        if self.base_url is None and self.api_key is None:
            raise ValueError(
                f"profile {self.name!r} needs an api_key (the name of a secret) or the base_url of a server"
            )

    @property
    def host(self) -> str | None:
        """The host that its key is sent to."""
        return urlsplit(self.base_url).hostname if self.base_url is not None else _PUBLIC[self.provider]

    def model_for(self, wanted: str | None) -> str:
        """The model to use; raises `TaskFailure` where the operator does not allow it."""
        if wanted is None or wanted == self.model or not self.models or wanted in self.models:
            return wanted or self.model
        raise TaskFailure(f"profile {self.name!r} does not allow the model {wanted!r}{nearest(wanted, self.models)}")

    def price_of(self, model: str) -> Price | None:
        """The price of a model; None if the operator has given none."""
        return self.prices.get(model) or (self.price if model == self.model else None)


class LlmSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The operator's settings for language models."""

    profiles: tuple[Profile, ...] = ()
    default: str | None = None
    """The profile of actions that name none; a single profile is the default by itself."""
    proxy: str | None = None
    """An HTTP proxy for all providers. The environment's is not used."""

    def profile(self, name: str | None) -> Profile:
        """The profile of that name, or the default; raises `TaskFailure`."""
        known = {profile.name: profile for profile in self.profiles}
        if not known:
            raise TaskFailure("no llm profile is configured: the operator adds one", kind="NOT_FOUND")
        name = name or self.default or (self.profiles[0].name if len(known) == 1 else None)
        if name is None:
            raise TaskFailure(f"the action names no profile, and none of {', '.join(known)} is the default")
        if name not in known:
            raise TaskFailure(f"there is no llm profile {name!r}{nearest(name, known)}", kind="NOT_FOUND")
        return known[name]
