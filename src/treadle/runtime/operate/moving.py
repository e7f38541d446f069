"""Moves a whole store to another place: a SQLite file into a PostgreSQL database, and back.

Owns the order of a move, and its safety when it is killed at any moment. Promises that two stores never go on with the
same runs, that a target is complete before it may be opened, and that the same move run again continues where it
stopped. Must not look into rows; `store.transfer` knows them.

    check that nobody coordinates either end, and that the target is empty
    1  seal the source            from now on nobody writes it: the copy shows one moment
    2  fsck of the source         findings: unsealed again, nothing has happened
    3  begin at the target        it says that it is incomplete
    4  copy                       page by page, each with a mark of how far the copy has come
    5  compare                    rows, and a digest of every shelf, at both ends
    6  fsck of the target
    7  the source says where everything went      (or is unsealed again: `keep_source`)
    8  the target is complete

Killed before 3: starts again. Killed in 3 to 6: continues after the last page. Killed between 7 and 8: only 8 is left.
"""

from __future__ import annotations

import hashlib
import time
import uuid
from collections.abc import Callable
from contextlib import AsyncExitStack
from os import PathLike

from msgspec import Struct, structs

from treadle.errors import MoveRefused, StorePlaceError
from treadle.runtime.operate.fsck import Report
from treadle.runtime.operate.upkeep import check_everything, open_to_read
from treadle.store.packing import pack
from treadle.store.places import StoreLocation, place_of
from treadle.store.port import RunQuery
from treadle.store.transfer import SHELVES, After, Mark, Transfer, refusal

Where = str | PathLike[str] | StoreLocation
Progress = Callable[[str, int, int], None]
"""Called with the current step, how much of it is done, and how much there is."""

SHARDS = 64
"""Shards of a database made by a move: as many as of every other."""
NAMED_MAX = 5
"""Findings named in an exception; `fsck` lists them all."""
_WHOLE = 1 << 256


class MoveResult(Struct):
    """The result of a move."""

    source: str
    target: str
    rows: dict[str, int]
    resumed: bool
    """It continued an interrupted move."""
    kept_source: bool = False


async def move(
    source: Where,
    target: Where,
    *,
    wait: bool = False,
    keep_source: bool = False,
    restart: bool = False,
    progress: Progress | None = None,
) -> MoveResult:
    """Moves everything. `wait`: wait until neither store is coordinated. `keep_source`: make a copy, and the source
    goes on, too. `restart`: throw away what another unfinished move has left in the target. Raises `OwnedElsewhere`,
    `StorePlaceError`, `StoreUnavailable`; it can be called again after each of them."""
    async with AsyncExitStack() as opened:
        moving = _Moving(place_of(source), place_of(target), progress or (lambda *_: None))
        await moving.open(opened, wait)
        resumed = await moving.agree(restart)
        await moving.carry()
        await moving.check()
        await moving.hand_over(keep_source)
        return MoveResult(moving.source.place, moving.target.place, moving.counted, resumed, keep_source)


async def undo(source: Where, *, wait: bool = False, force: bool = False) -> str:
    """Undoes an unfinished move: the store stays where it is. Returns where it was to go. A store that has been moved
    is refused unless `force` says that the other one is never used again, because two stores would go on with the same
    runs."""
    async with AsyncExitStack() as opened:
        end = await _open(place_of(source), create=False)
        opened.push_async_callback(end.close)
        await end.take(wait)
        mark = await end.mark()
        if mark is None:
            raise MoveRefused(end.place, "it is not being moved", "there is nothing to undo")
        if mark.state == "arriving":
            raise MoveRefused(end.place, "it is where a move goes to", f"undo it at its source, {mark.other}")
        if mark.state == "left" and not force:
            raise MoveRefused(
                end.place,
                f"it was moved to {mark.other}, where its runs may have gone on",
                "move that one back to a new place, or --force if it is never used again",
            )
        await end.unseal()
        return mark.other


