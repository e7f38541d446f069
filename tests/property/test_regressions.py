"""Runs that once went wrong, played again as they were found: a file in regressions/ is one definition and one script.

A failing property prints such a file. It keeps the exact commands, token ids included, so it stays a witness of one
bug; what the bug meant for authors is said by a scenario or a test of its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.driving import Driven
from tests.property.playing import CATALOG, holds, told
from tests.property.test_replay import Shadow
from tests.property.test_views_agree import check_groups
from treadle.graph.compile import compile_graph
from treadle.model import commands
from treadle.model.definition import Workflow
from treadle.model.states import RUN_ENDED

FILES = sorted((Path(__file__).parent / "regressions").glob("*.json"))
ANY_COMMAND: Any = commands.Command.__subclasses__()[0]
for kind in commands.Command.__subclasses__()[1:]:
    ANY_COMMAND = ANY_COMMAND | kind


class Regression(msgspec.Struct, omit_defaults=True):
    """One file."""

    why: str
    definition: Workflow
    commands: list[tuple[int, ANY_COMMAND]]
    status: str | None = None
    """Where the run must be at the end; None: anywhere, as long as everything holds."""


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_run_that_once_went_wrong_goes_right(file: Path) -> None:
    regression = msgspec.json.decode(file.read_bytes(), type=Regression)
    driven = Driven(compile_graph(regression.definition), CATALOG)
    shadow = Shadow(driven)
    for at, command in regression.commands:
        driven.now = at
        driven.do(command)
        holds(driven, command)
        shadow.follow(driven, command)
    check_groups(driven)
    if regression.status is not None:
        assert driven.state.status == regression.status, told(driven, [regression.why])
    elif driven.state.status not in RUN_ENDED:
        assert driven.state.live, told(driven, ["nothing is live"])
