"""`treadle fsck`: checks the file or database, every checksum, and every history against the rows derived from it.

Works beside a running engine and changes nothing. Exit codes: 0 no findings · 1 findings · 5 the store cannot be read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from treadle.cli.frame.exits import NO, OK, STORE, VerbFailed
from treadle.cli.frame.options import OutputOption, StoreOption, configuration

if TYPE_CHECKING:
    from treadle.errors import StorePlaceError

MANY = 100


def fsck(*, store: StoreOption = None, output: OutputOption = None) -> int:
    """Check every checksum, and every history against the rows beside it."""
    from treadle.cli.frame.opening import drive

    config = configuration(store, output)
    if config.store.is_missing:
        raise VerbFailed(STORE, f"there is no store {config.store} (--store)")
    return drive(_fsck(config))


async def _fsck(config: Any) -> int:
    from treadle.cli.screen.output import Out, builtins, say
    from treadle.cli.screen.progress import Counter
    from treadle.runtime.operate.upkeep import check_everything

    out = Out(config["output"])
    with Counter("runs") as counter:
        report = await check_everything(config.store, counter.update)
    findings = [builtins(finding) for finding in report.findings]
    if out.mode == "json":
        out.json({"ok": report.ok, **builtins(report)})
    elif findings or out.mode == "jsonl":
        out.rows(("run", "check", "message"), findings, "", (("leave", "run"), ("wrap", "message")))
    refused = await _refused(config)
    if refused is not None and out.text:
        say(f"{refused.path}: {refused.problem}; {refused.remedy}")
    counts = {"run": report.runs, "event": report.events, "timer": report.timers, "gate": report.gates}
    seen = ", ".join(f"{count:,} {noun}" + ("" if count == 1 else "s") for noun, count in counts.items())
    say(f"{config.store}: {seen}: " + (_counted(len(findings)) if findings else "everything agrees"))
    if any(finding["check"] == "checksum" for finding in findings) and out.text:
        say("a disk or a memory has changed the store: keep a copy of it, check the disk, and restore a backup")
    if report.unsealed and out.text:
        say(f"{report.unsealed:,} values were written before there were checksums: a changed bit in one may go unseen")
    return OK if report.ok else NO


async def _refused(config: Any) -> StorePlaceError | None:
    """The reason why other processes may not open the store: it was moved, or a move to it has not ended. It explains
    the findings then."""
    from treadle.errors import StorePlaceError
    from treadle.runtime.connecting import connect

    try:
        async with connect(config.store, wait_s=0):
            return None
    except StorePlaceError as problem:
        return problem


def _counted(findings: int) -> str:
    """The number of findings in words. Checks stop at a hundred of a kind and at a thousand: nobody reads more."""
    return f"{'at least ' if findings >= MANY else ''}{findings} finding{'' if findings == 1 else 's'}"
