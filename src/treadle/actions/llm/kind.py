"""`llm {profile?, model?, system?, prompt | messages, response_schema?, temperature?, max_tokens?, stream?}`.

A chat completion through a provider profile; output `{text, json?, usage, cost?, model}`. Promises that
nothing of the extra is imported before it is needed, and all of it before an action's clock starts; that the key is
resolved for each question and kept nowhere; and that cancelling closes the connection.

Streaming tells the text so far through `facts.emit("llm.partial", {step, at, text})`: `at` is the position of `text`
in the answer, so a retry begins again at 0 and pieces may be joined. The result is the same, listener or not.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Iterable
from functools import partial
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from treadle.actions.configured import Settled, with_secrets
from treadle.actions.failure import TaskFailure, error_of
from treadle.actions.llm.profiles import LlmSettings
from treadle.actions.llm.question import Question, question_of
from treadle.actions.llm.verdict import verdict
from treadle.actions.protocol import Call, Done, Failed, Reply, Warming
from treadle.actions.redact import Redactor
from treadle.actions.registry import Registry
from treadle.actions.secrets import EnvironmentSecrets, Secret, SecretProvider, revealed
from treadle.errors import TreadleError

Json = Any
PARTIAL = "llm.partial"


class LlmKind:
    """Knows the operator's profiles and keeps the connections to providers."""

    name = "llm"

    def __init__(self, settings: LlmSettings, secrets: SecretProvider) -> None:
        self._settings = settings
        self._secrets = secrets
        self._pools: WeakKeyDictionary[asyncio.AbstractEventLoop, Any] = WeakKeyDictionary()

    def run(self, call: Call) -> Reply:
        return Warming(partial(self._run, call))

    async def _run(self, call: Call, begin: Callable[[], None]) -> Done | Failed:
        try:
            question = await asyncio.to_thread(question_of, call, self._settings)
            await asyncio.to_thread((await _provider()).warm, question.profile.provider)
        except TreadleError as problem:
            return Failed(error_of(problem))
        begin()
        # Only the profile's secret: a reference that an author writes into a prompt stays text.
        key = {} if question.profile.api_key is None else {"api_key": {"secret": question.profile.api_key}}
        work = partial(self._answer, question)
        return await with_secrets(replace(call, config=key), self._secrets, work, host=question.profile.host)

    async def close(self) -> None:
        """Closes the connections of this event loop."""
        pool = self._pools.pop(asyncio.get_running_loop(), None)
        if pool is not None:
            await pool.aclose()

    async def warm(self) -> None:
        """Imports what the operator's profiles need, before an attempt waits for it."""
        provider = await _provider()
        for name in {profile.provider for profile in self._settings.profiles}:
            await asyncio.to_thread(provider.warm, name)

    async def _answer(self, question: Question, settled: Settled) -> Done | Failed:
        provider = await _provider()
        key = revealed(settled.get("api_key")) if settled.secrets else None
        emit = settled.call.facts.emit
        teller = _Teller(settled.call, emit, settled.secrets.values()) if emit is not None else None
        try:
            exchange = await provider.ask(question, key, self._pool(provider), teller.tell if teller else None)
        except provider.TROUBLE as problem:
            failure: Failed = provider.failure(problem, question)
            return failure
        if teller is not None:
            teller.end()
        return verdict(question, exchange)

    def _pool(self, provider: Any) -> Any:
        """Connections belong to the event loop that made them."""
        loop = asyncio.get_running_loop()
        if loop not in self._pools:
            self._pools[loop] = provider.connections(self._settings.proxy)
        return self._pools[loop]


async def _provider() -> ModuleType:
    """The border to the extra. Importing it takes seconds, so not on the event loop."""
    try:
        return await asyncio.to_thread(importlib.import_module, "treadle.actions.llm.provider")
    except ImportError as problem:
        raise TaskFailure(
            f"actions of kind 'llm' need an extra: pip install 'treadle[llm]' ({problem})", kind="NOT_FOUND"
        ) from None


class _Teller:
    """Passes streamed text on, without the secrets of the call: an end that may be the beginning of one is held back
    until that is clear."""

    def __init__(self, call: Call, emit: Callable[[str, Json], None], secrets: Iterable[Secret]) -> None:
        self._redactor = Redactor(secrets)
        self._step = call.step
        self._emit = emit
        self._held = ""
        self._at = 0

    def tell(self, piece: str) -> None:
        self._held = self._redactor.text(self._held + piece)
        self._say(len(self._held) - self._redactor.undecided(self._held))

    def end(self) -> None:
        self._say(len(self._held))

    def _say(self, size: int) -> None:
        if size > 0:
            text, self._held = self._held[:size], self._held[size:]
            self._emit(PARTIAL, {"step": self._step, "at": self._at, "text": text})
            self._at += size


def install_llm(registry: Registry, settings: LlmSettings, secrets: SecretProvider | None = None) -> LlmKind:
    """Registers the kind. The caller must close the returned kind when the engine stops."""
    kind = LlmKind(settings, secrets or EnvironmentSecrets())
    registry.register(kind)
    return kind
