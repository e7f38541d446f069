"""The evaluated config of a kind that reaches outside: sources are evaluated, secrets are in place.

Owns the order: first the secrets that the author wrote are fetched, then each setting is evaluated. `headers`, `query`,
`env` are maps from names to sources, `argv` is a list of sources; any other setting is one source (1.6), in whose JSON
only `{secret: …}` is a reference. A setting that the config lacks comes from the step's input, where nothing is a
reference.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from treadle.actions.failure import error_of, is_interrupt
from treadle.actions.protocol import Call, Done, Failed
from treadle.actions.redact import Redactor, current
from treadle.actions.secrets import Secret, SecretProvider, fetch, filled, is_reference, references, require_destination
from treadle.actions.settings import setting
from treadle.expression.sources import compile_source
from treadle.expression.view import View

Json = Any
MANY = frozenset(["headers", "query", "env", "argv"])
"""Settings whose members are sources of their own."""


@dataclass(frozen=True, slots=True)
class Settled:
    """The settings of one call. Values may hold `Secret`s."""

    call: Call
    secrets: dict[str, Secret]

    def get(self, name: str, default: Json = None) -> Json:
        """One setting: from the config, else from the step's input, else the default."""
        if name not in self.call.config:
            return setting(self.call, name, default)
        written = self.call.config[name]
        view = self.call.view()
        if name in MANY and isinstance(written, dict) and not _is_source(written):
            return {key: self._one(value, view) for key, value in written.items()}
        if name in MANY and isinstance(written, list):
            return [self._one(value, view) for value in written]
        return self._one(written, view)

    def _one(self, written: Json, view: View) -> Json:
        if _is_source(written) and not is_reference(written):
            return compile_source(written).evaluate(view)
        return (
            filled(written, self.secrets)
            if isinstance(written, dict | list)
            else compile_source(written).evaluate(view)
        )

    def uses_of(self, name: str) -> set[str]:
        """The names of the secrets that one setting refers to."""
        return set(references(self.call.config.get(name)))


def _is_source(written: Json) -> bool:
    return isinstance(written, dict) and (written.keys() in ({"cel"}, {"literal"}) or is_reference(written))


async def with_secrets(
    call: Call,
    provider: SecretProvider,
    work: Callable[[Settled], Awaitable[Done | Failed]],
    *,
    host: str | None = None,
    checks_host: bool = False,
) -> Done | Failed:
    """Calls `work` with the evaluated config. Nothing it returns, raises or logs shows a secret. `host`: where `work`
    sends secrets to; None: to no host, so that secrets which are bound to hosts are refused. `checks_host`: `work`
    learns the host only from the config, and checks by itself."""
    redactor = Redactor(())
    token = current.set(redactor)
    try:
        secrets = await fetch(call.config, provider)
        redactor = Redactor(secrets.values())
        current.set(redactor)
        if not checks_host:
            require_destination(secrets.values(), host)
        return redactor.reply(await work(Settled(call, secrets)))
    except (asyncio.CancelledError, GeneratorExit):
        raise
    except BaseException as problem:
        if is_interrupt(problem):
            raise
        return redactor.reply(Failed(error_of(problem)))
    finally:
        current.reset(token)
