"""A database that has gone back: what proves it, and what does not."""

from __future__ import annotations

import pytest

from treadle.store.places import ServerHost
from treadle.store.postgres.hosts import Way
from treadle.store.postgres.witness import Sight, Witness

FIRST = Sight(system=7, timeline=1, position=1_000, epochs=64)


def judged(sight: Sight, *seen: Sight) -> str:
    """What is said of a server after others were seen."""
    witness = Witness()
    for one in seen:
        assert not witness.objection(one, witness.seen)
        witness.note(one)
    return witness.objection(sight, witness.seen)


@pytest.mark.parametrize(
    "sight",
    [
        FIRST,
        FIRST._replace(position=1_001, epochs=65),
        FIRST._replace(timeline=2, position=900),
        FIRST._replace(system=8, timeline=1, position=5),
        Sight(None, None, None, None),
        Sight(None, None, None, 64),
    ],
    ids=["the same", "later", "a promoted standby", "a new cluster with the same rows", "silent", "of another kind"],
)
def test_a_server_that_has_everything_is_used(sight: Sight) -> None:
    assert judged(sight, FIRST) == ""


@pytest.mark.parametrize(
    ("sight", "why"),
    [
        (FIRST._replace(position=2_000, epochs=99), "timeline 1, and this store has been on timeline 2"),
        (Sight(7, 2, 899, 64), "its log ends at 0/383, and 0/384 has been seen"),
        (Sight(7, 3, 2_000, 63), "add up to 63, and 64 has been seen"),
        (Sight(8, 1, 5, 63), "add up to 63, and 64 has been seen"),
        (Sight(None, None, None, 0), "add up to 0, and 64 has been seen"),
    ],
    ids=["an old primary", "a snapshot", "a standby that lacked something", "a restored dump", "made anew"],
)
def test_a_server_that_lacks_something_is_refused(sight: Sight, why: str) -> None:
    assert why in judged(sight, FIRST, FIRST._replace(timeline=2, position=900))


def test_connections_that_overtake_each_other_prove_nothing() -> None:
    witness = Witness()
    witness.note(FIRST)
    before = witness.seen
    witness.note(FIRST._replace(position=2_000, epochs=70))  # asked later, answered sooner
    assert witness.objection(FIRST._replace(position=1_500, epochs=65), before) == ""
    assert witness.seen == FIRST._replace(position=2_000, epochs=70)
    witness.note(FIRST._replace(position=1_500, epochs=65))
    assert witness.seen == FIRST._replace(position=2_000, epochs=70), "what was seen is not forgotten"
    witness.note(FIRST._replace(timeline=2, position=10))
    assert "old primary" in witness.objection(FIRST._replace(position=9_000), before), "however early it was asked"


def test_a_process_that_has_seen_nothing_takes_the_newest_timeline() -> None:
    way = Way("postgresql://red,blue,green/shop")
    way.learn([(True, FIRST), (True, FIRST._replace(timeline=2)), (False, FIRST._replace(timeline=None))])
    assert way.witness.timeline == 2
    other = Way("postgresql://red,blue/shop")
    other.learn([(True, FIRST), (False, FIRST._replace(timeline=3)), (False, Sight(8, 9, 0, None))])
    assert other.witness.timeline == 3, "a standby follows somebody; another cluster proves nothing"
    alone = Way("postgresql://red,blue/shop")
    alone.learn([(False, FIRST._replace(timeline=3))])
    assert alone.witness.seen is None, "nobody to use yet"


def test_a_refused_server_is_told_once() -> None:
    way, told = Way("postgresql://red,blue/shop"), []  # type: ignore[var-annotated]
    way.told = told.append
    for _ in range(3):
        way.refused(ServerHost("red"), "it is old")
    assert told == [str(way.refused(ServerHost("red"), "it is old"))]
    assert told[0].startswith("postgresql://red,blue/shop: red: it is old; it is not used: stop that server")
    way.found(ServerHost("red"), FIRST)
    way.refused(ServerHost("red"), "it is old")
    assert len(told) == 2
