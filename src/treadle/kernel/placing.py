"""Ids of runs whose workflow has flow control: all of them are in one shard, the workflow's home (6.7).

So one owner decides about all starts and ends of the workflow, and the fence of that one shard guards them. Must give
the same shard as `store.rows.shard_of` (a test compares them).
"""

from __future__ import annotations

import re
import zlib
from itertools import count

from treadle.model.ids import RunId

_ENDS_IN_HEX = re.compile(r"[0-9a-f]{3}\Z")
_VARIED = 16**3


def home_of(workflow: str) -> RunId:
    """A name in the shard of all runs of the workflow."""
    return RunId(f"flow/{workflow}")


def placed(run: RunId, workflow: str, shards: int) -> RunId:
    """The id itself if it is in the workflow's home, else one made of it that is: an id that ends in hexadecimal digits
    gets other ones, any other a number behind it."""
    home = _shard(home_of(workflow), shards)
    if shards == 1 or _shard(run, shards) == home:
        return run
    if len(run) == 36 and _ENDS_IN_HEX.search(run):
        last = int(run[-3:], 16)
        for step in range(1, _VARIED):
            other = RunId(f"{run[:-3]}{(last + step) % _VARIED:03x}")
            if _shard(other, shards) == home:
                return other
    for number in count(1):
        other = RunId(f"{run}-{number}")
        if _shard(other, shards) == home:
            return other
    raise AssertionError("there is always another number")


def _shard(name: RunId, shards: int) -> int:
    return zlib.crc32(name.encode()) % shards
