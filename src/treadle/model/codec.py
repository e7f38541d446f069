"""The only place where history becomes bytes and back. Msgpack, one packed block per commit."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import or_
from typing import Any

import msgspec

from treadle.model import events

_EVENT_TYPES = [
    c for c in vars(events).values() if isinstance(c, type) and issubclass(c, events.Event) and c is not events.Event
]
_AnyEvent: Any = reduce(or_, _EVENT_TYPES)

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[_AnyEvent])


def pack_events(batch: list[events.Event]) -> bytes:
    """One commit's events of one run as one block."""
    return _encoder.encode(batch)


def unpack_events(block: bytes) -> list[events.Event]:
    """The events of a block, equal to those packed."""
    result: list[events.Event] = _decoder.decode(block)
    return result


def unpacking(resolve: Callable[[int, memoryview], Any]) -> Callable[[bytes], list[events.Event]]:
    """`unpack_events` for a store that keeps large values elsewhere: `resolve` gives the value of an extension."""
    decode: Callable[[bytes], list[events.Event]] = msgspec.msgpack.Decoder(list[_AnyEvent], ext_hook=resolve).decode
    return decode
