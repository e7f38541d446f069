"""The contract of what a server keeps, for every store there is: compared documents, logs and their chain, notes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import apsw
import asyncpg
import pytest

from tests.contract.making import Opener
from tests.postgres import Database
from treadle.errors import StoreConflict, StoreDamaged
from treadle.runtime.operate.fsck import check_store
from treadle.store.postgres import PostgresStore
from treadle.store.service import Changes, DocumentChange, Entry, Note


def said(*texts: str, log: str = "audit", at: int = 0) -> Changes:
    """Entries of a log, each about its own first letter."""
    return Changes(entries=[Entry(log, text[:1], {"text": text}, at) for text in texts])


def heard(store: Any, log: str = "audit", **given: Any) -> list[str]:
    return [entry.body["text"] for entry in store.entries(log, **given)]


# Documents


def test_a_document_changes_only_from_the_version_that_was_seen(store: Any) -> None:
    assert store.put_document("_key", "k", "h1", {"v": 1}, expected=0).version == 1
    with pytest.raises(StoreConflict, match="STALE_VERSION: _key 'k' has version 1, the change saw 0"):
        store.put_document("_key", "k", "h2", {"v": 2}, expected=0)
    with pytest.raises(StoreConflict, match="has version 0, the change saw 3"):
        store.put_document("_key", "other", "h2", {"v": 2}, expected=3)
    assert store.put_document("_key", "k", "h2", {"v": 2}, expected=1).version == 2
    assert store.put_document("_key", "k", "h2", {"v": 2}, expected=2).version == 2, (
        "the same content is the same version"
    )
    (kept,) = store.documents("_key")
    assert (kept.version, kept.body) == (2, {"v": 2})


def test_a_name_that_was_ended_can_begin_again_as_if_it_were_new(store: Any) -> None:
    store.put_document("_key", "k", "h1", {"v": 1}, expected=0)
    assert store.put_document("_key", "k", "", None, expected=1).version == 2
    assert store.documents("_key") == []
    assert store.put_document("_key", "k", "h1", {"v": 1}, expected=0).version == 3


def test_documents_entries_and_notes_are_written_together(store: Any) -> None:
    written = store.write(
        Changes(
            documents=[DocumentChange("_hook", "b", "h", {"n": 1}, 0), DocumentChange("_hook", "a", "h", {"n": 2})],
            entries=[Entry("audit", "me", {"did": [1, None]}, 5), Entry("delivery:hook", "b", "x", 6)],
            notes=[Note("n1", {"status": 201}, 7)],
        )
    )
    assert [(one.name, one.version) for one in written.documents] == [("b", 1), ("a", 1)], "in the order given"
    assert [(one.log, one.subject, one.at, one.body) for one in written.entries] == [
        ("audit", "me", 5, {"did": [1, None]}),
        ("delivery:hook", "b", 6, "x"),
    ]
    assert store.entries("audit") == written.entries[:1]
    assert store.entries("delivery:hook") == written.entries[1:]
    assert store.note("n1") == Note("n1", {"status": 201}, 7)
    assert store.note("n2") is None


@pytest.mark.parametrize(
    ("refused", "kind"),
    [
        (Changes(notes=[Note("new", 1, 0), Note("known", 2, 0)]), "DUPLICATE"),
        (Changes(notes=[Note("new", 1, 0), Note("new", 2, 0)]), "DUPLICATE"),
        (Changes(notes=[Note("new", 1, 0)], documents=[DocumentChange("_k", "doc", "x", 1, 7)]), "STALE_VERSION"),
        (
            Changes(
                documents=[DocumentChange("_k", "new", "x", 1, 0), DocumentChange("_k", "doc", "x", 1, 0)],
                entries=[Entry("audit", "a", 1, 0)],
                forgotten=["known"],
                removed=[("_k", "gone")],
            ),
            "STALE_VERSION",
        ),
    ],
    ids=["a known note", "a note twice", "another version", "a document that exists"],
)
def test_a_write_that_is_refused_has_written_nothing(store: Any, refused: Changes, kind: str) -> None:
    kept = Changes(
        notes=[Note("known", 1, 0)],
        documents=[DocumentChange("_k", "doc", "h", 1), DocumentChange("_k", "gone", "h", 1)],
    )
    store.write(kept)
    with pytest.raises(StoreConflict) as conflict:
        store.write(refused)
    assert conflict.value.kind == kind
    assert store.note("new") is None
    assert store.note("known") == Note("known", 1, 0)
    assert [one.name for one in store.documents("_k")] == ["doc", "gone"]
    assert store.entries("audit") == []


def test_a_note_makes_room_for_its_successor(store: Any) -> None:
    store.write(Changes(notes=[Note("k", "old", 1), Note("other", "o", 9)]))
    store.write(Changes(forgotten=["k"], notes=[Note("k", "new", 2)]))
    assert store.note("k") == Note("k", "new", 2)
    assert store.drop_notes(9) == 1
    assert store.note("k") is None
    assert store.note("other") is not None


def test_a_document_that_is_removed_leaves_nothing(store: Any) -> None:
    store.put_document("_session", "s", "h1", 1)
    store.put_document("_session", "s", "h2", 2)
    store.write(Changes(removed=[("_session", "s")]))
    assert store.documents("_session") == []
    assert store.put_document("_session", "s", "h1", 1, expected=0).version == 1


# Logs


def test_entries_are_listed_from_both_ends(store: Any) -> None:
    for text in ("a1", "b1", "a2", "b2", "a3"):
        store.write(said(text, log="delivery:hook"))
    numbers = [entry.id for entry in store.entries("delivery:hook", after=0)]
    assert numbers == sorted(set(numbers))
    assert heard(store, "delivery:hook") == ["a3", "b2", "a2", "b1", "a1"]
    assert heard(store, "delivery:hook", limit=2) == ["a3", "b2"]
    assert heard(store, "delivery:hook", limit=0) == []
    assert heard(store, "delivery:hook", before=numbers[3], limit=2) == ["a2", "b1"]
    assert heard(store, "delivery:hook", after=0, limit=2) == ["a1", "b1"]
    assert heard(store, "delivery:hook", after=numbers[1]) == ["a2", "b2", "a3"]
    assert heard(store, "delivery:hook", after=numbers[1], before=numbers[4]) == ["a2", "b2"]
    assert heard(store, "delivery:hook", subject="a") == ["a3", "a2", "a1"]
    assert heard(store, "delivery:hook", subject="a", before=numbers[4]) == ["a2", "a1"]
    assert heard(store, "delivery:hook", subject="b", after=numbers[1]) == ["b2"]
    assert heard(store, "another") == []


def test_an_entry_of_a_delivery_can_be_revised_and_one_of_the_audit_cannot(store: Any) -> None:
    (entry,) = store.write(said("sent", log="delivery:hook", at=3)).entries
    assert store.revise("delivery:hook", entry.id, {"text": "arrived"}) is True
    assert store.revise("delivery:hook", entry.id + 1, {"text": "?"}) is False
    (kept,) = store.entries("delivery:hook")
    assert (kept.id, kept.subject, kept.at, kept.body) == (entry.id, "s", 3, {"text": "arrived"})
    store.write(said("done"))
    with pytest.raises(ValueError, match="chained"):
        store.revise("audit", 1, {"text": "never"})


@pytest.mark.parametrize("log", ["audit", "delivery:hook"])
def test_the_oldest_entries_are_pruned_and_their_numbers_are_not_used_again(store: Any, log: str) -> None:
    for at in range(6):
        store.write(said(f"n{at}", log=log, at=at * 10))
    assert store.prune(log, 35, keep=5) == 1
    assert heard(store, log, after=0) == ["n1", "n2", "n3", "n4", "n5"]
    assert store.prune(log, 35) == 3
    assert heard(store, log, after=0) == ["n4", "n5"]
    assert store.prune(log, 35) == 0
    last = store.entries(log)[0].id
    assert store.prune(log, 1_000) == 2
    assert heard(store, log) == []
    assert store.write(said("next", log=log)).entries[0].id > last
    assert store.verify_log("audit").ok
    assert store.prune("nothing there", 1_000) == 0


def test_the_audit_is_a_chain_with_a_count(store: Any) -> None:
    assert store.verify_log("audit").ok
    first = store.write(said("a", "b")).entries
    assert [entry.id for entry in first] == [1, 2]
    assert len({entry.hash for entry in first}) == 2
    store.write(said("c"))
    verdict = store.verify_log("audit")
    assert (verdict.ok, verdict.count, verdict.checked) == (True, 3, 3)
    assert verdict.hash == store.entries("audit")[0].hash
    store.write(said("other", log="delivery:hook"))
    assert store.verify_log("audit").count == 3, "logs are numbered apart"


# What somebody does to a database behind our back

DAMAGE = {
    "changed": ("UPDATE log_entries SET at = at + 1 WHERE id = 2", "entry 2 has been changed"),
    "about another": ("UPDATE log_entries SET subject = 'x' WHERE id = 2", "entry 2 has been changed"),
    "removed": ("DELETE FROM log_entries WHERE id = 2", "entry 2 is missing: the next one is 3"),
    "tail removed": ("DELETE FROM log_entries WHERE id = 3", "the entries end at 2, and there have been 3"),
    "first removed": ("DELETE FROM log_entries WHERE id = 1", "entry 1 is missing"),
    "count lowered": ("UPDATE log_heads SET count = 2", "entry 3 is there, and only 2 have been counted"),
    "head removed": ("DELETE FROM log_heads", "entry 1 is there, and only 0 have been counted"),
    "tail and count": (
        "UPDATE log_heads SET count = 2; DELETE FROM log_entries WHERE id = 3",
        "the hash of entry 2 is not the one that was kept apart",
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_tampered_audit_is_noticed_in_a_file(opened: Opener, place: Path, name: str) -> None:
    store = opened()
    store.write(said("a", "b", "c"))
    sql, problem = DAMAGE[name]
    tampering = apsw.Connection(str(place))
    tampering.execute(sql)
    tampering.close()
    assert any(problem in found for found in store.verify_log("audit").problems), store.verify_log("audit")


@pytest.mark.parametrize("name", DAMAGE)
def test_a_tampered_audit_is_noticed_in_a_database(database: Database, runner: asyncio.Runner, name: str) -> None:
    sql, problem = DAMAGE[name]

    async def play() -> list[str]:
        store = await database.open(payload_max=200)
        await store.write(said("a", "b", "c"))
        connection = await asyncpg.connect(database.dsn)
        await connection.execute(sql)
        verdict = await store.verify_log("audit")
        await connection.execute("TRUNCATE log_entries, log_heads")
        await connection.close()
        await store.close()
        return verdict.problems

    assert any(problem in found for found in runner.run(play()))


def test_fsck_names_damaged_entries_notes_and_a_broken_chain(
    opened: Opener, place: Path, runner: asyncio.Runner
) -> None:
    store = opened()
    store.write(Changes(entries=said("a", "b").entries, notes=[Note("k", "answer", 1)]))
    tampering = apsw.Connection(str(place))
    tampering.execute("UPDATE log_entries SET body = CAST(body || x'00' AS BLOB) WHERE id = 1")
    tampering.execute("UPDATE notes SET body = CAST(body || x'00' AS BLOB)")
    tampering.close()
    report = runner.run(check_store(store.store))
    assert sorted(finding.check for finding in report.findings) == ["checksum", "checksum", "log"]
    assert heard(store) == ["b"], "a damaged entry is left out"
    with pytest.raises(StoreDamaged):
        store.note("k")


def test_writers_at_the_same_moment_make_one_chain(database: Database, runner: asyncio.Runner) -> None:
    async def play() -> None:
        stores = [await database.open(payload_max=200), await PostgresStore.open(database.dsn)]
        writes = [
            stores[number % 2].write(
                Changes(
                    entries=said(f"n{number}").entries,
                    documents=[DocumentChange("_k", f"d{number % 3}", f"h{number}", number)],
                    notes=[Note(f"note{number}", 1, 0)],
                )
            )
            for number in range(40)
        ]
        written = await asyncio.gather(*writes)
        assert sorted(one.entries[0].id for one in written) == list(range(1, 41))
        verdict = await stores[0].verify_log("audit")
        assert (verdict.ok, verdict.count) == (True, 40)
        seen = await asyncio.gather(
            *(stores[n % 2].put_document("_k", "one", f"h{n}", n, expected=0) for n in range(8)), return_exceptions=True
        )
        assert sum(not isinstance(one, BaseException) for one in seen) == 1, "one of them is first"
        assert all(isinstance(one, StoreConflict) for one in seen if isinstance(one, BaseException))
        for store in stores:
            await store.close()

    runner.run(play())
