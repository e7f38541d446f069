"""Written by tools/blocking.py: the blocking faces of engines and clients. Do not edit."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal, Self

from msgspec import UNSET, UnsetType

from treadle.actions.net import AddressGate
from treadle.actions.registry import Registry
from treadle.actions.secrets import FoundSecret
from treadle.display.graph_json import DrawnGraph
from treadle.display.views import GraphView, TimelineView
from treadle.kernel.state import RunState
from treadle.model import commands as c
from treadle.model import events as e
from treadle.model.definition import Workflow
from treadle.model.errors import Error
from treadle.model.ids import RecordId, RunId, TokenId
from treadle.model.references import EntityRef, Person
from treadle.model.states import RunStatus
from treadle.runtime.access.keys import Audited, Key
from treadle.runtime.access.sealing import Sealing
from treadle.runtime.access.secrets import StoredSecret
from treadle.runtime.client import Deployed
from treadle.runtime.command.kept_requests import RequestRow as RequestRow
from treadle.runtime.command.once import Once
from treadle.runtime.command.presence import NodeRow as NodeRow
from treadle.runtime.coordinate.along import Along
from treadle.runtime.coordinate.feed import Watch
from treadle.runtime.definitions import Definition as Definition
from treadle.runtime.ended import Ended as Ended
from treadle.runtime.execute.artifacts import Artifact
from treadle.runtime.gate_view import GateOutcome, GateView
from treadle.runtime.migrating import Migration
from treadle.runtime.operate.compensations import CompensationStatus as CompensationStatus
from treadle.runtime.operate.fsck import Report
from treadle.runtime.people_face import GateRow as GateRow
from treadle.runtime.queue.queue_settings import QueueView
from treadle.runtime.queue.tasks import Tasks
from treadle.runtime.run import Json
from treadle.runtime.run_queue_face import QueuedRun as QueuedRun
from treadle.runtime.schedule.definition import Schedule
from treadle.runtime.service.callbacks import Callbacks
from treadle.runtime.service.deliveries import Delivered
from treadle.runtime.service.entities import Found, Legs, Order
from treadle.runtime.service.entity_shapes import Conversion, Entity, Positions
from treadle.runtime.service.following import Following
from treadle.runtime.service.hook_rules import Hook
from treadle.runtime.service.hooks import Received
from treadle.runtime.service.records import Entry, LogEntry, Records
from treadle.runtime.service.subscriptions import SubscriptionRecord, SubscriptionState
from treadle.runtime.settings import EngineSettings as EngineSettings
from treadle.runtime.view.moments import Moment as Moment
from treadle.runtime.view.picture_shapes import RunPicture
from treadle.runtime.view.shapes import GroupDetail, GroupRow, RunDetail, VisitDetail, VisitRow
from treadle.runtime.view.snapshot_shapes import StateDifference as StateDifference
from treadle.runtime.view.snapshot_shapes import StateView
from treadle.runtime.view.stats import WorkflowStats
from treadle.runtime.view.workflow_shapes import DefinitionDifference, VersionRow, WorkflowRow
from treadle.store.entities import EntityRow as EntityRow
from treadle.store.gates import GateCount as GateCount
from treadle.store.places import StoreLocation
from treadle.store.port import Commit, OutboxRow, RunRow, Store
from treadle.store.service import Changes, Note
from treadle.store.work import QueueRules

class Run:
    """`treadle.runtime.run.Run`, whose methods wait."""

    id: RunId
    def info(self) -> RunRow:
        """What is known of it; raises CommandRefused(NOT_FOUND)."""
    def status(self) -> RunStatus: ...
    def state(self, at: Moment | None = None) -> RunState:
        """Everything, folded: visits, context, timers; `at`: as it was at the end of the decision that an event number,
        an instant or a visit lies in. For reading only."""
    def history(self, after: int = 0, limit: int | None = None) -> list[e.Event]:
        """Its events so far, from any point on."""
    def watch(self) -> Watch:
        """Tells of news of this run from now on: begin to watch, then read."""
    def events(self, after: int = 0) -> Iterator[e.Event]:
        """Its events, those to come included, until it has ended."""
    def wait(self, timeout_s: float | None = None) -> Ended:
        """Until it has ended. Raises TimeoutError after `timeout_s`; the run goes on. Raises EngineStopped if the
        engine or client this handle came from is closed."""
    def result(self, timeout_s: float | None = None) -> Json:
        """Its output. Raises RunFailed when it ends otherwise."""
    def timeline(self) -> TimelineView:
        """Its visits over time, as a picture in a notebook."""
    def artifacts(self) -> dict[str, Artifact]:
        """What it has written, and what it inherits, by name."""
    def artifact(self, name: str) -> bytes:
        """The content of an artifact. Raises CommandRefused(NOT_FOUND)."""
    def ask(self, command: c.Command) -> bool:
        """Any command. Returns whether it had an effect; raises CommandRefused."""
    def signal(self, name: str, data: Json = None, *, key: Json = None, id: str | None = None) -> None:
        """Sends a signal; with the same `id` it counts once."""
    def cancel(
        self, reason: str | None = None, *, visit: int | None = None, group: str | None = None, by: str = "operator"
    ) -> None:
        """Cancels the run, or one visit of it, or the live groups of a name: their joins then go on with what has
        arrived. What has ended stays as it is."""
    def add_siblings(
        self, group: str, items: Sequence[Json] | None = None, *, count: int | None = None, id: str | None = None
    ) -> None:
        """Lets an open group grow: by a branch for each item, or by so many. With the same `id` it counts once."""
    def close_group(self, group: str, *, by: str = "operator") -> None:
        """No more siblings are added to an open group: its joins can be decided."""
    def pause(self, reason: str | None = None, *, by: str = "operator", strict: bool = False) -> None:
        """Nothing new begins; answers are kept. `strict`: a paused run refuses it."""
    def resume(self, *, by: str = "operator", strict: bool = False) -> None:
        """A paused run goes on. `strict`: a running one refuses it."""
    def extend(self, ms: int, *, by: str = "operator") -> None:
        """Gives a run that has timed out, or will, more time."""
    def raise_budget(
        self,
        *,
        cost: float = 0,
        tokens: int = 0,
        visits: int = 0,
        elapsed_ms: int = 0,
        by: str = "operator",
        id: str | None = None,
    ) -> None:
        """Adds to the limits of the run's budget, and lets a run go on that its budget has stopped. With the same `id`
        it counts once. Raises CommandRefused."""
    def abort(self, *, by: str = "operator", strict: bool = False) -> None:
        """Ends a run that waits for somebody to decide about its timeout. `strict`: a running one refuses it."""
    def retry(self, visit: int | None = None, *, by: str = "operator") -> list[TokenId]:
        """Tries visits again that have failed or timed out, and brings back what their failure took down: one visit, or
        all whose failure nothing has handled, in failed children first. Returns the visits that are retried. Raises
        CommandRefused, which says why."""
    def fork(
        self,
        at: int | None = None,
        *,
        visit: int | None = None,
        node: str | None = None,
        input: Json = None,
        state: Mapping[str, Json] | None = None,
        outputs: Mapping[str | int, Json] | Mapping[str, Json] | None = None,
        version: int | None = None,
        key: str | None = None,
        tags: Sequence[str] = (),
        entity: EntityRef | Mapping[str, Json] | str | None = None,
        inherit_compensation: bool = False,
        by: str = "operator",
    ) -> Run:
        """Starts a run that has the past of this one up to a point: after event `at`, before the work of a `visit`,
        before that of the first visit of a `node`, else as it is now. `input`, `state` (target path to value) and
        `outputs` (visit or node to output) are otherwise from there on. This run is not touched. The same `key` gives
        the same fork again. Raises CommandRefused."""
    def callback(
        self, visit: int, attempt: int, output: Json = None, error: Error | None = None, spent: Json = None
    ) -> bool:
        """Answers for an external worker, which has `spent` {cost, usage}. Returns False if the worker has answered the
        same before, which changes nothing. Raises CommandRefused: DUPLICATE, INVALID_STATE, LATE_RESULT, SCHEMA."""
    @property
    def caller(self) -> str | None:
        """The person whom a service knows by the key; None on a store, where the caller says who they are."""
    def complete_gate(
        self,
        visit: int,
        data: Json = None,
        *,
        by: str | None = None,
        force: bool = False,
        person: Person | None = None,
        comment: str | None = None,
    ) -> None:
        """Answers a gate. One that somebody has claimed is answered by them; by anybody else with `force`, which
        history records. With a quorum it is one answer of several."""
    def claim_gate(self, visit: int, *, by: str | None = None, person: Person | None = None) -> None:
        """Takes a gate on: nobody else answers it from now on, unless by force."""
    def release_gate(
        self, visit: int, *, by: str | None = None, force: bool = False, person: Person | None = None
    ) -> None:
        """Gives a claimed gate back."""
    def delegate_gate(
        self, visit: int, to: str, *, by: str | None = None, force: bool = False, person: Person | None = None
    ) -> None:
        """Hands a gate to somebody else."""
    def comment_gate(
        self,
        visit: int,
        text: str,
        *,
        by: str | None = None,
        attachments: Sequence[str] = (),
        id: str | None = None,
        person: Person | None = None,
    ) -> None:
        """Says something about an open gate; `attachments` are names of artifacts of the run. With the same `id` it
        counts once."""
    def add_artifact(
        self, name: str, content: bytes, content_type: str | None = None, *, by: str | None = None
    ) -> Artifact:
        """Adds an artifact to a run that has not ended, such as an attachment of a comment. It may replace one that a
        person has added, but none that the run itself has written."""
    def detail(self) -> RunDetail:
        """The run as it is now: its row, input, output, error and what caused it, visits by status, and for every
        waiting visit what it waits for and what would end that. Raises CommandRefused(NOT_FOUND)."""
    def visits(
        self,
        *,
        statuses: Sequence[str] = (),
        node: str | None = None,
        group: int | None = None,
        after: int | None = None,
        limit: int = 100,
        newest_first: bool = False,
    ) -> list[VisitRow]:
        """Its visits, oldest first unless told otherwise: those with one of the statuses, of a node, inside a group.
        The page begins behind visit `after`."""
    def visit(self, visit: int) -> VisitDetail:
        """One visit: input, output, the data it sees, attempts with errors and times, streamed text, why it was made,
        what it waits for. Raises CommandRefused(NOT_FOUND)."""
    def groups(self, *, after: int = 0, limit: int = 100) -> list[GroupRow]:
        """Its fan-outs by number, those that have ended included, behind group `after`."""
    def group(self, group: int, *, after: int = 0, limit: int = 100, seq: int | None = None) -> GroupDetail:
        """One fan-out with a page of its branches, those that had failed at event `seq` first, from position `after`
        on. A walk over several pages keeps the `seq` of its first. Raises CommandRefused(NOT_FOUND)."""
    def snapshot(self, at: Moment | None = None) -> StateView:
        """The fold of its history: as it is now, or as it was at the end of the decision that an event number, an
        instant or a visit lies in. Raises CommandRefused."""
    def picture(self) -> RunPicture:
        """What a graph of the run shows at its newest event, without its history. Raises CommandRefused(NOT_FOUND)."""
    def decisions(self, after: int = 0, limit: int | None = None) -> list[int]:
        """The numbers of the events at which its decisions end: the moments at which it can be looked at and forked."""
    def at(self, moment: Moment) -> StateView:
        """As `snapshot`, for a moment of its past."""
    def difference(self, begin: Moment, end: Moment) -> StateDifference:
        """What changed between two moments. Raises CommandRefused."""
    def diff(self, begin: Moment, end: Moment) -> StateDifference:
        """As `difference`."""
    def compensations(self) -> list[CompensationStatus]:
        """What it can undo, in the order in which it was done, and what became of each."""
    def retry_compensation(self, record: int | None = None, *, by: str = "operator") -> RecordId:
        """Tries to undo a visit again where that failed, then goes on with the visits before it. Which record: may be
        left out where only one failed."""
    def skip_compensation(self, record: int | None = None, *, by: str = "operator") -> RecordId:
        """Leaves a visit undone whose compensation failed, and goes on with the visits before it."""
    def migrate(
        self, to: int, nodes: Mapping[str, str] | None = None, *, dry_run: bool = False, by: str = "operator"
    ) -> Migration:
        """Goes on under version `to` of its workflow. `nodes` says which nodes take the place of others. Raises
        CommandRefused with everything in the way as `problems`; then nothing has changed. A dry run reports it."""
    def edit(
        self,
        writes: Mapping[str, Json],
        *,
        branch: int | None = None,
        by: str = "operator",
        reason: str | None = None,
        dry_run: bool = False,
    ) -> list[e.Event]:
        """Writes values to target paths (`state.…`, `output.…`) of a paused or failed run: of its own scope, or of that
        of a visit's `branch`. Returns the events it leads to, which `dry_run` only foretells. Raises CommandRefused."""
    def skip(
        self, visit: int, output: Json = None, *, by: str = "operator", reason: str | None = None, dry_run: bool = False
    ) -> list[e.Event]:
        """Completes a visit of a running, paused or failed run with this output. Otherwise as `edit`."""
    def jump(
        self, visit: int, to: str, *, by: str = "operator", reason: str | None = None, dry_run: bool = False
    ) -> list[e.Event]:
        """Ends a visit of a paused or failed run, and goes on at another node of the same fan-out. Otherwise as
        `edit`."""
    def set_input(
        self, visit: int, input: Json = None, *, by: str = "operator", reason: str | None = None, dry_run: bool = False
    ) -> list[e.Event]:
        """Sets what further attempts of a visit of a paused or failed run are given. Otherwise as `edit`."""
    def foretell_fork(self, at: int | None = None, **changes: Any) -> list[e.Event]:
        """The events with which a fork would begin, after its past; the arguments are those of `fork`. Nothing is
        changed. Raises CommandRefused as `fork` would."""
    def preview(self, command: c.Command) -> list[e.Event]:
        """The events that a command would lead to now; of a fork those that follow its past. Nothing is changed. Raises
        CommandRefused as the command would."""

