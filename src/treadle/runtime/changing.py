"""Changes that an operator makes to a run: edit, skip, jump, set an input, fork. `Run` has these methods.

Owns the words. Every method is one command, and each can be previewed: then the kernel decides it on a state folded
here, nothing is sent, and the events that it would lead to are the answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from treadle.errors import CommandRefused
from treadle.kernel.decide import decide, decide_fork
from treadle.kernel.points import Past
from treadle.kernel.state import RunState
from treadle.model import commands as c
from treadle.model import events as e
from treadle.model.decision import Decision
from treadle.model.ids import RunId, TokenId
from treadle.model.references import EntityRef
from treadle.runtime.coordinate.folding import fold
from treadle.runtime.coordinate.library import VersionMissing
from treadle.runtime.given import entity_of, given, named_start
from treadle.runtime.migrating import Migration, migrate_run, reported
from treadle.store.service import ServiceStore

if TYPE_CHECKING:
    from treadle.runtime.command.commander import Commander
    from treadle.store.port import RunRow

Json = Any


class Changing:
    """See the module's docstring."""

    id: RunId

    if TYPE_CHECKING:
        _commander: Commander

        async def info(self) -> RunRow: ...

        async def ask(self, command: c.Command) -> bool: ...

        async def history(self, after: int = 0, limit: int | None = None) -> list[e.Event]: ...

    async def migrate(
        self, to: int, nodes: Mapping[str, str] | None = None, *, dry_run: bool = False, by: str = "operator"
    ) -> Migration:
        """Goes on under version `to` of its workflow. `nodes` says which nodes take the place of others. Raises
        CommandRefused with everything in the way as `problems`; then nothing has changed. A dry run reports it."""
        if dry_run:
            return await reported(self._commander, self.id, to, nodes or {}, dry_run=True, by=by)
        return await migrate_run(self._commander, self.id, to, nodes or {}, dry_run=False, by=by)

    async def edit(
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
        wanted = {path: given(path, value) for path, value in writes.items()}
        visit = TokenId(branch) if branch is not None else None
        return await self._change(c.EditRun(wanted, visit, by, reason), dry_run)

    async def skip(
        self,
        visit: int,
        output: Json = None,
        *,
        by: str = "operator",
        reason: str | None = None,
        dry_run: bool = False,
    ) -> list[e.Event]:
        """Completes a visit of a running, paused or failed run with this output. Otherwise as `edit`."""
        value = given("output", output) if output is not None else {}
        return await self._change(c.SkipToken(TokenId(visit), value, by, reason), dry_run)

    async def jump(
        self, visit: int, to: str, *, by: str = "operator", reason: str | None = None, dry_run: bool = False
    ) -> list[e.Event]:
        """Ends a visit of a paused or failed run, and goes on at another node of the same fan-out. Otherwise as
        `edit`."""
        return await self._change(c.JumpToken(TokenId(visit), to, by, reason), dry_run)

    async def set_input(
        self,
        visit: int,
        input: Json = None,
        *,
        by: str = "operator",
        reason: str | None = None,
        dry_run: bool = False,
    ) -> list[e.Event]:
        """Sets what further attempts of a visit of a paused or failed run are given. Otherwise as `edit`."""
        value = given("input", input) if input is not None else {}
        return await self._change(c.SetInput(TokenId(visit), value, by, reason), dry_run)

    async def foretell_fork(self, at: int | None = None, **changes: Any) -> list[e.Event]:
        """The events with which a fork would begin, after its past; the arguments are those of `fork`. Nothing is
        changed. Raises CommandRefused as `fork` would."""
        return await self.preview(fork_command(self.id, self._commander.new_run(), at, **changes))

    async def preview(self, command: c.Command) -> list[e.Event]:
        """The events that a command would lead to now; of a fork those that follow its past. Nothing is changed. Raises
        CommandRefused as the command would."""
        decision = await self._decide(command)
        if decision.rejection is not None:
            refused = decision.rejection
            raise CommandRefused(refused.kind, refused.message, refused.problems)
        inherited = next((n for n, event in enumerate(decision.events) if isinstance(event, e.RunForked)), 0)
        return decision.events[inherited:]

    async def _decide(self, command: c.Command) -> Decision:
        await self.info()
        history = await self.history()
        library, now = self._commander.library, self._commander.clock.now()
        graph = await library.graph_of(history)
        assert graph is not None, "a run's version stays deployed"
        past = None
        if isinstance(command, c.ForkRun):
            ends = await cast(ServiceStore, self._commander.store).decisions(self.id)
            past = Past(history[: ends[-1]], ends)
        while True:
            try:
                if past is not None and isinstance(command, c.ForkRun):
                    return decide_fork(graph, RunState(graph), command, past, now, library)
                state = fold(graph, history)
                return decide(state.graph, state, command, now, library)
            except VersionMissing as missing:  # the kernel cannot wait for the store: it decides again
                await library.graph(missing.name, missing.version)

    async def _change(self, command: c.Command, dry_run: bool) -> list[e.Event]:
        if dry_run:
            return await self.preview(command)
        before = (await self.info()).seq
        await self.ask(command)
        return await self.history(before)


def fork_command(
    origin: RunId,
    run: RunId,
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
) -> c.ForkRun:
    """The start of a fork, its values as plain JSON. Raises CommandRefused(BAD_REQUEST)."""
    about = entity_of(entity) if entity is not None else None
    named_start(key, None, tags, about)
    changes = c.ForkChanges(
        input=given("input", input) if input is not None else None,
        state={path: given(path, value) for path, value in (state or {}).items()},
        outputs={str(place): given(str(place), value) for place, value in (outputs or {}).items()},
        version=version,
    )
    return c.ForkRun(
        run=run,
        origin=origin,
        at=at,
        visit=TokenId(visit) if visit is not None else None,
        node=node,
        changes=changes,
        entity=about,
        idempotency_key=key,
        tags=tuple(tags),
        inherit_compensation=inherit_compensation,
        by=by,
    )
