"""The protocol between a step and its action: `Call` goes in, a `Reply` comes out.

Owns the words both sides speak. Promises that failure is a value (`Failed`) and that waiting is a value too
(`Later`, `Work`, an awaitable), so a kind never sleeps and never blocks by itself: whoever drives the attempt
decides on which clock, in which thread. Must not know any kind, nor how a task is run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from treadle.actions.blobs import Artifacts
from treadle.expression.view import DictView
from treadle.model.errors import Error
from treadle.model.ids import RunId, TokenId, dispatch_key
from treadle.model.requests import AnyRequest

Json = Any


class AttemptFacts(Struct, frozen=True, kw_only=True):
    """What is true of one attempt, whatever its task does."""

    run: RunId
    token: TokenId
    attempt: int
    node: str
    workflow: str = ""
    path: str = "root"
    branch: dict[str, Json] | None = None
    """`_branch` of the token, outside every group None."""
    artifacts: Artifacts | None = None
    jitter: Callable[[], float] | None = None
    """Draws from [-1, 1) for backoff; None switches jitter off, as scenarios do."""
    emit: Callable[[str, Json], None] | None = None
    """Tells whoever watches that part of the work is done (a type, data); never blocks. None: nobody watches."""

    @property
    def key(self) -> str:
        """The stable idempotency key of this dispatch (2.1); a re-dispatch after a crash carries the same one."""
        return dispatch_key(self.run, self.token, self.attempt)

    def portable(self) -> AttemptFacts:
        """The same for another process: without what belongs to this one."""
        return replace(self, artifacts=None, jitter=None, emit=None)


class Call(Struct, frozen=True, kw_only=True):
    """One try of one step's action: all that a kind may know."""

    config: dict[str, Json]
    input: Json
    """The step's mapped input, or the task's where the step maps none. Shared: a kind must not change it."""
    facts: AttemptFacts
    step: str
    tries: int = 0
    """How often the whole task has started over inside this attempt."""
    state: Json = {}
    output: Json = {}
    requests: tuple[AnyRequest, ...] = ()
    """What earlier steps of this try already asked of the run."""
    timeout_ms: int | None = None

    @property
    def key(self) -> str:
        """Idempotency key of this step: the same for action retries, another when the whole task starts over."""
        return f"{self.facts.key}:{self.step}:{self.tries}"

    def roots(self) -> dict[str, Json]:
        """What a config's expressions see: `input` is the step's, `state` and `output` are the task's."""
        return {"input": self.input, "state": self.state, "output": self.output}

    def view(self) -> DictView:
        """The same, to evaluate against."""
        return DictView(self.roots())


class Done(Struct, frozen=True):
    """The action succeeded."""

    output: Json
    requests: tuple[AnyRequest, ...] = ()
    is_plain: bool = False
    """The output has been through `plain` and nobody else has it: it need not be copied again."""


class Failed(Struct, frozen=True):
    """The action failed; `error.retryable` tells infrastructure (true) from business (false)."""

    error: Error


class Later(Struct, frozen=True):
    """`then`, but only after so many milliseconds."""

    ms: int
    then: Done | Failed


class Work(Struct, frozen=True):
    """Blocking work. `run` can be sent to another process when `place` says so."""

    run: Callable[[], Done | Failed]
    place: Literal["thread", "process"] = "thread"


Reply = Done | Failed | Later | Work | Awaitable[Done | Failed]


class Missing(Struct, frozen=True):
    """What a process would need to carry out an action, and has not."""

    what: str
    """`function 'judge'`"""
    why: str
    remedy: str


class ActionKind(Protocol):
    """One kind of action. Third parties write a class with these two members and register an instance. One that cannot
    be carried out everywhere may have `missing(config) -> Missing | None` as well: queue work that needs it is left to
    workers that have it."""

    @property
    def name(self) -> str:
        """What `kind:` says in a definition."""

    def run(self, call: Call) -> Reply:
        """Does it, or says how; an exception counts as `Failed` (see `failure.error_of`)."""


def failed(message: str, kind: str = "TASK_FAILED", *, retryable: bool = False, details: Json = None) -> Failed:
    """A failure in one line; a business failure unless told otherwise."""
    return Failed(Error(kind=kind, message=message, retryable=retryable, details=details))
