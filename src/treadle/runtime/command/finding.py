"""Finds the run that a person names: by its id, or by the end of its id, as a narrow table shows it.

Owns the rule. Promises that an exact id always wins, and that no run is chosen if several fit: a command that reaches
the wrong run cannot be taken back.
"""

from __future__ import annotations

from treadle.errors import CommandRefused
from treadle.model.commands import StartRun
from treadle.model.ids import RunId
from treadle.runtime.command.commander import Commander
from treadle.runtime.command.kept_requests import refused_start
from treadle.store.port import RunQuery, Store
from treadle.store.rows import shard_of

ENDING_MIN = 6
"""Least number of characters that name a run: fewer fit another run by chance (one in sixteen ids ends in `0`)."""
NAMED_MAX = 5
"""Number of runs named in the refusal if several fit."""
SHOWN = "`treadle runs list` shows them"


async def find_run(commander: Commander, text: str) -> RunId:
    """See `Client.find_run`."""
    text = text.removeprefix("…")  # as a table shortens it
    store, run = commander.store, RunId(text)
    if await store.find_runs(RunQuery(run=run)):
        return run
    if await _is_asked_for(store, run) or await refused_start(store, run) is not None:
        raise await unknown(store, run)
    if len(text) < ENDING_MIN:
        few = f"the end of an id names a run from {ENDING_MIN} characters on"
        raise CommandRefused("NOT_FOUND", f"there is no run {text!r}; {few}: {SHOWN}")
    fitting = await store.find_runs(RunQuery(run_ending=text, newest_first=True, limit=NAMED_MAX + 1))
    if not fitting:
        raise CommandRefused("NOT_FOUND", f"there is no run {text!r}: {SHOWN}")
    if len(fitting) > 1:
        names = ", ".join(row.run for row in fitting[:NAMED_MAX])
        more = " and more" if len(fitting) > NAMED_MAX else ""
        raise CommandRefused("NOT_FOUND", f"several runs end in {text!r}: {names}{more}; name one of them whole")
    return fitting[0].run


async def unknown(store: Store, run: RunId) -> CommandRefused:
    """The refusal for a run without a history: it does not exist, or its start waits in the inbox."""
    if await _is_asked_for(store, run):
        text = f"run {run!r} is asked for and has not begun: an engine of the store begins it"
        return CommandRefused("NOT_FOUND", text)
    refused = await refused_start(store, run)
    if refused is not None:
        return CommandRefused("NOT_FOUND", f"there is no run {run!r}: its start was refused: {refused.reason}")
    return CommandRefused("NOT_FOUND", f"there is no run {run!r}")


async def _is_asked_for(store: Store, run: RunId) -> bool:
    asked = await store.inbox(shard_of(run, store.shards))
    return any(request.run == run and isinstance(request.command, StartRun) for request in asked)
