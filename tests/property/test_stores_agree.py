"""Random batches on the reference store, on a file and on a server: the same answers, refusals and rows."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from treadle.errors import StoreConflict
from treadle.model import commands as c
from treadle.model import effects as f
from treadle.model import events as e
from treadle.model.ids import RunId, TimerId, TokenId
from treadle.model.references import EntityRef
from treadle.model.states import RunStatus
from treadle.store.entities import EntityQuery
from treadle.store.memory import MemoryStore
from treadle.store.port import Batch, Commit, Fence, GateQuery, InboxAnswer, InboxRequest, OutboxRow, RunQuery, RunRow
from treadle.store.rows import SHARD
from treadle.store.sqlite import SqliteStore

RUNS = [RunId(f"r{i}") for i in range(4)]
small = st.integers(1, 3)
values = st.none() | st.integers(0, 5) | st.text("ab", max_size=200) | st.lists(st.text("c", max_size=90), max_size=3)

effects = st.one_of(
    st.builds(f.SetTimer, small.map(TimerId), st.integers(0, 30)),
    st.builds(f.ClearTimer, small.map(TimerId)),
    st.builds(f.OpenGate, small.map(TokenId), st.just("n")),
    st.builds(f.CloseGate, small.map(TokenId)),
    st.builds(f.NoteGate, small.map(TokenId), st.none() | st.just("ann")),
    st.builds(f.RunTask, small.map(TokenId), small, st.just("n"), values),
    st.builds(f.Publish, st.just("x"), values),
    st.builds(
        f.NoteMove,
        small,
        st.integers(0, 9),
        st.just("w"),
        st.builds(EntityRef, st.sampled_from("12"), st.sampled_from(["a", "b"])),
        st.sampled_from(["entered", "moved"]),
        node=st.sampled_from(["n", "m"]),
        completed_as=st.sampled_from([None, "success"]),
        set_type=st.sampled_from([None, None, "a", "b"]),
    ),
)


@st.composite
def steps(draw: st.DrawFn) -> dict[str, Any]:
    """A decision in relation to where its run stands when it is made: mostly right, sometimes late."""
    return {
        "run": draw(st.sampled_from(RUNS)),
        "late": draw(st.sampled_from([0, 0, 0, 0, 0, 1])),
        "key": draw(st.sampled_from([None, None, "k1", "k2"])),
        "tags": draw(st.sampled_from([(), ("t",), ("t", "u")])),
        "payload": draw(values),
        "fired": draw(st.none() | small),
        "events": draw(st.integers(0, 2)),
        "effects": draw(st.lists(effects, max_size=3)),
        "status": draw(st.sampled_from(list(RunStatus))),
        "busy": draw(st.booleans()),
    }


moves = st.lists(
    st.one_of(
        st.tuples(st.just("commit"), st.lists(steps(), min_size=1, max_size=3)),
        st.tuples(st.just("rows"), st.lists(st.integers(1, 8), max_size=3)),
        st.tuples(st.just("answer"), st.lists(st.sampled_from("abc"), min_size=1, max_size=2)),
        st.tuples(st.sampled_from(["submit", "answer"]), st.sampled_from("abc")),
        st.tuples(st.just("forget"), st.tuples(st.lists(st.sampled_from(RUNS), max_size=2), st.booleans())),
        st.tuples(st.just("lease"), st.sampled_from(["one", "two"])),
    ),
    max_size=12,
)


class Pair:
    """Both stores, asked the same. Of `step` are the numbers of the second one's outbox, where the first counts."""

    def __init__(self, one: Any, two: Any, fence: Fence, step: int) -> None:
        self.stores = (one, two)
        self.fence = fence
        self.step = step
        self.now = 0

    async def ask(self, verb: str, *given: Any, **named: Any) -> Any:
        answers = []
        for store, step in zip(self.stores, (1, self.step), strict=True):
            try:
                answer = await getattr(store, verb)(*(_numbered(one, step) for one in given), **named)
                answers.append(_counted(answer, step))
            except StoreConflict as conflict:
                # A batch with two faults may be refused for either; the fence comes before both.
                answers.append(("refused", conflict.kind == "LEASE_CONFLICT"))
        assert answers[0] == answers[1], verb
        return answers[0]

    async def commit(self, decisions: list[dict[str, Any]]) -> None:
        seqs = {row.run: row.seq for row in await self.ask("find_runs", RunQuery())}
        commits = []
        for decision in decisions:
            run = decision["run"]
            seq = seqs.get(run, 0)
            events = self._events(seq, decision)
            if seq == 0 and not events:
                continue
            expected = max(seq - decision["late"], 0) if seq else 0
            commits.append(Commit(run, expected, events, decision["effects"], decision["status"], decision["busy"]))
            seqs[run] = seq + len(events)
        await self.ask("commit", Batch(commits), self.fence)

    def _events(self, seq: int, decision: dict[str, Any]) -> list[e.Event]:
        self.now += 1
        made: list[e.Event] = []
        if seq == 0:
            key, tags = decision["key"], decision["tags"]
            run, payload = decision["run"], decision["payload"]
            made.append(e.RunStarted(1, self.now, run, "w", 1, "h", payload, idempotency_key=key, tags=tags))
        if decision["fired"] is not None and decision["events"]:
            made.append(e.TimerFired(seq + len(made) + 1, self.now, TimerId(decision["fired"]), "wait"))
        for _ in range(decision["events"]):
            made.append(e.Custom(seq + len(made) + 1, self.now, "x", decision["payload"]))
        return made

    async def move(self, kind: str, given: Any) -> None:
        if kind == "commit":
            await self.commit(given)
        elif kind == "rows":
            parts = [given[:1], [(row, "why") for row in given[1:2]], given[2:]]
            await self.ask("commit", Batch(done=parts[0], parked=parts[1], revived=parts[2]), self.fence)
        elif kind == "answer":
            answers = [InboxAnswer(id, result=self.now) for id in given]
            await self.ask("commit", Batch(answers=answers), self.fence)
        elif kind in ("submit", "answer"):
            await self.ask(kind, InboxRequest(given, RUNS[0], c.PauseRun(), 0))
        elif kind == "forget":
            await self.ask("forget", given[0], self.fence, history=given[1])
        else:
            fence = await self.ask("lease", SHARD, given, self.now, 5)
            self.fence = fence or self.fence

    async def compare(self) -> None:
        for row in await self.ask("find_runs", RunQuery(newest_first=True)):
            await self.ask("history", row.run)
            await self.ask("find_gates", GateQuery(run=row.run))
        for query in (RunQuery(tag="t"), RunQuery(busy=True), RunQuery(workflow="w", idempotency_key="k1")):
            await self.ask("find_runs", query)
        for parked in (False, True):
            await self.ask("outbox", SHARD, parked=parked)
        await self.ask("inbox", SHARD)
        for row in await self.ask("find_entities", EntityQuery()):
            await self.ask("journey", row.key, None, 99)
            await self.ask("live_runs_of", row.key)
        await self.ask("crowds", "w")
        await self.ask("conversion", "w", 3)
        # Timers due at the same moment have no order.
        found = [await store.timers(SHARD) for store in self.stores]
        assert [row.due for row in found[0]] == [row.due for row in found[1]]
        assert {(row.run, row.timer, row.due) for row in found[0]} == {
            (row.run, row.timer, row.due) for row in found[1]
        }


