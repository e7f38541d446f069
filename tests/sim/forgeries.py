"""One falsified history for every rule about joins, routing and groups: honest up to a point, then a lie.

Owns the table's shape and the small runs both tables use. A row names the rule and words of its complaint, so that each
expectation of the auditor is met by a lie of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.driving import TASK, graph_of
from tests.sim.watching import Forgery, Watching, changed, watching, without
from treadle.model import commands as c
from treadle.model import events as e
from treadle.model.errors import Error
from treadle.model.ids import ArrivalId, GroupId, RunId, TokenId

Json = Any
NO = Error("BRANCH_FAILED", "no")
GROUP = GroupId(1)
ARRIVAL = ArrivalId(1)
ONE, TWO, THREE, FOUR = TokenId(1), TokenId(2), TokenId(3), TokenId(4)
AT = 1_000
FIRING = (e.JoinFired, e.TokenCompleted, e.TokenCreated, e.TokenDispatched, e.TokenStarted)
"""What a join that fires leaves behind."""


class Forged(NamedTuple):
    """A row."""

    rule: str
    words: str
    play: Callable[[], Watching]


def chain(**fields: Json) -> Watching:
    """a → b."""
    return watching({"nodes": {"a": {**TASK, **fields}, "b": TASK}, "transitions": [{"from": "a", "to": "b"}]})


def ways(*transitions: dict[str, Json], **fields: Json) -> Watching:
    """a with ways to b and c."""
    given = [{"from": "a", **t} for t in transitions]
    return watching({"nodes": {"a": {**TASK, **fields}, "b": TASK, "c": TASK}, "transitions": given})


def joined(**sync: Json) -> dict[str, Json]:
    """Two branches b of a that meet at z."""
    transitions = [
        {"id": "t", "from": "a", "to": "b", "spawn_count": 2},
        {"from": "b", "to": "z", "synchronization": {"sibling_group": "t", **sync}},
    ]
    return {"nodes": {"a": {}, "b": TASK, "z": TASK}, "transitions": transitions}


def one_arrived(**sync: Json) -> Watching:
    return watching(joined(**sync)).finish(2)


def fired() -> Watching:
    return one_arrived().finish(3)


def met(kind: Json = "all_inbound") -> Watching:
    """b and c, which meet at m by its own join."""
    nodes = {"a": {}, "b": TASK, "c": TASK, "m": {**TASK, "join": kind}}
    pairs = [("a", "b"), ("a", "c"), ("b", "m"), ("c", "m")]
    return watching({"nodes": nodes, "transitions": [{"from": f, "to": t} for f, t in pairs]})


def started(document: dict[str, Json], forge: Forgery) -> Watching:
    """A run whose very start is falsified."""
    watched = Watching(graph_of(document))
    return watched.do(c.StartRun(run=RunId("run-1"), input={"items": [1, 2]}), forge)


def forked() -> dict[str, Json]:
    transitions = [{"from": "a", "to": "b"}, {"from": "a", "to": "c"}]
    transitions += [{"from": x, "to": "z", "synchronization": {"sibling_group": "a"}} for x in ("b", "c")]  # type: ignore[dict-item]
    return {"nodes": {"a": {}, "b": TASK, "c": TASK, "z": TASK}, "transitions": transitions}


def each(**foreach: Json) -> dict[str, Json]:
    spread = {"id": "t", "from": "a", "to": "b", "foreach": {"collection": "input.items", **foreach}}
    return {"nodes": {"a": {}, "b": TASK}, "transitions": [spread]}


def below_minimum() -> Watching:
    watched = one_arrived(min_success_count=2, on_branch_failure="exclude")
    failed = e.TokenFailed(0, AT, THREE, NO, fails=(GROUP, 1))
    join = e.JoinFired(0, AT, "z", GROUP, arrived=1, failed=1, total=2)
    return watched.show(failed, join, cause=c.FailAttempt(THREE, 1, NO))


def undrained() -> Watching:
    """Two instances of a group: the second join fires while the first still has a straggler."""
    document = joined(strategy="any", on_early_complete="block")
    document["nodes"].update(s1=TASK, s2=TASK)
    document["start"] = ["s1", "s2"]
    document["transitions"] += [{"from": "s1", "to": "a"}, {"from": "s2", "to": "a"}]
    watched = watching(document).finish(1).finish(2)
    first, second = watched.driven.tokens("b", 0)
    watched.finish(first.id).finish(second.id)
    return watched.show(e.JoinFired(0, AT, "z", GroupId(2), arrived=1, total=2, rest="block"))


def over_the_limit() -> Watching:
    watched = watching({"limits": {"max_tokens_per_run": 1}, "nodes": {"a": TASK}})
    watched.record.forward_visits = 2
    return watched.do(c.SendSignal("s", id="1"))


def both_tiers(*transitions: dict[str, Json], **fields: Json) -> Watching:
    done = e.TokenCompleted(0, AT, ONE, {})
    hops = [e.TokenCreated(0, AT, TokenId(2 + n), to, "root", (), f"a->{to}", ONE) for n, to in enumerate("bc")]
    return ways(*transitions, **fields).show(done, *hops, cause=c.FinishAttempt(ONE, 1, {}))


def past(watched: Watching, target: str, *frames: tuple[int, int]) -> Watching:
    """b's token walks on to `target` as if there were no join."""
    done = e.TokenCompleted(0, AT, TWO, {})
    hop = e.TokenCreated(0, AT, FOUR, target, "root", frames, f"b->{target}", TWO)  # type: ignore[arg-type]
    return watched.show(done, hop, cause=c.FinishAttempt(TWO, 1, {}))


