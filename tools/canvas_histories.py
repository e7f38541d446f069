"""Writes web/tests/golden/*.json: histories of scenarios with the kernel's states at several events, and pictures.

    .venv/bin/python -m tools.canvas_histories           writes the chosen scenarios again
    .venv/bin/python -m tools.canvas_histories --choose  plays all scenarios and chooses anew

The canvas folds a history by itself to move through it (web/src/model/fold.ts); its tests compare that fold with these
states. tests/unit/tools/test_canvas_histories.py fails while the files are not what this writes.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from treadle.display.graph_json import meetings_of
from treadle.errors import ScenarioError
from treadle.graph.execution_graph import ExecutionGraph
from treadle.kernel.evolve import evolve
from treadle.kernel.state import RunState
from treadle.model.event_rows import event_row
from treadle.runtime.view.picture import picture_of
from treadle.runtime.view.readings import RunReading
from treadle.runtime.view.snapshot import snapshot_of
from treadle.testing.scenario.definitions import load_definition
from treadle.testing.scenario.documents import Document, read_file
from treadle.testing.scenario.form import Scenario
from treadle.testing.scenario.parse import parse_scenario
from treadle.testing.scenario.performance import Performance
from treadle.testing.scenario.report import ScenarioFailure

Json = Any

ROOT = Path(__file__).resolve().parent.parent
SCENARIOS = ROOT / "tests" / "scenarios"
GOLDEN = ROOT / "web" / "tests" / "golden"
PER_FILE = 1
"""Scenarios of each file that are taken in any case."""
NEW_PAIRS = 3
"""So many pairs of neighbouring events that no scenario before it has make a scenario worth its place."""
ALL_OF = frozenset({"migration"})
"""Files of which every scenario is taken: how one of their events is folded depends on what the graphs are like."""
EVENTS_MAX = 120
POINTS = 9


def play(document: Document) -> list[Json]:
    """The runs of one scenario: their histories and states. Nothing for one that is not played."""
    try:
        scenario = parse_scenario(document)
        if scenario.deploy_error is not None or not scenario.runs:
            return []
        return _runs(document, scenario)
    except (ScenarioError, ScenarioFailure):
        return []


def _runs(document: Document, scenario: Scenario) -> list[Json]:
    loaded = [load_definition(definition).workflow for definition in scenario.definitions]
    performance = Performance(scenario, [one for one in loaded if one is not None])
    with performance.world as world:
        performance.perform()
        return [
            _case(document.title, run, world.state(run), world.projection(run).events) for run in list(world.runs)[:2]
        ]


def _case(title: str, run: str, end: RunState, events: Iterable[Any]) -> Json:
    history = list(events)
    rows = [event_row(event) for event in history]
    points = {1 + (len(history) - 1) * step // POINTS for step in range(1, POINTS + 1)}
    state = RunState(end.graph)
    states = []
    for event in history:
        evolve(state, event)
        if event.seq in points:
            states.append(msgspec.to_builtins(snapshot_of(state, event.at)))
    return {
        "scenario": title,
        "run": run,
        "versions": {str(version): _shape(end.graph.at_version(version)) for version in sorted(set(_versions(rows)))},
        "history": rows,
        "states": states,
        "pictures": [_picture(end, history[:count]) for count in sorted({_middle(history), len(history)})],
    }


def _middle(history: list[Any]) -> int:
    """How many events there are up to the end of the instant in the middle: a decision ends there."""
    at = history[len(history) // 2].at
    return max(count for count, event in enumerate(history, 1) if event.at == at)


def _picture(end: RunState, history: list[Any]) -> Json:
    """What the service tells a canvas that has not read the history."""
    reading = RunReading(end.graph)
    reading.apply(history)
    return msgspec.to_builtins(asyncio.run(picture_of(reading)), str_keys=True)


def _versions(rows: list[Json]) -> Iterator[int]:
    """The versions that a run has had."""
    for row in rows:
        if row["type"] in ("run.queued", "run.started"):
            yield row["version"]
        elif row["type"] == "run.migrated":
            yield row["to"]


def _shape(graph: ExecutionGraph) -> Json:
    """What the canvas knows of one version when it folds."""
    return {
        "meetings": [[one.group, one.node, one.timed] for one in meetings_of(graph)],
        "edges": [
            [t.id, t.source.ref, t.target.ref, t.definition.trigger is not None, t.definition.sibling_group]
            for t in graph.transitions.values()
        ],
    }


def chosen() -> dict[str, list[str]]:
    """Which scenarios of which file are in the golden files now."""
    found: dict[str, list[str]] = {}
    for path in sorted(GOLDEN.glob("*.json")):
        titles = (case["scenario"] for case in json.loads(path.read_text("utf-8")))
        found[path.stem] = list(dict.fromkeys(titles))
    return found


def written(name: str, titles: list[str]) -> str:
    """The golden file of one file of scenarios."""
    documents = {document.title: document for document in read_file(SCENARIOS / f"{name}.scenario.yaml")}
    return text_of([case for title in titles for case in play(documents[title])])


def text_of(cases: list[Json]) -> str:
    """Cases as text, one on each line."""
    lines = (json.dumps(case, ensure_ascii=False, separators=(",", ":")) for case in cases)
    return "[\n" + ",\n".join(lines) + "\n]\n"


def choose() -> dict[str, list[str]]:
    """Scenarios that have every type of event between them and many of the ways in which one follows another."""
    found: dict[str, list[str]] = {}
    seen: set[tuple[str, ...]] = set()
    for path in sorted(SCENARIOS.glob("*.scenario.yaml")):
        name = path.name.removesuffix(".scenario.yaml")
        for document in read_file(path):
            cases = play(document)
            new = {part for case in cases for part in _parts(case["history"])} - seen
            few = all(len(case["history"]) <= EVENTS_MAX for case in cases)
            wanted = name in ALL_OF or len(found.get(name, [])) < PER_FILE or len(new) >= NEW_PAIRS
            if cases and ((few and wanted) or any(len(part) == 1 for part in new)):
                seen |= new
                found.setdefault(name, []).append(document.title)
    return found


def _parts(history: list[Json]) -> set[tuple[str, ...]]:
    """The types of a history, and the pairs of types that follow each other."""
    types = [row["type"] for row in history]
    return {(one,) for one in types} | set(pairwise(types))


def main() -> None:
    names = choose() if "--choose" in sys.argv else chosen()
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for name, titles in names.items():
        (GOLDEN / f"{name}.json").write_text(written(name, titles), "utf-8")


if __name__ == "__main__":
    main()
