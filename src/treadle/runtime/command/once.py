"""Commands that a caller may send again: each is carried out once, and its first answer is given again.

Owns the names under which such commands are remembered. A server that answers a request with an idempotency key does so
inside `asking_once`; every command that is sent meanwhile leaves its answer in the store, in the transaction of its
decision. After a crash the same request sends the same commands, and gets the first answers. Must not know a store.

The commands of one request to one run are numbered: if a request sends two of them and the server dies in between, the
first is answered again and the second is carried out.
"""

from __future__ import annotations

import hashlib
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from treadle.model.commands import Command
from treadle.model.ids import RunId
from treadle.runtime.command.commander import Commander
from treadle.store.port import InboxAnswer


class Once:
    """A request whose commands are carried out once."""

    def __init__(self, id: str, fingerprint: str) -> None:
        self.id = id
        self.fingerprint = fingerprint
        """A digest of everything the request asks for: the same id with another one is refused."""
        self.replayed = False
        """Whether a command of the request had been answered before."""
        self._sent: Counter[str] = Counter()

    def new_run(self) -> RunId:
        """An id for a new run: the same one when the request comes again."""
        self._sent[""] += 1
        digest = hashlib.sha256(f"{self.id}\n{self._sent['']}".encode()).digest()
        return RunId(str(uuid.UUID(bytes=digest[:16], version=5)))

    def next(self, run: RunId) -> str:
        """The name of the next command to a run."""
        self._sent[run] += 1
        return f"{self.id}:{run}:{self._sent[run]}"


_current: ContextVar[Once | None] = ContextVar("treadle_once", default=None)


@contextmanager
def asking_once(id: str, fingerprint: str) -> Iterator[Once]:
    """Every command that is sent inside is remembered under this id, together with its answer, for a day at least. An
    id must be used by one caller for one purpose. Raises CommandRefused(IDEMPOTENCY_MISMATCH) from a command whose
    name was used with another fingerprint."""
    once = Once(id, fingerprint)
    token = _current.set(once)
    try:
        yield once
    finally:
        _current.reset(token)


def current_once() -> Once | None:
    """The request that is being answered, if its commands are to be remembered."""
    return _current.get()


async def ask(
    commander: Commander, run: RunId, command: Command, workflow: str | None = None, fresh: bool = False
) -> InboxAnswer:
    """Sends a command; inside `asking_once` its answer is remembered, or is the one that was given before."""
    once = _current.get()
    if once is None:
        return await commander.ask(run, command, workflow, fresh=fresh)
    answer = await commander.ask(run, command, workflow, request=once.next(run), fingerprint=once.fingerprint)
    once.replayed |= answer.is_again
    return answer