def twice_inside() -> Watching:
    """A group inside a group of the same name: an arrival is held at the outer one."""
    transitions = [
        {"id": "t", "from": "a", "to": "b", "spawn_count": 2, "sibling_group": "g"},
        {"id": "u", "from": "b", "to": "d", "spawn_count": 2, "sibling_group": "g"},
        {"from": "d", "to": "z", "synchronization": {"sibling_group": "g"}},
    ]
    watched = watching({"nodes": {"a": {}, "b": TASK, "d": TASK, "z": TASK}, "transitions": transitions}).finish(2)
    return watched.finish(4, None, changed(e.JoinArrived, group=1))


def arrives(**lie: Json) -> Watching:
    return watching(joined()).finish(2, None, changed(e.JoinArrived, **lie))


def fires(arrived: int) -> e.JoinFired:
    return e.JoinFired(0, AT, "z", GROUP, arrived=arrived, total=2)


def merging() -> dict[str, Json]:
    document = joined(merge={"source": "$._branch.output.v", "target": "state.all", "strategy": "append"})
    document["nodes"]["b"] = {**TASK, "output_mapping": {"state.v": "$.v"}}
    return document


JOINS = [
    Forged("arrivals", "innermost is [2]", twice_inside),
    Forged(
        "arrivals", "absorbed=True", lambda: watching(joined()).finish(2, None, changed(e.JoinArrived, absorbed=True))
    ),
    Forged("quorum", "fires and should wait", lambda: one_arrived().show(fires(1))),
    Forged("quorum", "says (2, 0, 2)", lambda: one_arrived().show(fires(2))),
    Forged("fires once", "fires and is fired", lambda: fired().show(fires(2))),
    Forged("join asleep", "should fire", lambda: one_arrived().finish(3, None, without(*FIRING))),
    Forged("merge", "brings 7", lambda: watching(merging()).finish(2, {"v": 1}, changed(e.JoinArrived, value=7))),
    Forged(
        "merge",
        "expected [1, 2]",
        lambda: (
            watching(merging())
            .finish(2, {"v": 1})
            .finish(3, {"v": 2}, changed(e.JoinFired, writes=[(("state", "all"), [2, 1])]))
        ),
    ),
    Forged(
        "scope",
        "its overlay is",
        lambda: watching(merging()).finish(2, {"v": 1}, changed(e.ContextUpdated, scope=None)),
    ),
    Forged("arrivals", "has no join at", lambda: arrives(target="a")),
    Forged("arrivals", "is not there", lambda: chain().show(e.TokenCancelled(0, AT, TokenId(0), "x", None, 7))),
    Forged("quorum", "below min_success_count", below_minimum),
    Forged("quorum", "fails BRANCH_FAILED", lambda: one_arrived().show(e.JoinFailed(0, AT, "z", NO, GROUP))),
    Forged("quorum", "dies with", lambda: one_arrived().show(e.JoinDead(0, AT, "z", GROUP))),
    Forged("block", "is not drained", undrained),
    Forged("fires once", "fails and is fired", lambda: fired().show(e.JoinFailed(0, AT, "z", NO, GROUP))),
    Forged("fires once", "dies and is not open", lambda: fired().show(e.JoinDead(0, AT, "z", GROUP))),
    Forged("rest", "rest is cancel", lambda: one_arrived().finish(3, None, changed(e.JoinFired, rest="cancel"))),
    Forged("node join", "for item", lambda: met().finish(2, None, changed(e.JoinArrived, item=(1, 0)))),
    Forged("node join", "uses arrivals", lambda: met().finish(2).finish(3, None, changed(e.JoinFired, arrivals=[9]))),
    Forged(
        "node join",
        "should use None",
        lambda: met().finish(2).show(e.JoinFired(0, AT, "m", None, None, [ARRIVAL], 1, 0, 2)),
    ),
    Forged("join asleep", "(all_inbound) holds", lambda: met().finish(2).finish(3, None, without(*FIRING))),
]
GROUPS = [
    Forged("groups", "is not open", lambda: watching(joined()).show(e.GroupGrew(0, AT, GROUP, 3))),
    Forged("groups", "shrinks", lambda: watching(joined()).show(e.GroupGrew(0, AT, GROUP, 1))),
    Forged("arity", "fork of a", lambda: started(forked(), changed(e.GroupOpened, total=3))),
    Forged("arity", "branches, not 2", lambda: started(joined(), changed(e.GroupOpened, total=3))),
    Forged("arity", "2 items", lambda: started(each(), changed(e.GroupOpened, total=3))),
    Forged(
        "limits",
        "exceeds max_spawn_count",
        lambda: started({**joined(), "limits": {"max_spawn_count": 2}}, changed(e.GroupOpened, total=3)),
    ),
    Forged("limits", "visits exceed 1", over_the_limit),
    Forged(
        "lazy",
        "max_in_flight is 1",
        lambda: watching(each(max_in_flight=1), {"items": [1, 2]}).show(
            e.TokenCreated(0, AT, THREE, "b", "root.a.1", ((GROUP, 1),), "t", ONE)
        ),
    ),
]
ROUTING = [
    Forged("frames", "its origin", lambda: arrives(frames=())),
    Forged("ids", "is not the next one", lambda: chain().finish(1, None, changed(e.TokenCreated, token=9))),
    Forged(
        "loop",
        "for the 5th time",
        lambda: ways({"id": "again", "to": "b", "loop": {"max_iterations": 2}}).finish(
            1, None, changed(e.TokenCreated, loops={"again": 5})
        ),
    ),
    Forged("conservation", "comes from nowhere", lambda: chain().finish(1, None, changed(e.TokenCreated, via=None))),
    Forged("conservation", "leads to b", lambda: chain().finish(1, None, changed(e.TokenCreated, node="a"))),
    Forged(
        "conservation",
        "its origin was at",
        lambda: ways({"to": "b"}).finish(1).finish(2).show(e.TokenCreated(0, AT, THREE, "b", "root", (), "a->b", TWO)),
    ),
    Forged("conservation", "no origin", lambda: chain().finish(1, None, changed(e.TokenCreated, origin=None))),
    Forged("conservation", "past the join of transition:t", lambda: past(watching(joined()), "z", (1, 0))),
    Forged("conservation", "past the join of node m", lambda: past(met(), "m")),
    Forged("conservation", "t leaves a", lambda: arrives(via="t")),
    Forged("routing", "started nothing", lambda: chain().finish(1, None, without(e.TokenCreated))),
    Forged("routing", "several tiers", lambda: both_tiers({"to": "b"}, {"to": "c", "priority": 2})),
    Forged("routing", "on success", lambda: both_tiers({"to": "b"}, {"to": "c", "on": "failure"})),
    Forged("routing", "took several ways", lambda: both_tiers({"to": "b"}, {"to": "c"}, fan_out="first_match")),
    Forged(
        "routing",
        "did not take a->c",
        lambda: ways({"to": "b"}, {"to": "c"}).finish(1, None, without(e.TokenCreated, but=1)),
    ),
]
