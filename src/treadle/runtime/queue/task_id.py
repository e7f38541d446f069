"""The name of a claim, as a worker outside knows it: an opaque text that says all that is needed to find the claim.

Owns its form. The name holds no secret and gives no right by itself: a result counts only while the run knows its
holder. Every claim has another name, also of the same work: the holder in it is drawn anew for every claim.
"""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode

import msgspec
from msgspec import Struct

from treadle.errors import CommandRefused
from treadle.model.ids import RunId, TokenId
from treadle.store.work import Claim, Claimed

APART = "~"
"""Between the name of a worker and what is drawn for a claim."""
NUMBER_MAX = 2**53 - 1
"""Of visits, attempts, claims, events and versions: more than there will be, and what every store can look for."""


class TaskId(Struct, frozen=True, array_like=True):
    """One claim of one attempt."""

    run: RunId
    token: TokenId
    attempt: int
    number: int
    worker: str
    """The name under which it is claimed in the store."""
    node: str
    queue: str
    seq: int
    """The run's last event before the claim: what became of it is behind that."""
    version: int = 0
    """The version its work was offered under; 0: the run's."""

    @property
    def claim(self) -> Claim:
        return Claim(self.run, self.token, self.number)

    @property
    def holder(self) -> str:
        """The name under which the worker reports; as `Claimed.holder`."""
        return f"{self.worker}#{self.number}"

    @property
    def text(self) -> str:
        return urlsafe_b64encode(msgspec.msgpack.encode(self)).rstrip(b"=").decode()


_decode = msgspec.msgpack.Decoder(TaskId).decode


def task_id(claimed: Claimed, seq: int) -> TaskId:
    """The name of a claim."""
    offer = claimed.offer
    return TaskId(
        claimed.run,
        offer.token,
        offer.attempt,
        claimed.number,
        claimed.worker,
        node=offer.node,
        queue=offer.queue,
        seq=seq,
        version=offer.version,
    )


def read_task_id(text: str) -> TaskId:
    """Raises CommandRefused(NOT_FOUND)."""
    try:
        id = _decode(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (ValueError, binascii.Error, msgspec.DecodeError):
        raise CommandRefused("NOT_FOUND", "there is no such task") from None
    if not all(0 <= number <= NUMBER_MAX for number in (id.token, id.attempt, id.number, id.seq, id.version)):
        raise CommandRefused("NOT_FOUND", "there is no such task")
    return id


def worker_name(holder: str) -> str:
    """The name a worker gave itself, out of the name it claims or reports under."""
    return holder.split(APART)[0]
