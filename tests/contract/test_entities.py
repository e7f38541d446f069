"""Entities on every store: records, addresses that lead to them, moves and positions, in and beside commits."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tests.contract.making import OTHER, RUN, begin, commit, started
from treadle.errors import StoreConflict
from treadle.model import effects as f
from treadle.model import events as e
from treadle.model.ids import RunId, TokenId
from treadle.model.references import EntityRef
from treadle.model.states import RunStatus
from treadle.store.entities import BY_HAND, CrowdRow, EntityChange, EntityQuery, EntityRow, MoveRow
from treadle.store.passages import passages
from treadle.store.port import Batch


def note(seq: int, at: int, event: str = "arrived", **given: Any) -> f.NoteMove:
    entity = given.pop("entity", EntityRef("1", "lead"))
    return f.NoteMove(seq, at, given.pop("workflow", "w"), entity, event, **given)


def entered(at: int = 0, **given: Any) -> f.NoteMove:
    return note(2, at, "entered", edge="->a", progress=0.0, **given)


def begun(run: RunId, at: int = 0, **given: Any) -> Batch:
    return begin(run, entered(at, **given), at=at)


def next_move(run: RunId, seq: int, *notes: f.NoteMove, status: RunStatus = RunStatus.RUNNING) -> Batch:
    events = [e.EntityMoved(seq + 1, notes[0].at, "arrived")]
    return Batch([commit(seq, *events, run=run, effects=notes, status=status)])


def places(store: Any, workflow: str = "w") -> list[tuple[str, str, int]]:
    counts: dict[tuple[str, str], int] = {}
    for row in store.crowds(workflow):
        counts[row.kind, row.place] = counts.get((row.kind, row.place), 0) + row.count
    return [(*place, count) for place, count in counts.items()]


def test_a_crowd_is_counted_by_the_state_of_its_runs(store: Any) -> None:
    fence = store.held()
    asked = f.OpenGate(TokenId(1), "a")
    store.commit(begun(RUN), fence)
    store.commit(begun(OTHER, entity=EntityRef("2", "lead")), fence)
    at_gate = (note(3, 5, node="a"), asked)
    store.commit(Batch([commit(1, e.EntityMoved(2, 5, "arrived"), run=RUN, effects=at_gate)]), fence)
    elsewhere = note(3, 6, node="b", completed_as="failure", entity=EntityRef("2", "lead"))
    store.commit(next_move(OTHER, 1, elsewhere, status=RunStatus.FAILED), fence)
    made = store.create_entity(EntityRow("lead", "3"))
    store.move_by_hand(MoveRow(made.key, "w", 7, BY_HAND, 0, event="moved", kind="node", place="a"))
    assert store.crowds("w") == [
        CrowdRow("node", "a", None, False, None, 1),
        CrowdRow("node", "a", "running", True, None, 1),
        CrowdRow("node", "b", "failed", False, "failure", 1),
    ]
    stands = {here.entity.id: (here.status, here.asks) for here in store.positions("w", None, None, 9)}
    assert stands == {"1": ("running", True), "2": ("failed", False), "3": (None, False)}
    (here,) = [one for one in store.positions("w", ("node", "a"), None, 9) if one.entity.id == "1"]
    assert (here.status, here.asks) == ("running", True)


def test_a_record_is_created_found_changed_and_deleted(store: Any) -> None:
    made = store.create_entity(EntityRow("lead", "a/1", name="Ann", email="Ann@x.org", attributes={"n": 1}, created=5))
    assert (made.type, made.id, made.name, made.attributes, made.key) == ("lead", "a/1", "Ann", {"n": 1}, "lead/a/1")
    assert store.entity_at("lead", "a/1") == made
    assert store.entity_at("lead", "2") is None
    patch = EntityChange(name="Bea", attributes={"n": None, "m": {"k": [1, None]}}, clear=("email",))
    changed = store.change_entity("lead", "a/1", patch, 9)
    assert (changed.name, changed.email, changed.attributes) == ("Bea", None, {"m": {"k": [1, None]}})
    assert (changed.created, changed.changed) == (5, 9)
    assert store.change_entity("lead", "a/1", EntityChange(name="Bea"), 12).changed == 9, "nothing is different"
    assert store.change_entity("lead", "2", patch, 9) is None
    assert store.delete_entity("lead", "a/1") is True
    assert store.delete_entity("lead", "a/1") is False
    assert store.find_entities(EntityQuery()) == []


def test_a_known_address_is_refused(store: Any) -> None:
    store.create_entity(EntityRow("lead", "1"))
    with pytest.raises(StoreConflict, match="DUPLICATE: there is an entity lead/1 already"):
        store.create_entity(EntityRow("lead", "1", name="Other"))
    store.create_entity(EntityRow("customer", "1"))


def test_a_start_makes_the_record_and_another_one_updates_it(store: Any) -> None:
    fence = store.held()
    store.commit(begun(RUN, 3, entity=EntityRef("1", "lead", "Ann", {"a": 1, "b": {"c": 1}})), fence)
    made = store.entity_at("lead", "1")
    assert (made.name, made.attributes, made.created) == ("Ann", {"a": 1, "b": {"c": 1}}, 3)
    store.commit(begun(OTHER, 7, entity=EntityRef("1", "lead", None, {"a": None, "b": {"d": 2}})), fence)
    again = store.entity_at("lead", "1")
    assert (again.name, again.attributes, again.created, again.changed) == ("Ann", {"b": {"c": 1, "d": 2}}, 3, 7)
    store.commit(next_move(RUN, 1, note(2, 9, node="a")), fence)
    assert store.entity_at("lead", "1") == again, "a move changes no record"
    assert [row.id for row in store.find_entities(EntityQuery())] == ["1"]


def test_a_refused_commit_leaves_no_move_and_no_record(store: Any) -> None:
    fence = store.held()
    store.commit(begun(RUN, 0), fence)
    with pytest.raises(StoreConflict, match="STALE_VERSION"):
        store.commit(next_move(RUN, 7, note(8, 9, node="b")), fence)
    other = Batch([commit(0, started(OTHER), run=OTHER, effects=(entered(5, entity=EntityRef("2", "lead")),))])
    with pytest.raises(StoreConflict):
        store.commit(Batch([*other.commits, *next_move(RUN, 7, note(8, 9, node="b")).commits]), fence)
    assert [row.id for row in store.find_entities(EntityQuery())] == ["1"]
    assert [move.place for move in store.journey("lead/1", None, 10)] == ["->a"]


def test_a_type_that_is_set_is_a_new_address_and_the_old_one_still_leads_there(store: Any) -> None:
    fence = store.held()
    store.commit(begun(RUN), fence)
    store.commit(next_move(RUN, 1, note(2, 5, "completed", node="win", set_type="customer")), fence)
    row = store.entity_at("customer", "1")
    assert (row.type, row.key, row.changed) == ("customer", "lead/1", 5)
    assert store.entity_at("lead", "1") == row
    with pytest.raises(StoreConflict, match="it is customer/1 now"):
        store.create_entity(EntityRow("lead", "1"))
    store.commit(begun(OTHER, 8), fence)
    assert store.entity_at("customer", "1").type == "customer", "a run that still calls it a lead changes nothing"
    assert len(store.journey("lead/1", None, 10)) == 3
    store.commit(next_move(OTHER, 1, note(2, 9, "moved", section="old", set_type="lead")), fence)
    assert store.entity_at("customer", "1").type == "lead", "back to a type it had"


def test_an_address_that_another_entity_has_is_not_taken(store: Any) -> None:
    fence = store.held()
    store.create_entity(EntityRow("customer", "1", name="First"))
    store.commit(begun(RUN), fence)
    store.commit(next_move(RUN, 1, note(2, 5, "completed", node="win", set_type="customer")), fence)
    assert store.entity_at("customer", "1").name == "First"
    assert store.entity_at("lead", "1").type == "lead"


def test_a_record_stays_while_a_run_about_it_is_live(store: Any) -> None:
    fence = store.held()
    store.commit(begun(RUN), fence)
    with pytest.raises(StoreConflict, match="INVALID_STATE: run r1 about lead/1 is not over"):
        store.delete_entity("lead", "1")
    assert store.live_runs_of("lead/1") == [RUN]
    assert store.live_runs_of("lead/1", "w") == [RUN]
    assert store.live_runs_of("lead/1", "other") == []
    over = e.RunCompleted(2, 9, None)
    store.commit(Batch([commit(1, over, status=RunStatus.COMPLETED)]), fence)
    assert store.live_runs_of("lead/1") == []
    assert store.delete_entity("lead", "1") is True
    assert store.journey("lead/1", None, 10) == []
    assert places(store) == []
    store.commit(begun(OTHER, 9), fence)
    assert store.entity_at("lead", "1").created == 9, "another entity begins"


def test_a_forgotten_run_leaves_its_moves(store: Any) -> None:
    fence = store.held()
    store.commit(begun(RUN), fence)
    store.commit(next_move(RUN, 1, note(2, 5, node="a"), status=RunStatus.COMPLETED), fence)
    store.forget([RUN], fence)
    assert store.runs() == []
    assert [(move.run, move.place) for move in store.journey("lead/1", None, 10)] == [(RUN, "->a"), (RUN, "a")]
    assert places(store) == [("node", "a", 1)]
    store.commit(begun(RUN), fence)
    assert len(store.journey("lead/1", None, 10)) == 2, "the same id and the same moment: the old move stays"


def test_positions_are_the_last_moves_whatever_order_they_were_written_in(store: Any) -> None:
    fence = store.held()
    store.commit(begun(RUN, 10), fence)
    store.commit(begun(OTHER, 4), fence)
    assert places(store) == [("edge", "->a", 1)]
    store.commit(next_move(OTHER, 1, note(2, 30, node="b")), fence)
    store.commit(next_move(RUN, 1, note(2, 20, node="a")), fence)
    assert places(store) == [("node", "b", 1)], "decided later, committed earlier"
    store.commit(next_move(RUN, 2, note(3, 40, workflow="v", section="s")), fence)
    assert [(move.workflow, move.place) for move in store.places_of(["lead/1"])] == [("v", "s"), ("w", "b")]
    (here,) = store.positions("w", None, None, 10)
    assert (here.entity.id, here.move.run, here.move.at) == ("1", OTHER, 30)
    assert store.positions("w", ("node", "a"), None, 10) == []
    assert len(store.positions("w", ("node", "b"), None, 10)) == 1


def test_a_move_by_hand_is_part_of_the_journey(store: Any) -> None:
    store.create_entity(EntityRow("lead", "1"))
    move = MoveRow("lead/1", "w", 5, RUN, 0, "moved", "section", "vip", by="ana", reason="called")
    made = store.move_by_hand(move)
    again = store.move_by_hand(move)
    assert (made.run, made.seq, again.seq) == ("", 1, 2)
    assert store.journey("lead/1", None, 10) == [made, again]
    assert store.journey("lead/1", made.order, 10) == [again]
    assert store.journey("lead/1", None, 1) == [made]
    assert places(store) == [("section", "vip", 1)]
    with pytest.raises(StoreConflict, match="NOT_FOUND"):
        store.move_by_hand(MoveRow("lead/2", "w", 5, RUN, 0, "moved", "section", "vip"))


def test_records_are_found_by_every_filter(store: Any) -> None:
    fence = store.held()
    for number in range(5):
        kind = "lead" if number % 2 else "order"
        store.create_entity(EntityRow(kind, f"Ü{number}", name=f"Ann {number}", email=f"{number}@X.org"))
    store.commit(begun(RUN, entity=EntityRef("Ü1", "lead")), fence)
    store.commit(next_move(RUN, 1, note(2, 5, "moved", section="vip", entity=EntityRef("Ü1", "lead"))), fence)

    def ids(**given: Any) -> list[str]:
        return [row.id for row in store.find_entities(EntityQuery(**given))]

    assert ids() == ["Ü4", "Ü3", "Ü2", "Ü1", "Ü0"]
    assert ids(type="lead") == ["Ü3", "Ü1"]
    assert ids(text="ANN 3") == ["Ü3"]
    assert ids(text="ü2") == ["Ü2"]
    assert ids(text="4@x.ORG") == ["Ü4"]
    assert ids(text="%") == []
    assert ids(workflow="w") == ids(section="vip") == ids(workflow="w", section="vip", type="lead") == ["Ü1"]
    assert ids(workflow="v", section="vip") == ids(section="other") == []
    first = store.find_entities(EntityQuery(limit=2))
    assert ids(before=first[-1].number, limit=2) == ["Ü2", "Ü1"]


@pytest.mark.parametrize("seed", range(6))
def test_every_store_counts_positions_and_conversion_as_the_plain_form_does(store: Any, seed: int) -> None:
    random = Random(seed)
    fence = store.held()
    seqs: dict[RunId, int] = {}
    for _ in range(120):
        run = RunId(f"r{random.randrange(12)}")
        about = EntityRef(str(int(run[1:]) % 5), "lead")
        at = random.randrange(200)
        if run not in seqs:
            store.commit(begun(run, at, entity=about, workflow=random.choice("wv")), fence)
            seqs[run] = 1
            continue
        where = random.choice([{"node": "a"}, {"node": "b"}, {"edge": "a->b"}, {"section": "s"}, {}])
        how = random.choice([None, None, None, "success", "failure"])
        more = note(seqs[run] + 1, at, "moved", entity=about, completed_as=how, workflow=random.choice("wv"), **where)
        store.commit(next_move(run, seqs[run], more), fence)
        seqs[run] += 1
    moves = [move for number in range(5) for move in store.journey(f"lead/{number}", None, 1_000)]
    for workflow in "wv":
        last: dict[str, MoveRow] = {}
        for move in sorted((move for move in moves if move.workflow == workflow), key=lambda move: move.order):
            last[move.key] = move
        crowds = places(store, workflow)
        assert sum(count for *_, count in crowds) == len(last)
        assert sorted(here.move.order for here in store.positions(workflow, None, None, 99)) == sorted(
            move.order for move in last.values()
        )
        for since in (0, 50, 120, 500):
            assert store.conversion(workflow, since) == passages(moves, workflow, since)
            held = {("node", "a"): "s", ("edge", "a->b"): "s", ("edge", "->a"): "t"}
            assert store.conversion(workflow, since, held) == passages(moves, workflow, since, held)
        stayed = [(p.kind, p.place, p.entered - p.left) for p in store.conversion(workflow, 0) if p.entered > p.left]
        assert stayed == crowds, "entered minus left is who is there"
