"""Open gates: rows beside the runs, for every store there is."""

from __future__ import annotations

from typing import Any

from tests.contract.making import OTHER, RUN, TOKEN, begin, commit, started
from treadle.model import effects as f
from treadle.model import events as e
from treadle.model.ids import RUN_GATE, RunId, TokenId
from treadle.model.references import Person
from treadle.model.states import RunStatus
from treadle.store.port import Batch, GateQuery


def test_an_open_gate_is_found_until_it_closes(store: Any) -> None:
    fence = store.held()
    opened = e.GateOpened(2, 40, TOKEN, {"a": 1}, "Sign", {"fields": []}, {"to": ["ann"]}, 900)
    (row,) = store.commit(Batch([commit(0, started(), opened, effects=(f.OpenGate(TOKEN, "sign"),))]), fence)
    assert row.effect == f.OpenGate(TOKEN, "sign"), "somebody has to be told"
    store.commit(Batch([commit(0, started(OTHER), run=OTHER, effects=(f.OpenGate(TOKEN, "n"),))]), fence)
    first, second = store.find_gates()
    assert (first.run, second.run) == (OTHER, RUN), "longest open first"
    assert (second.node, second.workflow, second.opened, second.title) == ("sign", "w", 40, "Sign")
    assert (second.assign, second.due) == ({"to": ["ann"]}, 900)
    assert store.find_gates(GateQuery(run=RUN)) == [second]
    assert store.find_gates(GateQuery(limit=1)) == [first]
    assert store.commit(Batch([commit(2, effects=(f.NoteGate(TOKEN, "ann"),))]), fence) == []
    assert [(row.run, row.claimed_by) for row in store.find_gates()] == [(OTHER, None), (RUN, "ann")]
    noted = [commit(2, effects=(f.NoteGate(TOKEN, "bob"),)), commit(2, effects=(f.NoteGate(TOKEN),))]
    store.commit(Batch(noted), fence)
    assert store.find_gates(GateQuery(run=RUN)) == [second], "given back"
    assert store.commit(Batch([commit(2, effects=(f.CloseGate(TOKEN),))]), fence) == []
    assert store.find_gates(GateQuery(run=RUN)) == []


def test_a_claim_in_the_transaction_that_opens_or_closes_the_gate_is_part_of_it(store: Any) -> None:
    fence = store.held()
    store.commit(begin(RUN, f.OpenGate(TOKEN, "n"), f.NoteGate(TOKEN, "ann")), fence)
    assert [row.claimed_by for row in store.find_gates()] == ["ann"]
    store.commit(Batch([commit(1, effects=(f.NoteGate(TOKEN, "bob"), f.CloseGate(TOKEN)))]), fence)
    assert store.find_gates() == []
    store.commit(Batch([commit(1, effects=(f.NoteGate(TOKEN, "eve"), f.OpenGate(TOKEN, "n")))]), fence)
    assert [row.claimed_by for row in store.find_gates()] == [None], "a gate that opens again is nobody's"


def test_a_gate_whose_visit_has_another_node_now_is_found_there(store: Any) -> None:
    fence = store.held()
    store.commit(begin(RUN, f.OpenGate(TOKEN, "approve")), fence)
    moved = f.MovedGate("Review", 40, "Sign", {"to": ["ann"]}, 900)
    notes = [f.NoteGate(TOKEN, "eve"), f.NoteGate(TOKEN, "ann", moved=moved), f.NoteGate(TOKEN, "bob")]
    store.commit(Batch([commit(1, effects=(note,)) for note in notes]), fence)
    [row] = store.find_gates(GateQuery(node="Review", text="review"))
    assert (row.node, row.claimed_by) == ("Review", "bob")
    assert store.find_gates(GateQuery(node="approve")) == store.find_gates(GateQuery(text="approve")) == []


def test_the_gate_of_a_run_says_what_may_be_done(store: Any) -> None:
    fence = store.held()
    store.commit(begin(RUN, f.OpenGate(RUN_GATE, "", "out of time"), f.OpenGate(TOKEN, "n")), fence)
    runs, visits = store.find_gates()
    assert (runs.visit, runs.node, runs.title, runs.can) == (0, "", "out of time", ("extend", "abort"))
    assert visits.can[0] == "answer"


def test_the_end_of_a_run_closes_its_gates(store: Any) -> None:
    fence = store.held()
    store.commit(begin(RUN, f.OpenGate(TOKEN, "n")), fence)
    store.commit(begin(OTHER, f.OpenGate(TOKEN, "n")), fence)
    store.commit(Batch([commit(1, e.RunCancelled(2, 5, "ann"), status=RunStatus.CANCELLED)]), fence)
    assert [row.run for row in store.find_gates()] == [OTHER]


def ask(store: Any, *gates: tuple[int, int, str | None, Any, int | None], run: RunId = RUN) -> None:
    """Opens gates of a run at once: (token, opened, title, assign, due)."""
    events, effects = [], []
    for number, (token, opened, title, assign, due) in enumerate(gates, 2):
        events.append(e.GateOpened(number, opened, TokenId(token), None, title, None, assign, due))
        effects.append(f.OpenGate(TokenId(token), f"node{token}"))
    begun = commit(0, started(run), *events, run=run, effects=tuple(effects))
    store.commit(Batch([begun]), store.held())


