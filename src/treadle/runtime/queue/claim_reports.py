"""The reports of a worker about one claim, sent in order, each after the one before was answered.

Owns the order and the repetition: a report is sent again until the run's owner has answered, even if the owner changes.
Must not know what is executed, nor what follows from an answer.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from treadle.errors import EngineStopped, StoreUnavailable
from treadle.model import commands as c
from treadle.model.errors import Rejection
from treadle.model.ids import RunId, TokenId
from treadle.runtime.command.commander import Commander
from treadle.runtime.surroundings.logs import logger
from treadle.store.port import InboxAnswer
from treadle.store.work import Claimed

AGAIN_S = 0.5
LAST = (c.FinishAttempt, c.FailAttempt, c.LoseWorker)

log = logger("treadle.claims")

Identity = tuple[RunId, TokenId, int]


class ClaimReports:
    """See the module's docstring. `answered` is called once: with the last report, or with the one that was refused.
    Refused progress is ignored."""

    def __init__(
        self,
        claimed: Claimed,
        commander: Commander,
        answered: Callable[[ClaimReports, c.Command, Rejection | None], None],
    ) -> None:
        self.claimed = claimed
        self.finished = False
        """The last report has been posted."""
        self._commander = commander
        self._answered = answered
        self._waiting: deque[c.Command] = deque()
        self._asked = 0
        self._more = asyncio.Event()
        self.sending = asyncio.get_running_loop().create_task(self._send())

    @property
    def identity(self) -> Identity:
        return (self.claimed.run, self.claimed.offer.token, self.claimed.offer.attempt)

    def post(self, report: c.Command) -> None:
        self.finished = self.finished or isinstance(report, LAST)
        self._waiting.append(report)
        self._more.set()

    def stop(self) -> None:
        """Stops sending: the answers are no longer needed."""
        if self.sending is not asyncio.current_task():
            self.sending.cancel()

    async def _send(self) -> None:
        while True:
            await self._more.wait()
            self._more.clear()
            while self._waiting:
                report = self._waiting.popleft()
                rejection = (await self._ask(report)).rejection
                is_over = isinstance(report, LAST) or rejection is not None
                if is_over and not isinstance(report, c.ReportProgress):
                    self._answered(self, report, rejection)
                    return

    async def _ask(self, report: c.Command) -> InboxAnswer:
        """Sends a report until it is answered. Sending it again under the same id finds the answer if there is one."""
        self._asked += 1
        request = f"{self.claimed.holder}:{self.claimed.run}:{self.claimed.offer.token}:{self._asked}"
        while True:
            try:
                return await self._commander.ask(self.claimed.run, report, request=request)
            except (StoreUnavailable, EngineStopped) as problem:
                log.info("cannot report", run=self.claimed.run, error=str(problem))
            await asyncio.sleep(AGAIN_S)


async def ended(*tasks: asyncio.Task[None]) -> None:
    """Cancels tasks until they have ended: code inside a task may swallow one cancellation."""
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=AGAIN_S)
