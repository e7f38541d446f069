"""Writes to the run's state that nothing reads.

A write is read if any expression reads the path, a part of it or something it is part of; `_branch.output.x` reads
`state.x` of the branch. `output.…` is always read: it is the result. A workflow that declares no result at all (no
`output`, no `output.…` target) leaves its final state for people to look at; there one warning stands for all.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import UNSET

from treadle.errors import ExpressionError
from treadle.expression.paths import Path as DataPath
from treadle.expression.paths import format_path, parse_path
from treadle.language.checks.expressions import compiled_use
from treadle.language.checks.flow import Flow
from treadle.language.checks.regions import Regions
from treadle.language.checks.uses import Sees, uses_of
from treadle.language.checks.writes import Paths, Write, writes_of
from treadle.language.phrases import is_computed
from treadle.language.reading import Reading


def check(flow: Flow, reading: Reading) -> None:
    """UNREAD_WRITE."""
    unread = list(_unread(flow))
    if not unread:
        return
    if flow.workflow.output is UNSET and not any(write.path[0] == "output" for write in writes_of(flow)):
        _no_result(unread, reading)
        return
    for write in unread:
        message = f"nobody reads `{_shown(write)}`"
        hint = f"read it, leave it out, or make it a result: {_as_result(write)}"
        reading.problem_in("UNREAD_WRITE", write.at, message, hint)


def _unread(flow: Flow) -> Iterator[Write]:
    reads = set(_reads(flow))
    if ("state",) in reads or () in reads:
        return
    taken = _taken_whole(flow)
    known = Paths(path for path in reads if len(path) > 1)
    for write in writes_of(flow):
        if write.path[0] == "state" and write.node not in taken and not known.touching(write.path):
            yield write


def _no_result(unread: list[Write], reading: Reading) -> None:
    names = list(dict.fromkeys(f"`{_shown(write)}`" for write in unread))
    listed = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    message = f"the workflow declares no result, and nobody reads {listed}"
    reading.problem_in("UNREAD_WRITE", unread[0].at, message, f"say what comes out: {_as_result(unread[0])}")


def _shown(write: Write) -> str:
    return format_path(write.path).removeprefix("$.")


def _as_result(write: Write) -> str:
    return f"`output: {{{write.path[-1]}: {format_path(write.path)}}}`"


def _reads(flow: Flow) -> Iterator[DataPath]:
    for use in uses_of(flow):
        if use.sees is Sees.TASK or (use.sees is Sees.OUTPUT and not is_computed(use.value)):
            continue
        try:
            paths = compiled_use(use, flow).reads
        except ExpressionError:
            continue
        for path in paths:
            yield _as_state(path)
    for _, transition in flow.edges:
        sync = transition.synchronization
        if sync is not None and sync.merge is not None:
            source = parse_path(sync.merge.source)
            if len(source) > 2:
                yield _as_state(source)


def _as_state(path: DataPath) -> DataPath:
    """`_branch.output.x` is the branch's own `state.x`."""
    if path[:2] == ("_branch", "output"):
        return ("state", *path[2:])
    return ("state",) if path == ("_branch",) else path


def _taken_whole(flow: Flow) -> frozenset[str]:
    """The nodes whose writes some join takes as a whole: `source: _branch.output`."""
    regions = Regions(flow)
    taken: set[str] = set()
    for _, transition in flow.edges:
        sync = transition.synchronization
        if sync is not None and sync.merge is not None and len(parse_path(sync.merge.source)) <= 2:
            taken |= regions.inside(sync.sibling_group) if sync.sibling_group in regions.isolating else set()
    return frozenset(taken)
