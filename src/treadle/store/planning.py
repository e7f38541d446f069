"""A batch as rows, before a database sees it.

Owns the conversion: decisions about the same run become one, timers and gates are reduced to their final state,
everything is packed and sealed, and large values are moved out (`spill`). Promises that a value that cannot be packed
raises here, before a transaction has begun. Must not know a database: a store writes the rows, and asks `stale` for the
message of a refusal.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from treadle.errors import StoreConflict
from treadle.model.codec import compressed, joined, pack_events
from treadle.model.effects import (
    ClearTimer,
    CloseGate,
    Effect,
    HoldWork,
    NoteGate,
    NoteItem,
    NoteMove,
    NoteVersion,
    OfferWork,
    OpenGate,
    SetTimer,
    WithdrawWork,
)
from treadle.model.events import Beginning, Event, TimerFired
from treadle.model.ids import RunId, TimerId, TokenId
from treadle.model.states import RUN_ENDED
from treadle.store.packing import pack
from treadle.store.port import Batch, Commit, GateRow
from treadle.store.rows import gate_row, parts_of
from treadle.store.seals import about_effect, seal, seal_block
from treadle.store.spill import Spill

SLICE = 64
"""Events packed at once: so few that they seldom reach the size at which values are moved out, so many that slicing
costs nothing."""


class RunDecisions(msgspec.Struct):
    """All decisions of a batch about one run."""

    commit: Commit
    """The newest decision; its status is the run's."""
    expected: int
    events: list[Event]
    cuts: Sequence[int] = ()

    @property
    def began(self) -> int:
        """When a run that begins in this batch has started; for a fork that is when it was forked, not when its past
        began."""
        return self.events[self.cuts[-1]].at if self.cuts else self.started.at

    @property
    def last(self) -> int:
        return self.expected + len(self.events)

    @property
    def started(self) -> Beginning:
        """The first event of a run that begins in this batch."""
        first = self.events[0]
        assert isinstance(first, Beginning)
        return first