class Entities:
    """`treadle.runtime.service.entities.Entities`, whose methods wait."""
    def list(
        self,
        *,
        type: str | None = None,
        workflow: str | None = None,
        section: str | None = None,
        text: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> Found:
        """Entities, newest record first. `workflow`: those that are somewhere in it; `section`: those that are in one;
        `text`: part of id, name or email."""
    def get(self, type: str, id: str) -> Entity:
        """An entity by its address. A former address gives it as it is now, with its present type. Raises
        CommandRefused(NOT_FOUND)."""
    def create(
        self,
        type: str,
        id: str,
        *,
        name: str | None = None,
        email: str | None = None,
        attributes: dict[str, Json] | None = None,
    ) -> Entity:
        """Makes a record. Raises CommandRefused(DUPLICATE) if the address leads to one, also as a former address."""
    def add(self, row: EntityRow, also: Changes | None = None) -> Entity:
        """Keeps a record that `new` has made, and `also` in the same transaction. Raises CommandRefused(DUPLICATE)."""
    def new(
        self,
        type: str,
        id: str,
        *,
        name: str | None = None,
        email: str | None = None,
        attributes: dict[str, Json] | None = None,
    ) -> EntityRow:
        """A record that may be made. Raises CommandRefused(BAD_REQUEST)."""
    def update(
        self,
        type: str,
        id: str,
        *,
        name: str | UnsetType | None = UNSET,
        email: str | UnsetType | None = UNSET,
        attributes: dict[str, Json] | UnsetType = UNSET,
    ) -> Entity:
        """Changes a record. `name` or `email` None removes it; `attributes` are merged into those there are, and null
        removes one (RFC 7396). Raises CommandRefused(NOT_FOUND)."""
    def delete(self, type: str, id: str) -> None:
        """Deletes a record with its addresses and its journey. Raises CommandRefused: NOT_FOUND, or INVALID_STATE while
        a run about it is live."""
    def journey(self, type: str, id: str, *, before: Order | None = None, limit: int | None = None) -> Legs:
        """Every move, run by run, newest run first; a move by hand is a leg of its own. `before` the `first` of a leg:
        the legs that began earlier. Costs are read from the histories of the runs: a run that was forgotten, or whose
        history was trimmed, has none. Raises CommandRefused(NOT_FOUND)."""
    def move(
        self,
        type: str,
        id: str,
        workflow: str,
        *,
        node: str | None = None,
        section: str | None = None,
        reason: str | None = None,
        by: str = "operator",
        request: str = "",
    ) -> Entity:
        """Moves an entity by hand to a node or a section of a workflow. If runs of that workflow about it are live,
        each of them records the move: in a section the entity stays there and travels with them no longer, from a node
        the next visit takes it along. Their tokens do not move. Raises CommandRefused."""
    def positions(
        self,
        workflow: str,
        *,
        node: str | None = None,
        edge: str | None = None,
        section: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> Positions:
        """Who is where in a workflow: all places with how many are there, and a page of the entities. Raises
        CommandRefused(NOT_FOUND)."""
    def conversion(self, workflow: str, since: int = 0) -> Conversion:
        """Of the entries into each edge, section and node since an instant: how many there were, how many of them have
        left again, how many were followed by a completion as success, and how long those that left had stayed. A
        section of the drawing that holds nodes is entered with the first of them and left with the last. Raises
        CommandRefused(NOT_FOUND)."""

class Keys:
    """`treadle.runtime.access.keys.Keys`, whose methods wait."""
    def create(
        self,
        name: str,
        roles: Sequence[str],
        *,
        user: str | None = None,
        groups: Sequence[str] = (),
        workflows: Sequence[str] | None = None,
        expires: int | None = None,
        by: str | None = None,
    ) -> tuple[Key, str]:
        """Makes a key. Returns it with its text, which is not kept. Raises CommandRefused(BAD_REQUEST)."""
    def keep(self, key: Key, audited: Audited | None = None, notes: Sequence[Note] = ()) -> None:
        """Stores a drafted key, with its entry in the audit and notes. Raises StoreConflict if its prefix is taken, or
        a note is there already."""
    def draft(
        self,
        name: str,
        roles: Sequence[str],
        *,
        user: str | None = None,
        groups: Sequence[str] = (),
        workflows: Sequence[str] | None = None,
        expires: int | None = None,
        by: str | None = None,
    ) -> tuple[Key, str]:
        """A key that is not stored yet, and its text. Raises CommandRefused(BAD_REQUEST)."""
    def list(self) -> list[Key]:
        """All keys that were not revoked, by the time they were made."""
    def revoke(self, id: str, audited: Audited | None = None) -> Key:
        """Ends a key, by its id or the text of the key itself. Raises CommandRefused(NOT_FOUND)."""
    def last_used(self) -> dict[str, int]:
        """When each key was last used, to the minute; keys that never were are missing."""
    def note_used(self, used: Mapping[str, int]) -> None:
        """Writes down when keys were last used."""

class Secrets:
    """`treadle.runtime.access.secrets.Secrets`, whose methods wait."""
    def list(self) -> list[StoredSecret]:
        """All secrets, by name. Their values are sealed."""
    def put(
        self,
        name: str,
        value: str,
        hosts: Sequence[str] | None = None,
        *,
        by: str | None = None,
        audited: Audited | None = None,
    ) -> tuple[StoredSecret, bool]:
        """Writes a secret, with its entry in the audit. Returns it, and whether it is new. Raises
        CommandRefused(BAD_REQUEST); StoreConflict if somebody else has written it meanwhile."""
    def remove(self, name: str, audited: Audited | None = None) -> None:
        """Removes a secret. Raises CommandRefused(NOT_FOUND)."""
    def find(self, name: str) -> FoundSecret | None:
        """A secret in the clear, for the action that sends it. Raises TaskFailure if it cannot be opened."""
    def last_used(self) -> dict[str, int]:
        """When each secret was last used, to the minute; those that never were are missing."""
    def note_used(self, name: str) -> None:
        """Writes down that a secret is used now."""

class Hooks:
    """`treadle.runtime.service.hooks.Hooks`, whose methods wait."""
    def all(self) -> list[Hook]:
        """Every hook, by slug."""
    def find(self, slug: str) -> Hook:
        """A hook. Raises CommandRefused(NOT_FOUND)."""
    def put(self, hook: Hook, secret: str | None = None) -> tuple[Hook, bool]:
        """Creates or replaces a hook; without a secret it keeps the one it has, if its source is still the same. Raises
        CommandRefused(BAD_REQUEST). Returns the hook and whether it is new."""
    def remove(self, slug: str) -> None:
        """Ends a hook; its deliveries stay. Raises CommandRefused(NOT_FOUND)."""
    def deliveries(self, slug: str, *, before: int | None = None, limit: int = 100) -> list[LogEntry]:
        """Deliveries of a hook, newest first."""
    def delivery(self, slug: str, id: int) -> LogEntry:
        """One delivery. Raises CommandRefused(NOT_FOUND)."""
    def receive(self, slug: str, delivered: Delivered) -> Received:
        """Takes a delivery. Raises CommandRefused(NOT_FOUND) if there is no such hook."""
    def replay(self, slug: str, id: int) -> Received:
        """Takes a delivery again, as if it had been sent again. Raises CommandRefused: NOT_FOUND, INVALID_STATE if its
        signature was refused."""

class Subscriptions:
    """`treadle.runtime.service.subscriptions.Subscriptions`, whose methods wait."""
    def all(self) -> list[SubscriptionState]:
        """Every subscription, by name."""
    def find(self, name: str) -> SubscriptionState:
        """A subscription. Raises CommandRefused(NOT_FOUND)."""
    def put(self, record: SubscriptionRecord, secret: str | None = None) -> tuple[SubscriptionState, bool]:
        """Creates or replaces a subscription. A new one begins with what happens from now on; one that was paused gets
        what happened since its endpoint failed. Without a secret it keeps the one it has. Raises
        CommandRefused(BAD_REQUEST). Returns it and whether it is new."""
    def remove(self, name: str) -> None:
        """Ends a subscription. Raises CommandRefused(NOT_FOUND)."""
    def replay(self, name: str, start: int | str) -> SubscriptionState:
        """Sends again what happened since an instant (milliseconds), or since a position as a message has it. One that
        was paused goes on, too. Raises CommandRefused: NOT_FOUND, BAD_REQUEST."""
    def deliveries(self, name: str, *, before: int | None = None, limit: int = 100) -> list[LogEntry]:
        """Deliveries of a subscription, newest first."""

class Client:
    """`treadle.runtime.client.Client`, whose methods wait."""
    def deploy(self, definition: Definition, *, expected: int | None = None) -> Deployed:
        """Makes a version; deploying the newest again changes nothing but its drawing, if that is another. With
        `expected`, only if that is the newest version now; 0: the workflow was never deployed. Raises DefinitionError,
        StoreConflict(STALE_VERSION)."""
    def workflows(self) -> list[Deployed]:
        """The newest version of each."""
    def deployed(self, workflow: str, version: int | None = None) -> Deployed | None:
        """One version of a workflow, the newest without one; None: there is none."""
    def definition(self, workflow: str, version: int | None = None) -> Workflow:
        """A deployed version, the newest without one. Raises CommandRefused(NOT_FOUND)."""
    def drawing(self, workflow: str, version: int | None = None) -> Json:
        """What a deployed version looks like on a canvas, the newest without one; None if it was never drawn. Raises
        CommandRefused(NOT_FOUND)."""
    def draw(self, workflow: str, drawing: Json, version: int | None = None) -> bool:
        """Replaces the drawing of a deployed version, which stays the version it is; whether anything has changed.
        Raises CommandRefused(NOT_FOUND)."""
    def graph(self, workflow: str | Definition, version: int | None = None) -> GraphView:
        """A workflow as a picture in a notebook: a deployed one by its name, or any definition."""
    def start(
        self,
        workflow: str | Definition,
        input: Json = None,
        *,
        key: str | None = None,
        tags: Sequence[str] = (),
        entity: EntityRef | Mapping[str, Json] | str | None = None,
        version: int | None = None,
        run_id: str | None = None,
        trigger: Json = None,
        trace: Mapping[str, str] | None = None,
    ) -> Run:
        """Starts a run, durably. A definition is deployed first. The same `key` gives the same run again. `trace`:
        headers of W3C Trace Context (`traceparent`, `tracestate`), whose trace the run continues. Raises CommandRefused
        for an input against the schema or an unknown workflow."""
    @staticmethod
    def new_run_id() -> str:
        """An id that no run has: for callers that need to know it before they start the run."""
    def run(self, run_id: str) -> Run:
        """A handle on a run that exists."""
    def find_run(self, text: str) -> Run:
        """A run as people name it: by its id, or by the last six or more characters of it if they fit no other run.
        Raises CommandRefused(NOT_FOUND) with the runs that fit."""
    def runs(
        self,
        *,
        workflow: str | None = None,
        version: int | None = None,
        statuses: Sequence[RunStatus | str] = (),
        tag: str | None = None,
        tags: Sequence[str] = (),
        entity: str | None = None,
        parent: str | None = None,
        key: str | None = None,
        started_from: int | None = None,
        started_until: int | None = None,
        text: str | None = None,
        after: str | None = None,
        beyond: int | None = None,
        down_to: int | None = None,
        limit: int = 100,
    ) -> list[RunRow]:
        """Runs, newest first. `entity` is TYPE/ID. The next page begins `after` a run's id (raises
        CommandRefused(NOT_FOUND) if that run is gone meanwhile), or `beyond` its number, which always works. Runs
        before the number `down_to` are left out."""
    def queues(self) -> list[QueueView]:
        """Every queue with work, rules or workers of its own, by name. Raises CommandRefused where one engine executes
        everything."""
    def set_queue(self, queue: str, rules: QueueRules) -> None:
        """Replaces what is decided about a queue; rules without anything end them. Raises CommandRefused."""
    def dead_letters(self, limit: int = 1000) -> list[OutboxRow]:
        """What could not be delivered to the world outside, with the reason."""
    def requeue(self, row: int) -> None:
        """Tries a dead letter again. Raises CommandRefused(NOT_FOUND)."""
    def dead_letter(self, row: int) -> OutboxRow:
        """One dead letter. Raises CommandRefused(NOT_FOUND)."""
    def drop_letter(self, row: int) -> None:
        """Gives a dead letter up for good: it is never delivered. Raises CommandRefused(NOT_FOUND)."""
    def requests(self, run: str | None = None, limit: int = 100) -> list[RequestRow]:
        """Requests that were kept while no engine ran, of one run or of all, newest first: waiting, done or refused."""
    def request(self, id: str) -> RequestRow:
        """What became of the request that `EngineStopped.request` names. Raises CommandRefused(NOT_FOUND)."""
    def artifact(self, digest: str) -> bytes | None:
        """The bytes an artifact's digest stands for."""
    def fsck(self, progress: Callable[[int], None] | None = None) -> Report:
        """Compares every history with what is kept beside it, and with the invariants; see `runtime.operate.fsck`."""
    public_url: str | None = None
    address_gate: AddressGate | None = None
    on_subscribed: Callable[[], Awaitable[None]] | None = None
    secrets_key_file: str | None = None
    def is_owned(self) -> bool:
        """Whether somebody coordinates the store now: else commands are kept, and nothing happens."""
    def nodes(self) -> list[NodeRow]:
        """The processes that coordinate the store or execute its work, what each owns, and how far behind it is."""
    def now(self) -> int:
        """The time by which this client stamps commands, in milliseconds since 1970."""
    @property
    def store_kind(self) -> str:
        """What the store is: sqlite, postgres or memory."""
    @property
    def keys(self) -> Keys:
        """Keys that let programs and people use the store from outside."""
    @property
    def following(self) -> Following:
        """All events of all runs, in one order."""
    @property
    def callbacks(self) -> Callbacks:
        """Answers of webhook workers, by their tokens."""
    @property
    def hooks(self) -> Hooks:
        """Ingress hooks and their deliveries."""
    @property
    def subscriptions(self) -> Subscriptions:
        """Addresses that events are sent to, and what was sent."""
    def signal(self, name: str, data: Any = None, *, key: Any = None, id: str | None = None) -> list[str]:
        """Sends a signal to all runs that wait for it now; with the same `id` it counts once in each. Returns the runs
        that took it. If nobody waits, nothing is kept."""
    @property
    def entities(self) -> Entities:
        """Entities: records, journeys, positions, conversion."""
    @property
    def records(self) -> Records:
        """A server's own documents, logs and answers beside the runs. Not for applications."""
    @property
    def tasks(self) -> Tasks:
        """Claims of workers outside. Raises CommandRefused for a store without claims."""
    @property
    def secrets(self) -> Secrets:
        """Stored secrets: written, bound to hosts, never read back."""
    def secret_root(self) -> bytes:
        """The store's own secret, from which a service makes those of its cursors and sessions."""
    def sealing(self) -> Sealing:
        """Seals texts that must be kept and not be read in the store: signing secrets, stored secrets. Raises
        SettingsInvalid if the key file cannot be used."""
    def once(self, id: str, fingerprint: str) -> AbstractContextManager[Once]:
        """Inside this `with`, every command is carried out once for this id, and its first answer is given again when
        it comes again, also after a crash and from another node; see `runtime.command.once`."""
    def along(self, entry: Entry) -> Along:
        """Inside this `with`, the entry is written in the transaction of the first command that is sent, unless that is
        refused. `is_written` of what it gives says whether it was: otherwise it has to be written after; see
        `runtime.coordinate.along`."""
    def gates(
        self,
        run: str | None = None,
        limit: int = 100,
        *,
        workflow: str | None = None,
        workflows: Sequence[str] = (),
        node: str | None = None,
        assignee: str | None = None,
        mine: Person | None = None,
        overdue: bool = False,
        text: str | None = None,
        after: tuple[int, str, int] | None = None,
    ) -> list[GateRow]:
        """Gates somebody has still to answer, longest open first; among them runs that are out of time and wait for
        somebody to extend or abort them (`can` says what may be done). `workflows` are patterns; `assignee` is asked by
        name or has claimed it; `mine` is asked by name or group, or has claimed it; `text` is part of the title, node
        or run. `after` the `place` of a gate gives the next page."""
    def count_gates(self, run: str | None = None, **conditions: Any) -> list[GateCount]:
        """Open gates by workflow and node; the same conditions as `gates`."""
    def gate(self, run: str, visit: int) -> GateView:
        """One gate with everything about it: its form and input, comments, attachments, the answers so far. Raises
        CommandRefused(NOT_FOUND)."""
    def gate_again(self, before: GateView) -> GateView:
        """A gate as it is now, by what `gate` has given before."""
    def complete_gate(
        self,
        run: str,
        visit: int,
        data: Json = None,
        *,
        by: str | None = None,
        force: bool = False,
        person: Person | None = None,
        comment: str | None = None,
    ) -> None:
        """Answers a gate; see `Run.complete_gate`."""
    def complete_gates(
        self,
        gates: Iterable[tuple[str, int]],
        data: Json = None,
        *,
        by: str | None = None,
        force: bool = False,
        person: Person | None = None,
    ) -> list[GateOutcome]:
        """Answers many gates, named as (run, visit), with the same data. One that is refused does not affect the
        others."""
    def signal_all(
        self,
        name: str,
        data: Json = None,
        *,
        key: Json = None,
        id: str | None = None,
        sees: Callable[[str], bool] | None = None,
    ) -> list[RunId]:
        """Sends a signal to every run that waits for it now, and returns those runs. If none does, nothing is kept.
        `sees`: only runs of such workflows. With the same `id` it counts once in each run."""
    def run_counts(self, workflow: str | None = None, since: int | None = None) -> dict[str, dict[str, int]]:
        """Workflow → status → number of runs: of one workflow or of all, those started at `since` or later."""
    def migrate(
        self,
        runs: str | Sequence[str] | Mapping[str, Json],
        to: int,
        nodes: Mapping[str, str] | None = None,
        *,
        dry_run: bool = False,
        by: str = "operator",
    ) -> list[Migration]:
        """Lets runs go on under version `to` of their workflow: one run or several by their ids, or those that a filter
        finds now, such as `{"workflow": "orders", "version": 1}`; a filter takes the fields of `runs` and needs a
        workflow. `nodes` says which nodes take the place of others. Returns a report for each run, in order; a run that
        refuses does not stop the others. A dry run only says what is in the way."""
    def migrate_deployed(self, workflow: str, version: int) -> tuple[Migration, ...]:
        """Tries the newest version for all live runs of older ones (`on_deploy: migrate_if_safe`)."""
    def workflow_rows(self) -> list[WorkflowRow]:
        """The newest version of each workflow with its runs by status, by name."""
    def versions(self, workflow: str, *, before: int | None = None, limit: int = 100) -> list[VersionRow]:
        """Versions of a workflow, newest first, those below `before`. Raises CommandRefused(NOT_FOUND)."""
    def deployed_at(self, workflow: str, version: int) -> int | None:
        """When a version was deployed; None: before that was written down."""
    def drawn_version(self, workflow: str, version: int) -> int:
        """The number of a version's drawing, which grows with every change; 0: it was never drawn."""
    def redraw(self, workflow: str, drawing: Json, version: int, expected: int) -> int:
        """Replaces the drawing of a version if its number is `expected`, and returns the new number. Raises
        StoreConflict(STALE_VERSION)."""
    def drawn_graph(self, workflow: str, version: int | None = None) -> DrawnGraph:
        """The execution graph as data, laid out. Raises CommandRefused(NOT_FOUND)."""
    def graph_text(
        self, workflow: str, version: int | None = None, *, format: Literal["mermaid", "svg"] = "mermaid"
    ) -> str:
        """The execution graph as Mermaid text or as an SVG picture. Raises CommandRefused(NOT_FOUND)."""
    def workflow_difference(self, workflow: str, begin: int, end: int) -> DefinitionDifference:
        """What changed between two versions. Raises CommandRefused(NOT_FOUND)."""
    def stats(self, workflow: str, since: int | None = None) -> WorkflowStats:
        """Figures of a workflow's runs since an instant: visits, failures, retries, waiting and work by node and
        transition, made of the newest runs; runs by status of all. Raises CommandRefused(NOT_FOUND)."""
    def schedules(self) -> list[Schedule]:
        """Every schedule, by name."""
    def schedule(self, name: str) -> Schedule:
        """One schedule. Raises CommandRefused(NOT_FOUND)."""
    def put_schedule(self, schedule: Schedule) -> None:
        """Creates or changes a schedule. Raises DefinitionError with every problem, CommandRefused for an unknown
        workflow."""
    def remove_schedule(self, name: str) -> None:
        """Ends a schedule; runs it has started go on."""
    def fire_schedule(self, name: str, *, by: str = "operator", key: str | None = None) -> Run:
        """Starts the workflow of a schedule now, beside its times and whatever is running. Raises CommandRefused."""
    def schedule_runs(self, name: str, limit: int = 10) -> list[RunRow]:
        """The newest runs of a schedule."""
    def upcoming(self, name: str, *, after: int | None = None, limit: int = 10) -> list[tuple[int, int]]:
        """The next due times of a schedule, each with the moment at which it starts; none while it is paused. Raises
        CommandRefused(NOT_FOUND)."""
    def queue(self, workflow: str, limit: int = 100) -> list[QueuedRun]:
        """The runs of a workflow that wait for their start (`concurrency`, `rate`, `debounce`, `batch`), in the order
        in which they will start. Raises CommandRefused(NOT_FOUND)."""
    def __enter__(self) -> Self: ...
    def __exit__(self, *_exception: object) -> None: ...
    def close(self) -> None: ...

class Engine(Client):
    """`treadle.runtime.engine.Engine`, whose methods wait."""

    name: str
    settings: EngineSettings
    registry: Registry
    @property
    def is_open(self) -> bool: ...
    def close(self) -> None:
        """Lets work in hand end for `grace_ms`, then stops; what is left goes on when an engine opens the store."""
    def observe(self, observed: Callable[[Sequence[Commit], float], None]) -> None:
        """Calls `observed` with every batch of decisions that was written, and the seconds it took; also before the
        engine is open."""
    @property
    def shards_owned(self) -> int:
        """How many shards of the runs this engine decides for."""
    def listen(self, heard: Callable[[], None]) -> Callable[[], None]:
        """Calls `heard` whenever something was committed; returns how to stop that."""
    def deploy(self, definition: Definition, *, expected: int | None = None) -> Deployed:
        """Makes a version, after checking that this engine can do what it asks: functions and their signatures, kinds.
        The functions of a `Flow` are known from now on. Deploying the newest again changes nothing. Raises
        DefinitionError with every problem, or as `Client.deploy`; then nothing has changed."""

def open(
    store: str | Path | StoreLocation | Store = "treadle.db",
    *,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    registry: Registry | None = None,
    settings: EngineSettings | None = None,
    name: str | None = None,
    wait_for_ownership: bool = False,
) -> Engine:
    """An open engine whose methods wait; `with` closes it."""
