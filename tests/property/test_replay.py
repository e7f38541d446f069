"""History is the truth: folding it gives the state, at every prefix, also from its stored bytes."""

from __future__ import annotations

from copy import deepcopy
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.driving import Driven
from tests.property.playing import disturb, examples, started, told
from treadle.kernel.evolve import evolve, replay
from treadle.kernel.state import RunState
from treadle.model import commands as c
from treadle.model.codec import pack_events, unpack_events
from treadle.testing.world.world import differing_fields

randoms = st.randoms(use_true_random=False)


class Shadow:
    """A second state, fed with what was stored and nothing else, beside the one that decides."""

    def __init__(self, driven: Driven) -> None:
        self.state = RunState(driven.graph)
        self._read = 0

    def follow(self, driven: Driven, _command: c.Command) -> None:
        for block in driven.blocks[self._read :]:
            for event in unpack_events(block):
                evolve(self.state, event)
        self._read = len(driven.blocks)
        found = differing_fields(self.state, driven.state)
        assert not found, told(driven, found)


def snapshot(driven: Driven) -> tuple[int, RunState]:
    """The state as it is now, the graph shared, and how long the history is."""
    graph = driven.state.graph
    return len(driven.history), deepcopy(driven.state, {id(graph): graph})


@examples(400)
@given(randoms)
def test_the_stored_history_folds_to_the_state_after_every_command(random: Random) -> None:
    driven = started(random)
    shadow = Shadow(driven)
    shadow.follow(driven, driven.commands[0][1])
    disturb(driven, random, shadow.follow)


@pytest.mark.interpreted
@examples(80)
@given(randoms)
def test_every_prefix_of_a_history_folds_to_the_state_it_had_then(random: Random) -> None:
    driven = started(random)
    then = [snapshot(driven)]
    disturb(driven, random, lambda _driven, _command: then.append(snapshot(driven)))
    for length, state in then:
        found = differing_fields(replay(driven.graph, driven.history[:length]), state)
        assert not found, told(driven, [f"at event {length}", *found])


@examples(80)
@given(randoms)
def test_a_prefix_that_ends_inside_a_command_folds_too(random: Random) -> None:
    driven = started(random)
    disturb(driven, random, lambda _driven, _command: None)
    state = RunState(driven.graph)
    for length, event in enumerate(driven.history, 1):
        evolve(state, event)
        assert state.seq == length
    found = differing_fields(replay(driven.graph, driven.history), driven.state)
    assert not found, told(driven, found)


@examples(150)
@given(randoms)
def test_an_event_never_changes_after_it_was_written(random: Random) -> None:
    driven = started(random)
    disturb(driven, random, lambda _driven, _command: None)
    events = [event for block in driven.blocks for event in unpack_events(block)]
    assert pack_events(driven.history) == pack_events(events), told(driven, ["history and its stored bytes differ"])


@examples(60)
@given(randoms)
def test_the_same_commands_lead_to_the_same_bytes(random: Random) -> None:
    driven = started(random)
    disturb(driven, random, lambda _driven, _command: None)
    again = Driven(driven.graph, driven.catalog)
    for at, command in driven.commands:
        again.now = at
        again.do(command)
    assert again.blocks == driven.blocks, told(driven, ["decided differently the second time"])