def found(store: Any, **conditions: Any) -> list[tuple[str, int]]:
    return [(row.run, row.token) for row in store.find_gates(GateQuery(**conditions))]


def test_gates_are_found_by_the_people_they_ask(store: Any) -> None:
    people = {"users": ["ann"], "groups": ["finance"], "quorum": {"of": 2, "accept": 2}}
    lists = (None, "ann", ["bob", "finance"], people, {"users": ["finance"]}, {"groups": ["users"]})
    ask(store, *((number, number, None, assign, None) for number, assign in enumerate(lists, 1)))
    ann, bob = Person("ann", ("finance",)), Person("bob")
    assert found(store, mine=ann) == [(RUN, 2), (RUN, 3), (RUN, 4)]
    assert found(store, mine=bob) == [(RUN, 3)]
    assert found(store, mine=Person("finance")) == [(RUN, 3), (RUN, 5)], "a user, or a plain name"
    assert found(store, mine=Person("users")) == found(store, mine=Person("quorum")) == [], "words that are no names"
    assert found(store, assignee="finance") == [(RUN, 3), (RUN, 4), (RUN, 5)]
    assert found(store, assignee="finance", mine=bob) == [(RUN, 3)]
    notes = (f.NoteGate(TokenId(1), "bob"), f.NoteGate(TokenId(2), None, {"groups": ["board"]}, reminded=2))
    store.commit(Batch([commit(7, effects=notes)]), store.held())
    assert found(store, mine=bob) == [(RUN, 1), (RUN, 3)], "what they have claimed"
    assert found(store, mine=Person("eve", ("board",))) == [(RUN, 2)], "whom it was escalated to"
    assert found(store, assignee="bob") == [(RUN, 1), (RUN, 3)]
    assert found(store, assignee="board") == [(RUN, 2)]


def test_lists_show_how_far_a_gate_is(store: Any) -> None:
    ask(store, (1, 10, "Sign", "ann", None))
    note = f.NoteGate(TokenId(1), "ann", ["eve"], reminded=3, commented=2, answered=1)
    store.commit(Batch([commit(2, effects=(f.NoteGate(TokenId(1), "bob"), note))]), store.held())
    (row,) = store.find_gates()
    assert (row.claimed_by, row.escalated, row.reminded, row.commented, row.answered) == ("ann", ["eve"], 3, 2, 1)
    assert row.assign == "ann"
    opened = e.GateOpened(3, 20, TokenId(1), None, "Again", None, "bob", None)
    store.commit(Batch([commit(2, opened, effects=(f.OpenGate(TokenId(1), "n"),))]), store.held())
    (row,) = store.find_gates()
    assert (row.title, row.claimed_by, row.escalated, row.reminded, row.commented, row.answered) == (
        "Again",
        *(None, None, 0, 0, 0),
    ), "a gate that opens again begins anew"


def test_gates_are_found_by_place_time_and_words(store: Any) -> None:
    ask(store, (1, 10, "Sign the ÄPFEL order", None, 100), (2, 20, None, None, 300), (3, 30, "50% off_", None, None))
    assert found(store, run=RUN, token=TokenId(2)) == found(store, node="node2") == [(RUN, 2)]
    assert found(store, workflow="other") == found(store, run=OTHER) == []
    assert found(store, workflow="w", workflows=("x", "w*")) == [(RUN, 1), (RUN, 2), (RUN, 3)]
    assert found(store, workflows=("x/*",)) == []
    assert found(store, overdue_at=100) == []
    assert found(store, overdue_at=101) == [(RUN, 1)]
    assert found(store, text="äpfel") == [(RUN, 1)]
    assert found(store, text="NODE3") == found(store, text="50% OFF_") == [(RUN, 3)]
    assert found(store, text="5_% off") == [], "nothing is a pattern"
    assert found(store, text=RUN.upper()) == [(RUN, 1), (RUN, 2), (RUN, 3)]


def test_a_walk_through_gates_neither_repeats_nor_skips(store: Any) -> None:
    ask(store, *((number, 10 + number // 3, None, "ann", None) for number in range(1, 8)))
    ask(store, *((number, 10 + number // 3, None, ["ann"], None) for number in range(1, 5)), run=OTHER)
    everything = [row.place for row in store.find_gates()]
    assert everything == sorted(everything)
    assert len(everything) == 11
    for limit in (1, 2, 5):
        walked: list[Any] = []
        while page := store.find_gates(
            GateQuery(after=walked[-1] if walked else None, limit=limit, mine=Person("ann"))
        ):
            walked += [row.place for row in page]
            if len(walked) == limit:  # the last one of the page is answered meanwhile
                gone = TokenId(page[-1].token)
                seq = 8 if page[-1].run == RUN else 5
                store.commit(Batch([commit(seq, run=page[-1].run, effects=(f.CloseGate(gone),))]), store.held())
        assert walked == everything
        everything = [row.place for row in store.find_gates()]
