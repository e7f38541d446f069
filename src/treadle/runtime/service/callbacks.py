"""Callbacks of webhook workers, by their tokens. Reached as `Client.callbacks`.

Owns the step from a token to the visit it is for. Promises that a token which this store has not made is not told apart
from any other: each is checked in full. The kernel judges the answer (`kernel.on_callback`).
"""

from __future__ import annotations

from typing import Any

from treadle.errors import CommandRefused
from treadle.model import commands as c
from treadle.model.errors import Error
from treadle.runtime.access.root import root_secret
from treadle.runtime.command.commander import Commander
from treadle.runtime.deliver.callbacks import Callback as Callback
from treadle.runtime.deliver.callbacks import read_callback

Json = Any


class Callbacks:
    """See the module's docstring."""

    def __init__(self, commander: Commander) -> None:
        self._commander = commander
        self._key: bytes | None = None

    async def read(self, token: str) -> Callback | None:
        """The attempt a token is for; None if this store has not made it."""
        if self._key is None:
            self._key = await root_secret(self._commander.store)
        return read_callback(self._key, token)

    async def answer(self, to: Callback, output: Json = None, error: Error | None = None, spent: Json = None) -> bool:
        """Answers an attempt, which has `spent` {cost, usage}. Returns False if the same answer was given before, which
        changes nothing. Raises CommandRefused: NOT_FOUND, DUPLICATE, INVALID_STATE, LATE_RESULT, SCHEMA,
        BAD_REQUEST."""
        return await self._ask(to, c.ReceiveCallback(to.token, to.attempt, output, error, spent=spent))

    async def refuse(self, to: Callback, reason: str) -> None:
        """Records that an answer came that cannot be used. Raises CommandRefused(BAD_REQUEST), or NOT_FOUND if the run
        is gone."""
        await self._ask(to, c.ReceiveCallback(to.token, to.attempt, unusable=reason))

    async def _ask(self, to: Callback, command: c.ReceiveCallback) -> bool:
        answer = await self._commander.ask(to.run, command)
        if answer.rejection is not None:
            raise CommandRefused(answer.rejection.kind, answer.rejection.message)
        return bool(answer.result)