class BatchPlan:
    """A batch, packed. See the module's docstring."""

    def __init__(self, batch: Batch, payload_max: int) -> None:
        self._payload_max = payload_max
        self.batch = batch
        self.runs: dict[RunId, RunDecisions] = {}
        self.timers: dict[tuple[RunId, TimerId], int | None] = {}
        self.gates: dict[tuple[RunId, TokenId], GateRow | None] = {}
        self.notes: dict[tuple[RunId, TokenId], NoteGate] = {}
        """Gates that were open before: what has changed about each."""
        self.work: dict[tuple[RunId, TokenId], OfferWork | None] = {}
        """Queue work that is offered; None: withdrawn."""
        self.held: dict[RunId, bool] = {}
        """Runs whose offers are held from now on (True), or released (False)."""
        self.moves: list[tuple[RunId, NoteMove]] = []
        """Moves of entities."""
        self.items: list[tuple[RunId, NoteItem]] = []
        """Starts that have become items of batches."""
        self.versions: dict[RunId, int] = {}
        """Runs that go on under another version."""
        self.ended: set[RunId] = set()
        self.effects: list[tuple[RunId, Effect]] = []
        self.flaw: StoreConflict | None = None
        """A problem that no database could accept; reported after the fence and the versions were checked."""
        try:
            for commit in batch.commits:
                self._decide(commit)
        except StoreConflict as flaw:
            self.flaw = flaw
        self.blobs: list[tuple[RunId, bytes, bytes]] = []
        self.blocks = [
            (run, part[-1].seq, seal_block(run, part[-1].seq, self._block(run, part)))
            for run, decided in self.runs.items()
            if decided.events
            for part in (parts_of(decided.events, decided.cuts) if decided.cuts else (decided.events,))
        ]
        self.packed_effects = [self._packed(run, effect) for run, effect in self.effects]
        self.offers = [
            (run, offer, self._packed(run, offer)) for (run, _), offer in self.work.items() if offer is not None
        ]

    def _decide(self, commit: Commit) -> None:
        decided = self.runs.get(commit.run)
        seq = commit.expected_seq
        if decided is None:
            decided = self.runs[commit.run] = RunDecisions(commit, seq, [], commit.cuts)
        elif decided.last != seq:
            raise stale(commit.run, decided.last, seq)
        if seq == 0 and not (commit.events and isinstance(commit.events[0], Beginning)):
            raise StoreConflict("STALE_VERSION", f"run {commit.run} does not exist, and this does not start it")
        decided.commit = commit
        events = commit.events
        if [event.seq for event in events] != list(range(seq + 1, seq + 1 + len(events))):
            raise _gap(commit)
        if TimerFired in map(type, events):
            for event in events:
                if isinstance(event, TimerFired):
                    self.timers[commit.run, event.timer] = None
        decided.events += events
        for effect in commit.effects:
            self._keep(commit, effect)
        if commit.status in RUN_ENDED:
            self.ended.add(commit.run)
            self.gates = {key: row for key, row in self.gates.items() if key[0] != commit.run}
            self.notes = {key: note for key, note in self.notes.items() if key[0] != commit.run}

    def _keep(self, commit: Commit, effect: Effect) -> None:
        """Puts timers and gates into rows of their own: timers are found by due time, gates by run."""
        if isinstance(effect, SetTimer):
            self.timers[commit.run, effect.timer] = effect.due
        elif isinstance(effect, ClearTimer):
            self.timers[commit.run, effect.timer] = None
        elif isinstance(effect, CloseGate):
            self.gates[commit.run, effect.token] = None
            self.notes.pop((commit.run, effect.token), None)
        elif isinstance(effect, NoteGate):
            self._note_gate(commit.run, effect)
        elif isinstance(effect, OfferWork):
            self.work[commit.run, effect.token] = effect
        elif isinstance(effect, WithdrawWork):
            self.work[commit.run, effect.token] = None
        elif isinstance(effect, HoldWork):
            self.held[commit.run] = effect.held
        elif isinstance(effect, NoteMove):
            self.moves.append((commit.run, effect))
        elif isinstance(effect, NoteItem):
            self.items.append((commit.run, effect))
        elif isinstance(effect, NoteVersion):
            self.versions[commit.run] = effect.version
        else:
            if isinstance(effect, OpenGate):
                self.gates[commit.run, effect.token] = gate_row(commit, effect, "")
                self.notes.pop((commit.run, effect.token), None)
            self.effects.append((commit.run, effect))

    def _note_gate(self, run: RunId, effect: NoteGate) -> None:
        opened, moved = self.gates.get((run, effect.token)), effect.moved
        if opened is None and moved is not None:  # its checksum covers the node: the row is written anew
            told = {"title": moved.title, "assign": moved.assign, "due": moved.due}
            opened = GateRow(run, effect.token, moved.node, "", moved.opened, **told)
            self.notes.pop((run, effect.token), None)
        if opened is not None:  # in this batch
            self.gates[run, effect.token] = opened.noted(effect)
        else:
            self.notes[run, effect.token] = effect

    def _block(self, run: RunId, events: list[Event]) -> bytes:
        """Packs a fan-out's many small events in slices: only a large slice can contain a large event. The events
        hardly differ: 10,000 branches are 3.5 MB, compressed 0.5."""
        if len(events) <= SLICE:
            return self._slice(run, events)
        return compressed(joined([self._slice(run, events[at : at + SLICE]) for at in range(0, len(events), SLICE)]))

    def _slice(self, run: RunId, events: list[Event]) -> bytes:
        block = pack_events(events)
        if len(block) <= self._payload_max:
            return block
        spill = Spill(self._payload_max)
        shrunk = [spill.shrunk(event) for event in events]
        if spill.blobs:
            block = pack_events(shrunk)
            self._spilt(run, spill)
        return block

    def _packed(self, run: RunId, effect: Effect) -> bytes:
        packed = pack(effect)
        if len(packed) > self._payload_max:
            spill = Spill(self._payload_max)
            packed = pack(spill.shrunk(effect))
            self._spilt(run, spill)
        return seal(packed, about_effect(run))

    def _spilt(self, run: RunId, spill: Spill) -> None:
        self.blobs += [(run, digest, content) for digest, content in spill.blobs.items()]


def _gap(commit: Commit) -> StoreConflict:
    before = commit.expected_seq
    for event in commit.events:
        if event.seq != before + 1:
            break
        before = event.seq
    return StoreConflict("STALE_VERSION", f"run {commit.run}: event {event.seq} cannot follow {before}")


def key_taken(workflow: str, key: str) -> StoreConflict:
    """The refusal of a start whose key another run or an item of a batch has."""
    return StoreConflict("DUPLICATE", f"a run of {workflow} with the idempotency key {key!r} exists already")


def stale(run: RunId, stands: int, seen: int) -> StoreConflict:
    """The refusal of a decision that was made on another state than the stored one."""
    return StoreConflict("STALE_VERSION", f"run {run} is at {stands}, the decision saw {seen}")
