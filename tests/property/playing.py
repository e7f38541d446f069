"""Random runs, played: a graph, a script of commands, and a look at everything after each of them.

Owns what "everything" is: the numbered invariants, the world's books, and that a run whose debts are all paid ends.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from random import Random

from hypothesis import Phase, settings

from tests.driving import RUN, Driven, Shelf, graph_of, problems
from tests.property import graphs, moves
from tests.property.sketch import CHILD
from tests.seed import SEED
from treadle.graph.compile import compile_graph
from treadle.model import commands as c
from treadle.model.ids import RunId, TokenId
from treadle.model.references import EntityRef, ParentLink

CATALOG = Shelf(graph_of({"workflow": CHILD, "nodes": {"only": {}}}))
COMMANDS_MAX = 40
"""Of the disturbed part of a script; enough for every generated graph to end within it."""

SCALE = float(os.environ.get("TREADLE_PROPERTY_SCALE", "1"))
"""Multiplies the number of examples, for a long search."""

Watch = Callable[[Driven, c.Command], None]


FINDING = (Phase.explicit, Phase.reuse, Phase.generate)
PHASES = FINDING if "TREADLE_PROPERTY_QUICK" in os.environ else (*FINDING, Phase.shrink)
"""Quick: to find a failure is enough, it need not be made small. Explaining costs minutes and says nothing here."""


def examples(count: int) -> settings:
    """So many random runs in an ordinary test; more when asked for."""
    return settings(max_examples=max(1, int(count * SCALE)), phases=PHASES)


def seeds(count: int) -> range:
    """Fresh seeds for runs that are drawn with a plain generator: no shrinking, but larger and far more of them."""
    first = Random(SEED).randrange(10**9)
    return range(first, first + max(1, int(count * SCALE)))


FIRST = int(os.environ.get("TREADLE_PROPERTY_FROM", "0"))
"""Where fixed seeds begin: another place to search, the same one to repeat."""


def fixed_seeds(count: int) -> range:
    """The same seeds every time: for oracles, whose findings are bugs of the kernel and not of luck."""
    return range(FIRST, FIRST + max(1, int(count * SCALE)))


def started(random: Random) -> Driven:
    """A random graph's run, just begun. Now and then it is somebody's child."""
    driven = Driven(compile_graph(graphs.workflow_from(random)), CATALOG)
    parent = ParentLink(RunId("parent"), TokenId(1)) if random.random() < 0.2 else None
    entity = EntityRef("e1", "order", section="inbox") if random.random() < 0.25 else None
    driven.do(c.StartRun(RUN, {}, entity=entity, parent=parent, depth=1 if parent else 0, depth_max=10))
    return driven


def disturb(driven: Driven, random: Random, watch: Watch) -> None:
    """A script of anything that can happen, `watch` being called after each command."""
    kinds = moves.CALM if random.random() < 0.7 else moves.STORM
    for _ in range(random.randrange(COMMANDS_MAX)):
        command = moves.choose(driven, random, kinds)
        if command is not None:
            driven.do(command)
            watch(driven, command)


def pay_debts(driven: Driven, random: Random, watch: Watch) -> None:
    """Everybody answers until the run has ended."""
    for command in moves.drain(driven, random):
        driven.do(command)
        watch(driven, command)


def holds(driven: Driven, _command: c.Command) -> None:
    """All numbered invariants, and the books."""
    found = problems(driven)
    assert not found, told(driven, found)


def told(driven: Driven, found: list[str]) -> str:
    """What a failing property prints: the problem, the compact log, and the file to keep it as a regression."""
    return "\n".join(["", *found, "", driven.log(), "", "as a regression: " + driven.recipe(found[0] if found else "")])
