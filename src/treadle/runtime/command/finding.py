"""Which run somebody means: people name a run by its id, or by the end of it, as a narrow table shows it.

Owns the rule. Promises that an exact id always wins, and that nothing is chosen where more than one run fits: a command
that reaches the wrong run cannot be taken back.
"""

from __future__ import annotations

from treadle.errors import CommandRefused
from treadle.model.commands import StartRun
from treadle.model.ids import RunId
from treadle.runtime.command.commander import Commander
from treadle.store.port import RunQuery, Store
from treadle.store.rows import shard_of

ENDING_MIN = 6
"""Characters of an id's end that name a run: fewer fit a stranger by chance (one in sixteen ids ends in `0`)."""
NAMED_MAX = 5
"""Runs that are named where several fit."""
SHOWN = "`treadle runs list` shows them"


async def find_run(commander: Commander, text: str) -> RunId:
    """See `Client.find_run`."""
    text = text.removeprefix("…")  # as a table cuts it
    store, run = commander.store, RunId(text)
    if await store.find_runs(RunQuery(run=run)):
        return run
    if await _is_asked_for(store, run):
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
    """Why there is nothing to be seen of a run."""
    if await _is_asked_for(store, run):
        text = f"run {run!r} is asked for and has not begun: an engine of the store begins it"
        return CommandRefused("NOT_FOUND", text)
    return CommandRefused("NOT_FOUND", f"there is no run {run!r}")


async def _is_asked_for(store: Store, run: RunId) -> bool:
    asked = await store.inbox(shard_of(run, store.shards))
    return any(request.run == run and isinstance(request.command, StartRun) for request in asked)
