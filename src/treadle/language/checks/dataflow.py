"""Reads of the run's state that nothing can have written, or that only some paths have.

Doubt is not an error: UNWRITTEN_READ is reported only where no write can come first, in whatever order things happen;
where a path exists that writes nothing, it is a warning. `exists` and `has()` ask whether something is there, so they
are not reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from treadle.errors import ExpressionError
from treadle.expression.paths import Path as DataPath
from treadle.expression.paths import format_path, parse_path
from treadle.language.checks.expressions import compiled_use
from treadle.language.checks.flow import Flow
from treadle.language.checks.groups import started_by
from treadle.language.checks.regions import Regions
from treadle.language.checks.surely import Sure
from treadle.language.checks.uses import Form, Sees, Use, When, uses_of
from treadle.language.checks.writes import Paths, Visibility, Write, overlap, writes_of
from treadle.language.phrases import without_strings
from treadle.language.problem import did_you_mean
from treadle.language.reading import Reading

_ASKED = re.compile(r"\bhas\(\s*([\w.]+)\s*\)|([\w.]+)\.\?(\w+)|\bin\s+([\w.]+)")


def check(flow: Flow, reading: Reading) -> None:
    """UNWRITTEN_READ, MAYBE_UNWRITTEN_READ."""
    reads = [(use, path) for use in uses_of(flow) for path in state_reads(use, flow)]
    if not reads and not any(t.synchronization and t.synchronization.merge for _, t in flow.edges):
        return
    regions = Regions(flow)
    writes = writes_of(flow)
    given = list(_defaults(flow.workflow.state_schema, ("state",)))
    sure = Sure(flow, writes, given)
    visible = Visibility(flow, regions)
    known, defaults = Paths(write.path for write in writes), Paths(given)
    for use, path in reads:
        if (use.node and use.node not in flow.live) or defaults.touching(path):
            continue
        touching = set(known.touching(path))
        near = [write for write in writes if write.path in touching] if touching else []
        if not any(_can_have_written(write, use, visible) for write in near):
            _unwritten(use, path, near, writes, reading)
        elif not _surely(use, path, sure):
            message = f"`{_shown(path)}` is not written on every path that leads here"
            hint = "write it on the other paths too, give it a default in `state_schema`, or ask `exists` first"
            reading.problem_in("MAYBE_UNWRITTEN_READ", use.at, message, hint)
    _merge_sources(flow, writes, regions, reading)


def state_reads(use: Use, flow: Flow) -> Iterator[DataPath]:
    """The paths below `state` whose absence would matter to this expression."""
    if use.sees is not Sees.RUN or use.when is When.NEVER or use.form is Form.JOIN:
        return
    try:
        reads = compiled_use(use, flow).reads
    except ExpressionError:
        return
    asked = list(asked_paths(use.value))
    for path in sorted(reads, key=str):
        if path[:1] == ("state",) and len(path) > 1 and not any(overlap(path, other) for other in asked):
            yield path


def asked_paths(value: Any) -> Iterator[DataPath]:
    """The paths whose existence an expression asks for."""
    if isinstance(value, list):
        for part in value:
            yield from asked_paths(part)
    elif isinstance(value, dict):
        if value.get("type") == "exists":
            yield parse_path(value["field"])
        elif set(value) == {"cel"} or value.get("type") == "cel":
            yield from _asked_in_cel(str(value.get("expr", value.get("cel"))))
        else:
            for part in value.values():
                yield from asked_paths(part)


def _asked_in_cel(expr: str) -> Iterator[DataPath]:
    for has, optional, step, container in _ASKED.findall(without_strings(expr)):
        text = has or (f"{optional}.{step}" if step else container)
        yield tuple(text.split("."))


def _can_have_written(write: Write, use: Use, visible: Visibility) -> bool:
    if use.when is When.END:
        return True
    own = write.node == use.node and write.merge is None
    if own and use.when is When.LEAVING and use.transition is not None and use.transition.on != "failure":
        return True
    return visible.can_precede(write, use.node)


def _surely(use: Use, path: DataPath, sure: Sure) -> bool:
    if use.when in (When.END, When.WAITING):
        return True
    if use.when is When.LEAVING and use.transition is not None:
        return sure.covers(sure.leaving(use.transition), path)
    return sure.covers(sure.before[use.node], path)


def _unwritten(use: Use, path: DataPath, near: list[Write], writes: list[Write], reading: Reading) -> None:
    if near:
        message = f"`{_shown(path)}` is read before `{near[0].node}`, which writes it, can have run"
        if near[0].merge is None and use.node != near[0].node:
            message += ", or is dropped at a join that merges something else"
        hint = None
    else:
        message = f"nothing writes `{_shown(path)}`"
        hint = did_you_mean(_shown(path), {_shown(write.path) for write in writes})
        hint = hint or f"write it with `output_mapping: {{{_shown(path)}: …}}` on a node before this"
    reading.problem_in("UNWRITTEN_READ", use.at, message, hint)


def _shown(path: DataPath) -> str:
    return format_path(path).removeprefix("$.")


def _defaults(schema: Any, at: DataPath) -> Iterator[DataPath]:
    """The state paths that the schema gives a value to begin with."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if len(at) > 8 or not isinstance(properties, dict):
        return
    for name, part in properties.items():
        if isinstance(part, dict) and "default" in part:
            yield (*at, name)
        yield from _defaults(part, (*at, name))


def _merge_sources(flow: Flow, writes: list[Write], regions: Regions, reading: Reading) -> None:
    """Report a merge whose source no branch writes: it would give nothing but nulls."""
    for index, transition in flow.edges:
        sync = transition.synchronization
        if sync is None or sync.merge is None or not started_by(flow, sync.sibling_group):
            continue
        source = parse_path(sync.merge.source)
        if source[:2] != ("_branch", "output") or len(source) < 3:
            continue
        inside = regions.inside(sync.sibling_group)
        wanted = [(root, *source[2:]) for root in ("state", "output")]
        if any(write.node in inside and overlap(write.path, path) for write in writes for path in wanted):
            continue
        target = _shown(wanted[0])
        message = f"no node of the group `{sync.sibling_group}` writes `{target}`, so this is never there"
        hint = f"map it in the branch: `output_mapping: {{{target}: …}}`"
        at = ("transitions", index, "synchronization", "merge", "source")
        reading.problem_in("MAYBE_UNWRITTEN_READ", at, message, hint)
