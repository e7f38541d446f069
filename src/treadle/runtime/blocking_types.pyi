"""Written by tools/blocking.py: the blocking faces of Run, Client and Engine. Do not edit."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from treadle.actions.registry import Registry
from treadle.display.views import GraphView, TimelineView
from treadle.kernel.state import RunState
from treadle.model import commands as c
from treadle.model import events as e
from treadle.model.definition import Workflow
from treadle.model.errors import Error
from treadle.model.ids import RecordId, RunId, TokenId
from treadle.model.references import EntityRef
from treadle.model.states import RunStatus
from treadle.runtime.client import Deployed
from treadle.runtime.command.presence import NodeRow as NodeRow
from treadle.runtime.definitions import Definition as Definition
from treadle.runtime.ended import Ended as Ended
from treadle.runtime.execute.artifacts import Artifact
from treadle.runtime.operate.compensations import CompensationStatus
from treadle.runtime.operate.fsck import Report
from treadle.runtime.queue.queue_settings import QueueView
from treadle.runtime.run import Json
from treadle.runtime.schedule.definition import Schedule
from treadle.runtime.settings import EngineSettings as EngineSettings
from treadle.store.places import StoreLocation
from treadle.store.port import GateRow as GateRow
from treadle.store.port import OutboxRow, RunRow, Store
from treadle.store.work import QueueRules

class Run:
    """`treadle.runtime.run.Run`, whose methods wait."""

    id: RunId
    def info(self) -> RunRow:
        """What is known of it; raises CommandRefused(NOT_FOUND)."""
    def status(self) -> RunStatus: ...
    def state(self, at: int | None = None) -> RunState:
        """Everything, folded: visits, context, timers; `at`: as it was after that event. For reading only."""
    def history(self, after: int = 0, limit: int | None = None) -> list[e.Event]:
        """Its events so far, from any point on."""
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
    def ask(self, command: c.Command) -> None:
        """Any command; raises CommandRefused."""
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
    def pause(self, reason: str | None = None, *, by: str = "operator") -> None: ...
    def resume(self, *, by: str = "operator") -> None: ...
    def extend(self, ms: int, *, by: str = "operator") -> None:
        """Gives a run that has timed out, or will, more time."""
    def abort(self, *, by: str = "operator") -> None:
        """Ends a run that waits for somebody to decide about its timeout."""
    def retry(self, visit: int | None = None, *, by: str = "operator") -> list[TokenId]:
        """Tries visits again that have failed or timed out, and brings back what their failure took down: one visit, or
        all whose failure nothing has handled, in failed children first. Returns the visits that are retried. Raises
        CommandRefused, which says why."""
    def compensations(self) -> list[CompensationStatus]:
        """What it can undo, in the order in which it was done, and what became of each."""
    def retry_compensation(self, record: int | None = None, *, by: str = "operator") -> RecordId:
        """Tries to undo a visit again where that failed, then goes on with the visits before it. Which record: may be
        left out where only one failed."""
    def skip_compensation(self, record: int | None = None, *, by: str = "operator") -> RecordId:
        """Leaves a visit undone whose compensation failed, and goes on with the visits before it."""
    def complete_gate(self, visit: int, data: Json = None, *, by: str | None = None, force: bool = False) -> None:
        """Answers a gate. One that somebody has claimed is answered by them; by anybody else with `force`, which
        history records."""
    def claim_gate(self, visit: int, *, by: str) -> None:
        """Takes a gate on: nobody else answers it from now on, unless by force."""
    def release_gate(self, visit: int, *, by: str, force: bool = False) -> None:
        """Gives a claimed gate back."""
    def delegate_gate(self, visit: int, to: str, *, by: str, force: bool = False) -> None:
        """Hands a gate to somebody else."""
    def callback(self, visit: int, attempt: int, output: Json = None, error: Error | None = None) -> None:
        """What an external worker answers."""

class Client:
    """`treadle.runtime.client.Client`, whose methods wait."""
    def is_owned(self) -> bool:
        """Whether somebody coordinates the store now: else commands are kept, and nothing happens."""
    def nodes(self) -> list[NodeRow]:
        """The processes that coordinate the store or execute its work, what each owns, and how far behind it is."""
    def deploy(self, definition: Definition) -> Deployed:
        """Makes a version; deploying the newest again changes nothing but its drawing, if that is another. Raises
        DefinitionError."""
    def workflows(self) -> list[Deployed]:
        """The newest version of each."""
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
        entity: EntityRef | str | None = None,
        version: int | None = None,
        run_id: str | None = None,
        trigger: Json = None,
    ) -> Run:
        """Starts a run, durably. A definition is deployed first. The same `key` gives the same run again. Raises
        CommandRefused for an input against the schema or an unknown workflow."""
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
        statuses: Sequence[RunStatus | str] = (),
        tag: str | None = None,
        entity: str | None = None,
        parent: str | None = None,
        started_from: int | None = None,
        started_until: int | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> list[RunRow]:
        """Runs, newest first; `after` a run's id gives the next page. Raises CommandRefused(NOT_FOUND) if that run is
        gone meanwhile: begin again."""
    def gates(self, run: str | None = None, limit: int = 100) -> list[GateRow]:
        """Gates somebody has still to answer, longest open first; among them runs that are out of time and wait for
        somebody to extend or abort them (`can` says what may be done)."""
    def complete_gate(
        self, run: str, visit: int, data: Json = None, *, by: str | None = None, force: bool = False
    ) -> None:
        """Answers a gate; see `Run.complete_gate`."""
    def schedules(self) -> list[Schedule]:
        """Every schedule, by name."""
    def put_schedule(self, schedule: Schedule) -> None:
        """Creates or changes a schedule. Raises DefinitionError with every problem, CommandRefused for an unknown
        workflow."""
    def remove_schedule(self, name: str) -> None:
        """Ends a schedule; runs it has started go on."""
    def queues(self) -> list[QueueView]:
        """Every queue with work, rules or workers of its own, by name. Raises CommandRefused where one engine executes
        everything."""
    def set_queue(self, queue: str, rules: QueueRules) -> None:
        """Replaces what is decided about a queue; rules without anything end them. Raises CommandRefused."""
    def dead_letters(self, limit: int = 1000) -> list[OutboxRow]:
        """What could not be delivered to the world outside, with the reason."""
    def requeue(self, row: int) -> None:
        """Tries a dead letter again. Raises CommandRefused(NOT_FOUND)."""
    def artifact(self, digest: str) -> bytes | None:
        """The bytes an artifact's digest stands for."""
    def fsck(self, progress: Callable[[int], None] | None = None) -> Report:
        """Compares every history with what is kept beside it, and with the invariants; see `runtime.operate.fsck`."""
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
    def listen(self, heard: Callable[[], None]) -> Callable[[], None]:
        """Calls `heard` whenever something was committed; returns how to stop that."""
    def deploy(self, definition: Definition) -> Deployed:
        """Makes a version, after checking that this engine can do what it asks: functions and their signatures, kinds.
        The functions of a `Flow` are known from now on. Deploying the newest again changes nothing. Raises
        DefinitionError with every problem; then nothing has changed."""

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
