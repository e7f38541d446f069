"""Effects, commands and plain values as bytes and back, as the real stores keep them beside history.

Owns the decoders of the closed sets. Promises that a value that is read equals the one that was packed, as JSON (a
tuple comes back as a list). Must not know where the bytes are kept. History has its own codec in `model`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import or_
from typing import Any

import msgspec
from msgspec import msgpack

from treadle.model import commands, effects
from treadle.model.commands import Command
from treadle.model.effects import Effect
from treadle.model.errors import Rejection
from treadle.store.port import GateRow, InboxAnswer, InboxRequest, Json
from treadle.store.seals import about_answer, about_gate, about_request, seal


def _union(module: Any, root: type) -> Any:
    kinds = [kind for kind in vars(module).values() if isinstance(kind, type) and issubclass(kind, root)]
    return reduce(or_, [kind for kind in kinds if kind is not root])


AnyEffect: Any = _union(effects, Effect)
_AnyCommand: Any = _union(commands, Command)

pack = msgpack.Encoder().encode
unpack: Callable[[bytes], Any] = msgpack.Decoder().decode
_unpack_wish: Callable[[bytes], Command | int | None] = msgpack.Decoder(_AnyCommand | int | None).decode


class _Verdict(msgspec.Struct, array_like=True, omit_defaults=True):
    rejection: Rejection | None = None
    result: Json = None


_unpack_verdict = msgpack.Decoder(_Verdict).decode


def pack_wish(request: InboxRequest) -> bytes:
    """The content of a request as bytes: a command, or the row of a dead letter."""
    return pack(request.command if request.command is not None else request.revive)


def unpack_wish(packed: bytes) -> tuple[Command | None, int]:
    """The command and the row of a request; one of them is empty."""
    wish = _unpack_wish(packed)
    return (None, wish) if isinstance(wish, int) else (wish, 0)  # row 0 is refused like an unknown row


def pack_answer(answer: InboxAnswer) -> bytes:
    """An answer without the request it belongs to."""
    return pack(_Verdict(answer.rejection, answer.result))


def sealed_answer(answer: InboxAnswer) -> bytes:
    """An answer as bytes with its seal."""
    return seal(pack_answer(answer), about_answer(answer.request))


def sealed_wish(request: InboxRequest) -> bytes:
    """The content of a request as bytes with its seal."""
    about = about_request(request.run, request.id, request.workflow, request.at, request.fingerprint)
    return seal(pack_wish(request), about)


def sealed_assign(row: GateRow) -> bytes:
    """The people who may answer a gate, as bytes with a seal. Never empty: the seal covers the gate's whole row."""
    return seal(pack(row.assign), about_gate(row.run, row.token, row.node, row.opened, row.title, row.due))


def unpack_answer(request: str, packed: bytes) -> InboxAnswer:
    """The answer to a request."""
    verdict = _unpack_verdict(packed)
    return InboxAnswer(request, verdict.rejection, verdict.result)


def unpacking_effects(resolve: Callable[[int, memoryview], Any]) -> Callable[[bytes], Effect]:
    """A decoder for a store that keeps large values elsewhere."""
    decode: Callable[[bytes], Effect] = msgpack.Decoder(AnyEffect, ext_hook=resolve).decode
    return decode
