"""A store whose reading verbs ask a service: runs, histories, gates, workflows, schedules, dead letters.

Owns the translation of rows. It has none of the verbs by which an engine writes: a service's engines do that. Promises
rows equal to those of the store behind the service.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Any, TypeVar

import msgspec

from treadle.errors import CommandRefused
from treadle.language import load_value
from treadle.model import effects
from treadle.model.event_rows import event_of
from treadle.model.events import ArtifactWritten, Event
from treadle.model.ids import RunId
from treadle.runtime.coordinate.library import KIND as WORKFLOW
from treadle.runtime.coordinate.library import as_document
from treadle.runtime.over_http.connection import PAGE, Connection, segment
from treadle.runtime.schedule.definition import KIND as SCHEDULE
from treadle.runtime.schedule.definition import hash_of
from treadle.store.gates import ALL_GATES, GateQuery, GateRow, fits
from treadle.store.port import InboxRequest, OutboxRow, RunQuery, RunRow, StoredDocument
from treadle.store.rows import digest_of

Json = Any
S = TypeVar("S", bound=msgspec.Struct)
ANY_EFFECT: Any = reduce(
    or_, [kind for kind in vars(effects).values() if isinstance(kind, type) and issubclass(kind, effects.Effect)]
)


class ServiceReader:
    """See the module's docstring. It stands where a client expects its store."""

    shards = 1

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.seen: dict[RunId, int] = {}
        """The newest event of each run that was read: what comes after it is news."""
        self._artifacts: dict[str, tuple[RunId, str]] = {}
        self._taken: dict[str, bytes] = {}

    async def find_runs(self, query: RunQuery) -> list[RunRow]:
        if query.run is not None:
            try:
                return [self._run(await self._connection.get(f"/runs/{segment(query.run)}"))]
            except CommandRefused as refused:
                if refused.kind == "NOT_FOUND":
                    return []
                raise
        asked = {
            "workflow": query.workflow,
            "version": query.version,
            "status": [str(status) for status in query.statuses],
            "tag": [*query.tags, *([query.tag] if query.tag is not None else [])],
            "entity": query.entity,
            "parent": query.parent,
            "key": query.idempotency_key,
            "started_from": query.started_from,
            "started_until": query.started_until,
            "text": query.text if query.text is not None else query.run_ending,
        }
        rows: list[RunRow] = []
        after, whole = query.after, query.after is None and query.beyond is None and query.run_ending is None
        async for told in self.pages("/runs", asked, query.limit if whole else None):
            row = self._run(told)
            if query.down_to is not None and row.number < query.down_to:
                break  # the newest come first
            if after is not None:
                after = None if row.run == after else after
            elif _fits(row, query):
                rows.append(row)
            if len(rows) >= query.limit:
                break
        return rows

    async def pages(self, path: str, query: dict[str, Json], limit: int | None = None) -> Any:
        """All rows of a list, page by page, `limit` at most."""
        cursor, left = None, limit
        while left is None or left > 0:
            size = PAGE if left is None else min(PAGE, left)
            page = await self._connection.get(path, {**query, "limit": size, "cursor": cursor})
            for row in page["items"]:
                yield row
            cursor = page["next"]
            left = left - len(page["items"]) if left is not None else None
            if cursor is None:
                return

    def _run(self, row: dict[str, Json]) -> RunRow:
        known = {**row, "idempotency_key": row.get("key")}
        found = fitted(known, RunRow)
        self.seen[found.run] = max(found.seq, self.seen.get(found.run, 0))
        return found

    async def history(self, run: RunId, after: int = 0, limit: int | None = None) -> list[Event]:
        found: list[Event] = []
        while limit is None or len(found) < limit:
            size = PAGE if limit is None else min(PAGE, limit - len(found))
            try:
                page = await self._connection.get(f"/runs/{segment(run)}/history", {"after": after, "limit": size})
            except CommandRefused as refused:
                if refused.kind == "NOT_FOUND":
                    return []
                raise
            events = [event_of(row) for row in page["items"]]
            found += events
            if len(events) < size:
                break
            after = events[-1].seq
        if found:
            self.seen[run] = max(found[-1].seq, self.seen.get(run, 0))
        for event in found:
            if isinstance(event, ArtifactWritten):
                self._artifacts[event.digest] = (run, event.name)
        return found

    async def decisions(self, run: RunId, after: int = 0, limit: int | None = None) -> list[int]:
        """Where the decisions about a run end; see `store.service`."""
        found: list[int] = []
        path = f"/runs/{segment(run)}/decisions"
        while limit is None or len(found) < limit:
            count = PAGE if limit is None else min(limit - len(found), PAGE)
            page = await self._connection.get(path, {"after": found[-1] if found else after, "limit": count})
            found += page["items"]
            if page["next"] is None:
                break
        return found

    async def find_gates(self, query: GateQuery = ALL_GATES) -> list[GateRow]:
        asked = {
            "run": query.run,
            "workflow": query.workflow,
            "node": query.node,
            "assignee": query.assignee,
            "text": query.text,
        }
        found: list[GateRow] = []
        async for row in self.pages("/gates", asked):
            gate = fitted({**row, "token": row["visit"]}, GateRow)
            if fits(query, gate):
                found.append(gate)
                if len(found) == query.limit:
                    break
        return found

    async def kept(
        self,
        run: RunId | None = None,  # noqa: ARG002
        request: str | None = None,  # noqa: ARG002
        limit: int = 1_000,  # noqa: ARG002
    ) -> list[Json]:
        """A service keeps no requests: it answers at once, or says that no engine runs."""
        return []

    async def documents(self, kind: str, name: str | None = None, version: int | None = None) -> list[StoredDocument]:
        if kind == WORKFLOW:
            return await self._workflows(name, version)
        if kind == SCHEDULE:
            rows = [row async for row in self.pages("/schedules", {})]
            return [_schedule(row) for row in rows if name is None or row["name"] == name]
        return []

    async def _workflows(self, name: str | None, version: int | None) -> list[StoredDocument]:
        if name is None:
            rows = [row async for row in self.pages("/workflows", {})]
            return [StoredDocument(WORKFLOW, row["workflow"], row["version"], row["hash"], None) for row in rows]
        path = f"/workflows/{segment(name)}" + (f"/versions/{version}" if version is not None else "")
        try:
            row = await self._connection.get(path)
        except CommandRefused as refused:
            if refused.kind == "NOT_FOUND":
                return []
            raise
        body = as_document(load_value(row["definition"]).require())
        return [StoredDocument(WORKFLOW, row["workflow"], row["version"], row["hash"], body)]

    async def put_document(
        self,
        kind: str,
        name: str,
        hash: str,
        body: Json,
        expected: int | None = None,  # noqa: ARG002
    ) -> StoredDocument:
        if kind != SCHEDULE:
            raise CommandRefused("BAD_REQUEST", f"a service does not take a {kind} this way")
        path = f"/schedules/{segment(name)}"
        if body is None:
            await self._connection.send("DELETE", path)
        else:
            given = {key: value for key, value in body.items() if key != "name" and value is not None}
            await self._connection.send("PUT", path, given)
        return StoredDocument(kind, name, 1, hash, body)

    async def outbox(
        self, _shard: int | Sequence[int], after: int = 0, limit: int = 1_000, parked: bool = False
    ) -> list[OutboxRow]:
        if not parked:
            return []
        rows = [row async for row in self.pages("/dead-letters", {})]
        letters = [
            OutboxRow(row["id"], RunId(row["run"]), msgspec.convert(row["effect"], ANY_EFFECT), row["reason"])
            for row in rows
        ]
        return sorted((letter for letter in letters if letter.id > after), key=lambda letter: letter.id)[:limit]

    async def inbox(self, _shard: int | Sequence[int], limit: int = 1_000) -> list[InboxRequest]:  # noqa: ARG002
        """A service keeps no requests for a caller: it answers at once or says that no engine runs."""
        return []

    async def put_blob(self, run: RunId, content: bytes) -> str:  # noqa: ARG002
        """Takes the bytes of an artifact, which are sent when it is given its name."""
        digest = digest_of(content)
        self._taken[digest] = content
        return digest

    def taken_blob(self, digest: str) -> bytes:
        """Bytes that `put_blob` has taken, once."""
        return self._taken.pop(digest)

    async def get_blob(self, digest: str) -> bytes | None:
        """The bytes of an artifact whose `artifact.written` was read before."""
        known = self._artifacts.get(digest)
        if known is None:
            return None
        return await self._connection.download(f"/runs/{segment(known[0])}/artifacts/{segment(known[1])}")


def _fits(row: RunRow, query: RunQuery) -> bool:
    """Whether a run has what a service is not asked for."""
    ends = query.run_ending is None or row.run.endswith(query.run_ending)
    return ends and (query.beyond is None or row.number < query.beyond)


def _schedule(row: dict[str, Json]) -> StoredDocument:
    from treadle.runtime.schedule.definition import Schedule

    body = msgspec.to_builtins(fitted(row, Schedule))
    return StoredDocument(SCHEDULE, row["name"], 1, hash_of(body), body)


def fitted(row: dict[str, Json], kind: type[S]) -> S:
    """A row as a Struct. Fields that only the service's answer has are left out."""
    names = {field.encode_name for field in msgspec.structs.fields(kind)}
    return msgspec.convert({name: value for name, value in row.items() if name in names}, kind)