class _Moving:
    """One move, step by step."""

    def __init__(self, source: StoreLocation, target: StoreLocation, progress: Progress) -> None:
        self._places = source, target
        self._progress = progress
        self.counted: dict[str, int] = {}

    async def open(self, opened: AsyncExitStack, wait: bool) -> None:
        """Opens both ends and makes sure that nobody coordinates them."""
        source, target = self._places
        self.source = await _open(source, create=False)
        opened.push_async_callback(self.source.close)
        await self.source.take(wait)
        self.target = await _open(target, create=True)
        opened.push_async_callback(self.target.close)
        # Places of two users of one database look alike, and each user may have a schema.
        if source == target or (target.path is not None and self.source.place == self.target.place):
            raise MoveRefused(self.source.place, "it cannot be moved to itself", "name another place")
        await self.target.take(wait)

    async def agree(self, restart: bool) -> bool:
        """Marks both ends with this move; True if they were marked already."""
        leaving, arriving = await self.source.mark(), await self.target.mark()
        if leaving is not None and (leaving.state == "arriving" or leaving.other != self.target.place):
            raise refusal(self.source.place, leaving)
        has_left = leaving is not None and leaving.state == "left"
        begun = leaving is not None and arriving is not None and arriving.move == leaving.move
        if begun and arriving is not None and (has_left or not restart):
            self._mark = arriving
            return True
        if leaving is not None and has_left:
            raise refusal(self.source.place, leaving)
        if leaving is None and await self.source.is_empty():
            raise MoveRefused(self.source.place, "there is nothing in it to move", "begin at the new place at once")
        await self._check_room(arriving, restart)
        mark = leaving or Mark(uuid.uuid4().hex, "leaving", self.target.place, _now())
        await self.source.seal(mark)
        await self._check_source()
        last = await self.source.outbox_last()
        self._mark = Mark(mark.move, "arriving", self.source.place, _now(), outbox_last=last)
        await self.target.begin(self._mark)
        return leaving is not None

    async def _check_room(self, arriving: Mark | None, restart: bool) -> None:
        place = self.target.place
        if arriving is None:
            if not await self.target.is_empty():
                raise MoveRefused(place, "it is not empty", "move to a new file or database")
        elif arriving.state == "left":
            raise MoveRefused(place, f"it was itself moved to {arriving.other}", "move to a new file or database")
        elif arriving.state == "leaving":
            raise refusal(place, arriving)
        elif arriving.other != self.source.place and not restart:
            problem = f"it holds an unfinished move from {arriving.other}"
            raise MoveRefused(place, problem, "finish that one, or --restart to throw it away")

    async def _check_source(self) -> None:
        try:
            _insist(self.source.place, await self._fsck(self._places[0], "checking the source"), "nothing was moved")
        except BaseException:
            await self.source.unseal()
            raise

    async def carry(self) -> None:
        """Copies every row that the target does not have yet."""
        totals = await self.source.counts()
        shelves = list(SHELVES)
        done = shelves.index(self._mark.shelf) if self._mark.shelf else 0
        there = await self.target.counts()
        for shelf in shelves[done:]:
            after: After = self._mark.after if shelf == self._mark.shelf else ()
            count = there[shelf]
            while rows := (page := await self.source.page(shelf, after)).rows:
                now = structs.replace(self._mark, shelf=shelf, after=page.after)
                await self.target.put(shelf, rows, self._mark, now)
                self._mark, after = now, page.after
                count += len(rows)
                self._progress(shelf, count, totals[shelf])

    async def check(self) -> None:
        """Checks that both ends hold the same, and that the target is sound."""
        differing = []
        for shelf in SHELVES:
            here, there = await self._tally(self.source, shelf), await self._tally(self.target, shelf)
            self.counted[shelf] = here[0]
            if here != there:
                differing.append(f"{shelf}: {here[0]} rows here, {there[0]} there" + await self._which(shelf))
        if differing:
            raise StorePlaceError(self.target.place, f"it differs from its source ({'; '.join(differing)})", _AGAIN)
        _insist(self.target.place, await self._fsck(self._places[1], "checking the target"), _AGAIN)

    async def _tally(self, end: Transfer, shelf: str) -> tuple[int, int]:
        """The number of rows, and a digest that does not depend on their order: each end has its own order."""
        count = digest = 0
        after: After = ()
        while rows := (page := await end.page(shelf, after)).rows:
            for row in rows:
                digest += int.from_bytes(hashlib.sha256(pack(row)).digest())
            count, after = count + len(rows), page.after
            self._progress(f"comparing {shelf}", count, 0)
        return count, digest % _WHOLE

    async def _which(self, shelf: str) -> str:
        """The first runs whose histories differ."""
        if shelf != "history":
            return ""
        found: list[str] = []
        async with AsyncExitStack() as opened:
            stores = []
            for place in self._places:
                store = await open_to_read(place)
                opened.push_async_callback(store.close)
                stores.append(store)
            query = RunQuery(limit=1_000)
            while (runs := await stores[0].find_runs(query)) and len(found) < NAMED_MAX:
                for row in runs:
                    if await stores[0].history(row.run) != await stores[1].history(row.run):
                        found.append(row.run)
                query = RunQuery(after=runs[-1].run, limit=1_000)
        return f", of {', '.join(found[:NAMED_MAX])}" if found else ""

    async def _fsck(self, place: StoreLocation, what: str) -> Report:
        total = self.counted.get("runs", 0)
        return await check_everything(place, lambda runs: self._progress(what, runs, total))

    async def hand_over(self, keep_source: bool) -> None:
        """Closes the source before it opens the target: if the move is killed in between, there is no open store rather
        than two."""
        if keep_source:
            await self.source.unseal()
        else:
            await self.source.seal(Mark(self._mark.move, "left", self.target.place, _now()))
        await self.target.finish()


_AGAIN = "the source is as it was: run `treadle db move` again with --restart, or `treadle db undo` to stay there"


def _insist(place: str, report: Report, remedy: str) -> None:
    if report.findings:
        named = "; ".join(f"{finding.run}: {finding.message}" for finding in report.findings[:NAMED_MAX])
        raise StorePlaceError(place, f"fsck has {len(report.findings)} findings ({named})", remedy)


async def _open(place: StoreLocation, create: bool) -> Transfer:
    if place.dsn is not None:
        from treadle.store.postgres.transfer import PostgresTransfer

        return await PostgresTransfer.open(place.dsn, shards=SHARDS, create=create)
    if place.path is None:
        raise StorePlaceError(str(place), "it is gone with its process", "name a file or a database")
    from treadle.store.sqlite.transfer import SqliteTransfer

    return await SqliteTransfer.open(place.path, create=create)


def _now() -> int:
    return time.time_ns() // 1_000_000
