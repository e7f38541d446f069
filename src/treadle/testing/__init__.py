"""Testing workflows on a virtual clock: scenario files, and worlds for tests written in Python.

    results = run_file("panel.scenario.yaml")
    assert all(result.ok for result in results), "\\n".join(map(str, results))

`run_file` and `run_text` play scenario files (docs/reference/scenarios.md); pytest collects them by itself
through the plug-in that comes with this package. `World` is what they are played on, for direct use: the engine that
serves people, on a store in memory, with a clock that jumps. `store="sqlite"` gives it a file of its own. `LlmServer`
is a language model that answers as a test tells it; it is imported when first used, since most tests need none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from treadle.testing.scenario.form import Mock, Scenario
from treadle.testing.scenario.runner import ScenarioResult, run_file, run_scenario, run_text
from treadle.testing.world.clock import FakeClock
from treadle.testing.world.outcomes import Outcome
from treadle.testing.world.projection import Projection, Visit
from treadle.testing.world.world import World

if TYPE_CHECKING:
    from treadle.testing.llm.server import Answer, Asked, LlmServer

__all__ = [
    "Answer",
    "Asked",
    "FakeClock",
    "LlmServer",
    "Mock",
    "Outcome",
    "Projection",
    "Scenario",
    "ScenarioResult",
    "Visit",
    "World",
    "run_file",
    "run_scenario",
    "run_text",
]


_LATER = {
    "Answer": "treadle.testing.llm.server",
    "Asked": "treadle.testing.llm.server",
    "LlmServer": "treadle.testing.llm.server",
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        from importlib import import_module

        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
