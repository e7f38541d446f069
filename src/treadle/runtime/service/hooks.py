"""Ingress hooks: deliveries of other systems that start runs or send signals (5.4). Reached as `Client.hooks`.

Owns hooks (documents of the kind `_hook`), and the log of deliveries. Promises that a delivery is written down before
anything about it is checked, and gets its outcome afterwards; that a key counts once per hook, whatever dies when; that
a secret is kept sealed. Must not know HTTP: a delivery comes as data, and its outcome carries a status for the sender.

    delivery ─► log ─► signature ─► body ─► when ─► mappings ─► start or signal ─► outcome into the log

Exactly once
    A run that a delivery starts has a key made of hook and delivery key (`run_key`), which the engine lets count once.
    So two deliveries with one key at the same moment, or one sent again after a crash, end in one run. A delivery whose
    process died has no outcome; replaying it uses its own number as the key, if it has none, so it cannot count twice.

How long deliveries are kept
    Thirty days, and the newest thousand of all hooks for ever.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from treadle.errors import CommandRefused, EvaluationError, StoreConflict, TreadleError
from treadle.model import commands as c
from treadle.model.ids import RunId
from treadle.runtime.access.sealing import SealBroken, Sealing
from treadle.runtime.command.commander import Commander
from treadle.runtime.service import signals
from treadle.runtime.service.deliveries import Delivered, seen_by_rules
from treadle.runtime.service.hook_rules import CompiledHook, Hook, HookWish, path_problem, run_key
from treadle.runtime.service.records import Changes, Entry, LogEntry, Note, Records
from treadle.runtime.service.signatures import is_signed, secret_problem
from treadle.store.port import RunQuery

Json = Any
KIND = "_hook"
LOG = "delivery:hook"
RESULT_WAIT_S = 30.0
KEPT_MS = 30 * 24 * 3_600_000
KEPT_AT_LEAST = 1_000
PRUNE_EVERY_MS = 3_600_000
FINAL = frozenset({"started", "signalled", "seen", "not_wanted"})


class HookOutcome(Struct, frozen=True, omit_defaults=True):
    """What became of a delivery."""

    result: str
    """started, signalled, seen (its key was there before), not_wanted (`when`), signature, refused, failed."""
    status: int
    code: str | None = None
    detail: str | None = None
    run: str | None = None
    runs: tuple[str, ...] = ()
    ended: str | None = None
    """The status of a run whose result was waited for."""
    output: Json = None


class Received(Struct, frozen=True):
    """A delivery and its outcome."""

    delivery: int
    outcome: HookOutcome


class StartedRun(Protocol):
    """A run, as far as a hook needs it."""

    @property
    def id(self) -> RunId: ...

    async def wait(self, timeout: float | None = None) -> Any: ...


class Owner(Protocol):
    """The client that starts runs and seals secrets."""

    _commander: Commander

    async def sealing(self) -> Sealing: ...

    async def start(self, workflow: str, input: Json, *, key: str, run_id: str, **given: Json) -> StartedRun: ...


class Hooks:
    """See the module's docstring."""

    def __init__(self, client: Any) -> None:
        self._client: Owner = client
        self._commander: Commander = client._commander
        self._records = Records(self._commander.store)
        self._pruned = 0

    # Hooks

    async def all(self) -> list[Hook]:
        """Every hook, by slug."""
        return [_hook(document.body) for document in await self._records.all(KIND)]

    async def find(self, slug: str) -> Hook:
        """A hook. Raises CommandRefused(NOT_FOUND)."""
        document = await self._records.find(KIND, slug)
        if document is None:
            raise CommandRefused("NOT_FOUND", f"there is no hook {slug!r}")
        return _hook(document.body)

    async def put(self, hook: Hook, secret: str | None = None) -> tuple[Hook, bool]:
        """Creates or replaces a hook; without a secret it keeps the one it has, if its source is still the same. Raises
        CommandRefused(BAD_REQUEST). Returns the hook and whether it is new."""
        CompiledHook(hook)
        problem = path_problem(hook)
        if problem is not None:
            raise CommandRefused("BAD_REQUEST", problem)
        now = self._commander.clock.now()
        document = await self._records.find(KIND, hook.slug)
        before = _hook(document.body) if document is not None else None
        kept = before.sealed if before is not None and before.source == hook.source else None
        if secret is not None or kept is None:
            problem = secret_problem(hook.source, secret)
            if problem is not None:
                raise CommandRefused("BAD_REQUEST", f"secret: {problem}")
            kept = (await self._client.sealing()).seal(_purpose(hook.slug), secret) if secret is not None else None
        earlier = _earlier(before, hook.workflow)
        made = before.created if before is not None else now
        hook = replace(hook, sealed=kept, earlier=earlier, created=made, changed=now)
        body = msgspec.to_builtins(hook)
        await self._records.put(KIND, hook.slug, body, document.version if document is not None else 0)
        return hook, before is None

    async def remove(self, slug: str) -> None:
        """Ends a hook; its deliveries stay. Raises CommandRefused(NOT_FOUND)."""
        await self.find(slug)
        await self._records.put(KIND, slug, None)

    # Deliveries

    async def deliveries(self, slug: str, *, before: int | None = None, limit: int = 100) -> list[LogEntry]:
        """Deliveries of a hook, newest first."""
        return await self._records.entries(LOG, slug, before=before, limit=limit)

    async def delivery(self, slug: str, id: int) -> LogEntry:
        """One delivery. Raises CommandRefused(NOT_FOUND)."""
        found = await self.deliveries(slug, before=id + 1, limit=1)
        if not found or found[0].id != id:
            raise CommandRefused("NOT_FOUND", f"hook {slug!r} has no delivery {id}")
        return found[0]

    async def receive(self, slug: str, delivered: Delivered) -> Received:
        """Takes a delivery. Raises CommandRefused(NOT_FOUND) if there is no such hook."""
        hook = await self.find(slug)
        entry = await self._written(slug, delivered.as_json())
        outcome = await self._settled(hook, entry, delivered, verified=False, alias=entry.id)
        await self._prune()
        return Received(entry.id, outcome)

    async def replay(self, slug: str, id: int) -> Received:
        """Takes a delivery again, as if it had been sent again. Raises CommandRefused: NOT_FOUND, INVALID_STATE if its
        signature was refused."""
        hook, entry = await self.find(slug), await self.delivery(slug, id)
        known = entry.body.get("outcome")
        if known is not None and known["result"] == "signature":
            raise CommandRefused("INVALID_STATE", f"the signature of delivery {id} was refused: it cannot be replayed")
        delivered = Delivered.from_json(entry.body)
        again = await self._written(slug, {**delivered.as_json(), "replay_of": id})
        # One whose effect is not known may have had it: it counts under its own number.
        alias = again.id if known is not None and known["result"] in FINAL else id
        outcome = await self._settled(hook, again, delivered, verified=known is not None, alias=alias, at=entry.at)
        if known is None:
            await self._records.revise(LOG, id, {**entry.body, "outcome": msgspec.to_builtins(outcome)})
        return Received(again.id, outcome)

    async def _written(self, slug: str, body: Json) -> LogEntry:
        entry = Entry(LOG, slug, body, self._commander.clock.now())
        return (await self._records.write(Changes(entries=[entry]))).entries[0]

    async def _settled(
        self, hook: Hook, entry: LogEntry, delivered: Delivered, *, verified: bool, alias: int, at: int | None = None
    ) -> HookOutcome:
        """Carries a delivery out and writes its outcome down. `alias`: the number it counts under; `at`: when it was
        signed, if that is not now."""
        try:
            outcome = await self._carried_out(
                hook, entry.id, delivered, alias, entry.at if at is None else at, verified
            )
        except TreadleError as problem:  # the store or the engine: the sender may try again
            with suppress(TreadleError):
                failed = HookOutcome("failed", 503, "STORE_UNAVAILABLE", str(problem)[:500])
                await self._records.revise(LOG, entry.id, {**entry.body, "outcome": msgspec.to_builtins(failed)})
            raise
        await self._records.revise(LOG, entry.id, {**entry.body, "outcome": msgspec.to_builtins(outcome)})
        return outcome

    async def _carried_out(
        self, hook: Hook, id: int, delivered: Delivered, alias: int, at: int, verified: bool
    ) -> HookOutcome:
        if not verified and not await self._is_signed(hook, delivered, at):
            return HookOutcome("signature", 401, "UNAUTHENTICATED", "the signature is missing, wrong or too old")
        try:
            about = {"id": alias, "at": at, "hook": hook.slug, "digest": delivered.digest}
            wanted = CompiledHook(hook).wanted(seen_by_rules(delivered, about))
        except ValueError as problem:
            return HookOutcome("refused", 400, "BAD_REQUEST", str(problem))
        except EvaluationError as problem:
            return HookOutcome("refused", 422, "SCHEMA", str(problem))
        if wanted is None:
            return HookOutcome("not_wanted", 202)
        if not await self._commander.presence.is_owned():
            return HookOutcome("failed", 503, "NO_ENGINE", "no engine coordinates this store now")
        try:
            if hook.signal is not None:
                return await self._signalled(hook, hook.signal.name, wanted, alias)
            return await self._started(hook, wanted, id, alias, delivered)
        except CommandRefused as refused:
            code = "SCHEMA" if refused.kind in ("BAD_REQUEST", "NOT_FOUND") else refused.kind
            return HookOutcome("refused", 422, code, refused.message)

    async def _is_signed(self, hook: Hook, delivered: Delivered, at: int) -> bool:
        secret = ""
        if hook.sealed is not None:
            sealing = await self._client.sealing()
            try:
                secret = sealing.open(_purpose(hook.slug), hook.sealed)
            except SealBroken as broken:
                raise CommandRefused("INVALID_STATE", f"the secret of hook {hook.slug!r}: {broken}") from None
        return is_signed(hook.source, secret, delivered.headers, delivered.body, at / 1000)

    async def _started(self, hook: Hook, wanted: HookWish, id: int, alias: int, delivered: Delivered) -> HookOutcome:
        assert hook.workflow is not None, "a hook starts a workflow or sends a signal"
        key = run_key(hook.slug, wanted.key, alias)
        for workflow in hook.earlier:
            query = RunQuery(workflow=workflow, idempotency_key=key, limit=1)
            for row in await self._commander.store.find_runs(query):
                return HookOutcome("seen", 200, run=row.run)
        mine = await self._commander.place(self._commander.new_run(), hook.workflow, None)
        run = await self._client.start(
            hook.workflow,
            wanted.input,
            key=key,
            entity=wanted.entity,
            run_id=mine,
            trigger={"type": "hook", "hook": hook.slug, "delivery": id},
            trace=delivered.headers,
        )
        is_seen = run.id != mine
        result = "seen" if is_seen else "started"
        if hook.respond == "result":
            with suppress(TimeoutError, asyncio.TimeoutError):
                ended = await run.wait(RESULT_WAIT_S)
                return HookOutcome(result, 200, run=run.id, ended=str(ended.status), output=ended.output)
        return HookOutcome(result, 200 if is_seen else 202, run=run.id)

    async def _signalled(self, hook: Hook, name: str, wanted: HookWish, alias: int) -> HookOutcome:
        """Sends a signal. Its receivers are written down first, if it has a key: the same key again reaches the same
        runs, in which it counts once."""
        runs = await signals.runs_waiting_for(self._commander, name, wanted.signal_key)
        id, seen = run_key(hook.slug, wanted.key, alias), False
        if wanted.key is not None:
            note = Note(f"{id}:signal", {"runs": list(runs)}, self._commander.clock.now() + KEPT_MS)
            try:
                await self._records.write(Changes(notes=[note]))
            except StoreConflict:
                first = await self._records.note(note.key)
                runs, seen = [RunId(run) for run in first.body["runs"]] if first is not None else [], True
        taken = await signals.send_to(self._commander, runs, c.SendSignal(name, wanted.signal_key, wanted.input, id))
        if seen:
            return HookOutcome("seen", 200, runs=tuple(runs))
        return HookOutcome("signalled", 202, runs=tuple(taken))

    async def _prune(self) -> None:
        now = self._commander.clock.now()
        if now - self._pruned >= PRUNE_EVERY_MS:
            self._pruned = now
            await self._records.prune(LOG, now - KEPT_MS, KEPT_AT_LEAST)


def _hook(body: Json) -> Hook:
    return msgspec.convert(body, Hook)


def _purpose(slug: str) -> str:
    """What a hook's secret is sealed for."""
    return f"hook:{slug}"


def _earlier(before: Hook | None, workflow: str | None) -> tuple[str, ...]:
    """The workflows that a hook has started before, without the one it starts from now on."""
    if before is None:
        return ()
    known = dict.fromkeys((*before.earlier, *((before.workflow,) if before.workflow is not None else ())))
    return tuple(name for name in known if name != workflow)
