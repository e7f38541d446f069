"""Checks of a definition: mistakes that remain although every field is right (1.9).

Each module owns some codes. A check gets the canonical workflow and a `Reading` to report to; it never raises and never
changes anything. Checks of dataflow run only when nothing else is wrong: a dropped mapping would cause false reports.
"""

from __future__ import annotations

from treadle.language.checks import (
    branch,
    dataflow,
    expressions,
    failures,
    graph,
    groups,
    names,
    people,
    signatures,
    stack,
    tasks,
    unread,
)
from treadle.language.checks.flow import Flow
from treadle.language.reading import Reading
from treadle.model.definition import Workflow


def check(workflow: Workflow, reading: Reading) -> None:
    """Report everything that is wrong."""
    flow = Flow(workflow)
    first = (names, expressions, tasks, people, signatures, groups, graph, stack)
    for module in first:
        module.check(flow, reading)
    if not reading.failed:
        for find in (dataflow.check, unread.check, branch.check, failures.check):
            find(flow, reading)
