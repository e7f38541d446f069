"""A migration to an identical version changes nothing, at any moment of any run (6.5)."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import fields
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.driving import RUN, Driven, Shelf, problems, versions_of
from tests.property import graphs
from tests.property.playing import disturb, examples, pay_debts, told
from treadle.graph.compile import compile_graph
from treadle.kernel.evolve import replay
from treadle.kernel.state import RunState
from treadle.model import commands as c
from treadle.model import effects as x
from treadle.testing.world.world import differing_fields

randoms = st.randoms(use_true_random=False)
MIGRATABLE = ("running", "paused", "failed")
EXPECTED = {"seq", "version", "tokens", "had_queue"}
"""Fields that a migration changes: the version, and the definition that attempts under way go by."""


def versioned(random: Random) -> Driven:
    """A run of a random workflow that has two equal versions."""
    workflow = graphs.workflow_from(random)
    first = versions_of(compile_graph(workflow), compile_graph(workflow))
    driven = Driven(first, Shelf(first))
    driven.do(c.StartRun(RUN, {}, version=1, depth_max=10))
    return driven


def kept(state: RunState) -> RunState:
    """The state as it is now, the graphs shared."""
    return deepcopy(state, {id(graph): graph for graph in state.graph.versions.values()})


def changed(before: RunState, after: RunState) -> list[str]:
    found = [
        f"{field.name}: {getattr(before, field.name)!r:.300} became {getattr(after, field.name)!r:.300}"
        for field in fields(before)
        if field.compare and field.name not in EXPECTED and getattr(before, field.name) != getattr(after, field.name)
    ]
    for token in after.tokens.values():
        token.under = None
    for token in before.tokens.values():
        token.under = None
    return found + (["tokens"] if before.tokens != after.tokens else [])


def migrate(driven: Driven) -> None:
    """To the other version, if the run can be migrated at all, and nothing but that happens."""
    if driven.state.status.value not in MIGRATABLE:
        return
    before = kept(driven.state)
    decision = driven.do(c.MigrateRun(3 - driven.state.version))
    assert decision.rejection is None, told(driven, [str(decision.rejection)])
    assert [event.type for event in decision.events] == ["run.migrated"], told(driven, ["more has happened"])
    assert [type(effect) for effect in decision.effects] == [x.NoteVersion], told(driven, ["more was asked for"])
    found = changed(before, kept(driven.state))
    assert not found, told(driven, found)


@pytest.mark.interpreted
@examples(120)
@given(randoms)
def test_a_migration_to_an_identical_version_changes_nothing(random: Random) -> None:
    driven = versioned(random)

    def sometimes(_driven: Driven, _command: c.Command) -> None:
        if random.random() < 0.3:
            migrate(driven)
        found = problems(driven)
        assert not found, told(driven, found)

    disturb(driven, random, sometimes)
    pay_debts(driven, random, sometimes)


@examples(80)
@given(randoms)
def test_the_history_of_a_migrated_run_folds_to_its_state(random: Random) -> None:
    driven = versioned(random)

    def often(_driven: Driven, _command: c.Command) -> None:
        if random.random() < 0.5 and driven.state.status.value in MIGRATABLE:
            driven.do(c.MigrateRun(3 - driven.state.version))

    disturb(driven, random, often)
    found = differing_fields(replay(driven.graph, driven.history), driven.state)
    assert not found, told(driven, found)