def _numbered(given: Any, step: int) -> Any:
    """Rows as a store numbers them."""
    if not isinstance(given, Batch):
        return given
    parked = [(row * step, why) for row, why in given.parked]
    return replace(
        given, done=[row * step for row in given.done], parked=parked, revived=[row * step for row in given.revived]
    )


def _counted(answer: Any, step: int) -> Any:
    if not isinstance(answer, list):
        return answer
    return [_comparable(row, step) for row in answer]


def _comparable(row: Any, step: int) -> Any:
    if isinstance(row, OutboxRow):
        return replace(row, id=row.id // step)
    # A file gives the number of its newest run again after that was forgotten. Lists compare the order itself.
    return replace(row, number=0) if isinstance(row, RunRow) else row


async def _play(played: list[tuple[str, Any]], opening: Awaitable[Any], step: int) -> None:
    async with await opening as real:
        memory = MemoryStore()
        pair = Pair(memory, real, Fence("nobody", SHARD, 1), step)
        await pair.move("lease", "one")
        for kind, given_ in played:
            await pair.move(kind, given_)
            await pair.compare()
        assert await real.integrity() == []


@settings(max_examples=40)
@given(moves)
def test_random_batches_mean_the_same_to_every_store(played: list[tuple[str, Any]]) -> None:
    with TemporaryDirectory() as directory:
        asyncio.run(_play(played, SqliteStore.open(Path(directory) / "t.db", payload_max=100), 1))


# Few: every question is a round trip to a server. What the stores share is played above.
@settings(max_examples=8)
@given(moves)
def test_random_batches_mean_the_same_to_a_server(database: Any, played: list[tuple[str, Any]]) -> None:
    asyncio.run(_play(played, database.open(payload_max=100), 1024))
