"""Documents → scenarios: the top level and the mocks.

Owns, together with `parse_steps` and `parse_expect`, every key of a scenario file. Promises that unknown keys
and bad values raise `ScenarioError` with file, line and the nearest known key. Must not load definitions or
run anything.
"""

from __future__ import annotations

from treadle.testing.scenario.documents import Document
from treadle.testing.scenario.form import DeployExpected, Mock, Scenario, Start
from treadle.testing.scenario.parse_expect import parse_expectation
from treadle.testing.scenario.parse_parts import parse_definition, parse_outcome, parse_start
from treadle.testing.scenario.parse_steps import parse_step
from treadle.testing.scenario.place import ValuePlace

_KEYS = frozenset(
    {
        "scenario",
        "definitions",
        "start",
        "mocks",
        "steps",
        "expect",
        "deploy_error",
        "deploy_warning",
        "shuffle",
    }
)
_RUNNING = ("start", "mocks", "steps", "expect", "shuffle")


def parse_scenario(document: Document) -> Scenario:
    """One document as a scenario."""
    root = ValuePlace.root(document)
    fields = root.fields(_KEYS, "a scenario")
    for required in ("scenario", "definitions"):
        if required not in fields:
            root.refuse(f"a scenario needs `{required}`")
    return Scenario(
        name=fields["scenario"].text(),
        file=document.file,
        line=document.line,
        definitions=[parse_definition(place) for place in _some(fields["definitions"])],
        start=parse_start(fields["start"]) if "start" in fields else Start(),
        mocks=_mocks(fields["mocks"]) if "mocks" in fields else [],
        steps=[parse_step(place) for place in fields["steps"].items()] if "steps" in fields else None,
        expect=parse_expectation(fields["expect"]) if "expect" in fields else None,
        deploy_error=_problem(fields["deploy_error"]) if "deploy_error" in fields else None,
        deploy_warning=_problem(fields["deploy_warning"]) if "deploy_warning" in fields else None,
        shuffle=fields["shuffle"].count() if "shuffle" in fields else 0,
        runs=_runs(fields),
    )


def _some(place: ValuePlace) -> list[ValuePlace]:
    return place.items() or place.refuse("a scenario needs at least one definition")


def _runs(fields: dict[str, ValuePlace]) -> bool:
    """Whether anything is started: a refused definition cannot be, and a deploy warning may be all that is
    asked."""
    for key in ("steps", "expect"):
        if "deploy_error" in fields and key in fields:
            fields[key].refuse(f"`{key}` makes no sense beside `deploy_error`: nothing runs", key=True)
    given = any(key in fields for key in _RUNNING)
    return "deploy_error" not in fields and ("deploy_warning" not in fields or given)


def _problem(place: ValuePlace) -> DeployExpected:
    if isinstance(place.value, str):
        return DeployExpected(place.text())
    fields = place.fields({"code", "at"}, "an expected problem")
    if "code" not in fields:
        place.refuse("an expected problem needs its `code`")
    return DeployExpected(fields["code"].text(), fields["at"].text() if "at" in fields else None)


def _mocks(place: ValuePlace) -> list[Mock]:
    return [_mock(address, outcomes) for address, outcomes in place.map().items()]


def _mock(address: str, place: ValuePlace) -> Mock:
    if not isinstance(place.value, list):
        return Mock(address, (parse_outcome(place),), place)
    outcomes = tuple(parse_outcome(item) for item in place.items())
    return Mock(address, outcomes or place.refuse("a list of outcomes needs at least one"), place)
