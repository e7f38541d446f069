"""`treadle backup TARGET`: copies the store while it is in use.

The copy is of one instant, complete, and a store by itself. It is written beside the target and renamed when it is
complete: a copy that fails leaves an old target as it was. Exit codes: 0 copied · 4 the target exists, or the store is
a database · 5 the store cannot be read, or the target not written.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from treadle.cli.frame.exits import OK, REFUSED, STORE, VerbFailed
from treadle.cli.frame.options import OutputOption, StoreOption, configuration


def backup(
    target: Annotated[Path, Parameter(help="The file to make; must not exist yet.")],
    /,
    *,
    overwrite: Annotated[
        bool, Parameter(help="Replace a target that exists, once the new copy is complete.", negative="")
    ] = False,
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """Copy the store while it is in use."""
    config = configuration(store, output)
    if config.store.is_missing:
        raise VerbFailed(STORE, f"there is no store {config.store} (--store)")
    source = config.store.path
    if source is None:
        raise VerbFailed(
            REFUSED,
            f"{config.store} is a database: back it up with its own means (pg_dump), or copy it: treadle db move",
        )
    if target.exists() and target.samefile(source):
        raise VerbFailed(REFUSED, f"{target} is the store itself")
    if target.exists() and not overwrite:
        raise VerbFailed(REFUSED, f"{target} exists: choose another name, or --overwrite")
    from treadle.cli.frame.opening import drive

    return drive(_backup(config, source, target, overwrite))


async def _backup(config: Any, source: Path, target: Path, overwrite: bool) -> int:
    from treadle.cli.screen.output import Out
    from treadle.cli.screen.progress import Counter
    from treadle.runtime.operate.upkeep import back_up

    with Counter("pages") as counter:
        size = await back_up(
            source, target, lambda left, total: counter.update(total - left, total), overwrite=overwrite
        )
    row = {"store": str(config.store), "target": str(target), "bytes": size}
    Out(config["output"]).done(row, f"{config.store} → {target} ({size:,} bytes)")
    return OK
