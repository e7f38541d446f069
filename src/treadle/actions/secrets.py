"""Secrets: references in definitions, values only in the hand of the action that sends them.

A definition says `{secret: NAME}`, or `{secret: NAME, prefix: "Bearer "}` where the value needs a word before it. Owns
how a reference is found, resolved and revealed. Promises:
 1. Only what the *author wrote into the config* is a reference. `{secret: …}` that arrives as data (from an input, by a
    path or `{cel}`) stays data: a sender of input must not be able to ask for secrets.
 2. A secret that is bound to hosts goes nowhere else: every kind says where it sends, and what says nothing is refused.
 3. A value is fetched for one attempt and wrapped in `Secret`, which shows itself as `***`; `revealed` is called by a
    kind as its last act before sending.
Must not log, and must not cache: a rotated secret is used by the next attempt.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, Protocol, runtime_checkable

from treadle.actions.task_failure import TaskFailure

Json = Any

SHORTEST = 4
"""Characters. Anything shorter could not be removed from an output without mangling the rest of it."""
HIDDEN = "***"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}\Z")


class SecretProvider(Protocol):
    """A source of secrets. Third parties write a class with this one member."""

    async def get(self, name: str) -> str | None:
        """The value, or None if there is no such secret. An OSError counts as worth another try."""


class FoundSecret(NamedTuple):
    """A secret, and where it may go."""

    value: str
    hosts: tuple[str, ...] | None = None
    """The only hosts it may be sent to: `api.example.com`, `*.example.com`; None: any, and programs too."""


@runtime_checkable
class BoundSecrets(Protocol):
    """A source of secrets that knows where each may go."""

    async def find(self, name: str) -> FoundSecret | None:
        """The secret, or None if there is none."""


class EnvironmentSecrets:
    """Secret `NAME` is the variable `TREADLE_SECRET_NAME` of the engine's process."""

    def __init__(self, prefix: str = "TREADLE_SECRET_") -> None:
        self._prefix = prefix

    async def get(self, name: str) -> str | None:
        return os.environ.get(self._prefix + name)


def environment_secrets() -> list[Secret]:
    """The values of all secrets in the environment, to be removed from texts that are kept."""
    prefix = "TREADLE_SECRET_"
    found = [(name, value) for name, value in os.environ.items() if name.startswith(prefix)]
    return [Secret(name, value) for name, value in found if len(value) >= SHORTEST]


class FileSecrets:
    """Secret `NAME` is the file of that name in one directory, as containers mount them; a last newline is dropped."""

    def __init__(self, directory: str | Path) -> None:
        self._directory = Path(directory)

    async def get(self, name: str) -> str | None:
        try:
            return (self._directory / name).read_text("utf-8").removesuffix("\n")
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            return None


class DictSecrets:
    """Secrets from a dictionary, for tests."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = dict(values)

    async def get(self, name: str) -> str | None:
        return self._values.get(name)


class Secret:
    """A secret value that is not shown in text, in a repr or in a pickle."""

    __slots__ = ("_value", "hosts", "name")

    def __init__(self, name: str, value: str, hosts: tuple[str, ...] | None = None) -> None:
        self.name = name
        self.hosts = hosts
        self._value = value

    def reveal(self) -> str:
        """The value itself; to be sent, not to be kept."""
        return self._value

    def __repr__(self) -> str:
        return HIDDEN

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return HIDDEN

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"the secret {self.name!r} cannot be written down")


def is_reference(value: Json) -> bool:
    """Whether it is `{secret: NAME}`, with or without a prefix."""
    return isinstance(value, dict) and "secret" in value and value.keys() <= {"secret", "prefix"}


def references(config: Json) -> Iterator[str]:
    """The names of all secrets a config refers to, however deep; `{literal: …}` hides what is inside it."""
    if is_reference(config):
        yield config["secret"]
    elif isinstance(config, dict) and config.keys() != {"literal"}:
        for value in config.values():
            yield from references(value)
    elif isinstance(config, list):
        for value in config:
            yield from references(value)


async def fetch(config: Json, provider: SecretProvider) -> dict[str, Secret]:
    """Every secret the config refers to. Raises TaskFailure, naming the secret and the remedy, if one is missing."""
    found: dict[str, Secret] = {}
    for name in references(config):
        if not isinstance(name, str) or not _NAME.match(name):
            raise TaskFailure("a secret's name is made of letters, digits, `_`, `-` and `.`", kind="NOT_FOUND")
        if name not in found:
            found[name] = await _one(name, provider)
    return found


async def _one(name: str, provider: SecretProvider) -> Secret:
    hosts = None
    if isinstance(provider, BoundSecrets):
        found = await provider.find(name)
        value, hosts = found if found is not None else (None, None)
    else:
        value = await provider.get(name)
    if value is None:
        message = f"there is no secret {name!r}: the operator must set it (PUT /secrets, or TREADLE_SECRET_{name})"
        raise TaskFailure(message, kind="NOT_FOUND")
    if len(value) < SHORTEST:
        raise TaskFailure(
            f"the secret {name!r} is shorter than {SHORTEST} characters: it could not be kept out of logs"
        )
    return Secret(name, value, hosts)


def require_destination(secrets: Iterable[Secret], host: str | None) -> None:
    """Refuses to let a secret that is bound to hosts go anywhere else; None: to something that is no host, such as a
    program. Raises TaskFailure."""
    for secret in secrets:
        if secret.hosts is not None and not (host is not None and is_bound_to(host, secret.hosts)):
            where = f"sent to {host!r}" if host is not None else "used here"
            raise TaskFailure(f"the secret {secret.name!r} may not be {where}: it is for {', '.join(secret.hosts)}")


def is_bound_to(host: str, hosts: tuple[str, ...]) -> bool:
    """Whether a host is one of these; `*.example.com` stands for any depth below."""
    name = host.lower().rstrip(".")
    return any(name.endswith(one[1:]) if one.startswith("*.") else name == one for one in hosts)


def filled(config: Json, secrets: Mapping[str, Secret]) -> Json:
    """The config with a `Secret` in place of every reference."""
    if is_reference(config):
        secret = secrets[config["secret"]]
        return Secret(secret.name, f"{config['prefix']}{secret.reveal()}") if config.get("prefix") else secret
    if isinstance(config, dict):
        return (
            config if config.keys() == {"literal"} else {key: filled(value, secrets) for key, value in config.items()}
        )
    return [filled(value, secrets) for value in config] if isinstance(config, list) else config


def revealed(value: Json) -> Json:
    """The value with every `Secret` in the clear. To be called last before sending."""
    if isinstance(value, Secret):
        return value.reveal()
    if isinstance(value, dict):
        return {key: revealed(item) for key, item in value.items()}
    return [revealed(item) for item in value] if isinstance(value, list) else value


def holds_secret(value: Json) -> bool:
    """Whether a `Secret` is somewhere in it."""
    if isinstance(value, dict):
        return any(map(holds_secret, value.values()))
    return any(map(holds_secret, value)) if isinstance(value, list) else isinstance(value, Secret)
