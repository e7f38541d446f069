"""The port's contract for queries, requests, documents, blobs and forgetting, for every store there is."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from msgspec.structs import replace

from tests.contract.making import ONE, OTHER, RUN, TOKEN, WORK, begin, commit, ended, request, started
from treadle.actions import blobs as actions_blobs
from treadle.model import effects as f
from treadle.model import events as e
from treadle.model.ids import RunId
from treadle.model.states import RunStatus
from treadle.store.port import Batch, InboxAnswer, RunQuery, RunRow
from treadle.store.rows import SHARD, digest_of

SIX = [RunId(f"q{i}") for i in range(6)]
BIG = "x" * 5_000


@pytest.fixture
def six(store: Any) -> Any:
    """q0 … q5, started at 0, 10, … 50; the odd ones are over, workflows alternate by three."""
    fence = store.held()
    for i, run in enumerate(SIX):
        first = started(
            run,
            at=i * 10,
            workflow=f"w{i // 3}",
            tags=("all", f"t{i % 2}"),
            entity=f"e{i % 3}",
            parent=SIX[0] if i == 4 else None,
        )
        status = RunStatus.COMPLETED if i % 2 else RunStatus.RUNNING
        store.commit(Batch([commit(0, first, run=run, status=status, busy=i == 2)]), fence)
    return store


@pytest.mark.parametrize(
    ("conditions", "found"),
    [
        ({}, [0, 1, 2, 3, 4, 5]),
        ({"run": SIX[3]}, [3]),
        ({"run": RunId("nobody")}, []),
        ({"workflow": "w1"}, [3, 4, 5]),
        ({"statuses": (RunStatus.COMPLETED,)}, [1, 3, 5]),
        ({"statuses": (RunStatus.COMPLETED, RunStatus.RUNNING, RunStatus.PAUSED)}, [0, 1, 2, 3, 4, 5]),
        ({"statuses": (RunStatus.FAILED,)}, []),
        ({"workflow": "w0", "statuses": (RunStatus.RUNNING,)}, [0, 2]),
        ({"run_ending": SIX[3][1:]}, [3]),
        ({"run_ending": SIX[3]}, [3]),
        ({"run_ending": SIX[3][:-1]}, []),
        ({"run_ending": f"%{SIX[3][1:]}"}, []),
        ({"tag": "t1"}, [1, 3, 5]),
        ({"tags": ("t1",)}, [1, 3, 5]),
        ({"tags": ("t1", "all")}, [1, 3, 5]),
        ({"tags": ("t1", "t0")}, []),
        ({"version": 1}, [0, 1, 2, 3, 4, 5]),
        ({"version": 2}, []),
        ({"text": "Q3"}, [3]),
        ({"text": "E2"}, [2, 5]),
        ({"text": "t1"}, [1, 3, 5]),
        ({"text": "%"}, []),
        ({"tag": "t"}, []),
        ({"entity": "order/e2"}, [2, 5]),
        ({"entity": "person/e2"}, []),
        ({"parent": SIX[0]}, [4]),
        ({"parents": (SIX[0], SIX[1])}, [4]),
        ({"parents": (SIX[1], SIX[2])}, []),
        ({"busy": True}, [2]),
        ({"busy": False, "workflow": "w0"}, [0, 1]),
        ({"started_from": 20}, [2, 3, 4, 5]),
        ({"started_until": 20}, [0, 1]),
        ({"started_from": 10, "started_until": 40, "tag": "t1"}, [1, 3]),
        ({"shard": SHARD, "limit": 2}, [0, 1]),
        ({"newest_first": True}, [5, 4, 3, 2, 1, 0]),
        ({"newest_first": True, "limit": 2, "after": SIX[4]}, [3, 2]),
        ({"limit": 2, "after": SIX[1]}, [2, 3]),
        ({"statuses": (RunStatus.COMPLETED,), "after": SIX[2]}, [3, 5]),
        ({"after": SIX[5]}, []),
        ({"after": RunId("nobody")}, []),
        ({"limit": 0}, []),
    ],
    ids=str,
)
def test_a_query_finds_the_runs_for_which_every_condition_holds(
    six: Any, conditions: dict[str, Any], found: list[int]
) -> None:
    assert six.runs(**conditions) == [SIX[i] for i in found]


def test_a_walk_goes_on_behind_a_run_that_was_forgotten(six: Any) -> None:
    first = six.find_runs(RunQuery(newest_first=True, limit=3))
    assert [row.run for row in first] == SIX[:2:-1]
    six.forget([SIX[3]])
    beyond = first[-1].number
    assert six.runs(newest_first=True, beyond=beyond) == SIX[2::-1]
    assert six.runs(beyond=beyond) == SIX[4:]


def test_a_row_says_what_is_known_without_folding(six: Any) -> None:
    (row,) = six.find_runs(RunQuery(run=SIX[4]))
    assert row.number > six.find_runs(RunQuery(run=SIX[3]))[0].number > 0
    assert [replace(row, number=0)] == [
        RunRow(
            SIX[4],
            "w1",
            1,
            RunStatus.RUNNING,
            1,
            started=40,
            changed=40,
            entity="order/e1",
            tags=("all", "t0"),
            parent=SIX[0],
        )
    ]


def test_deploying_the_same_again_gives_the_same_version(store: Any) -> None:
    assert store.put_document("workflow", "w", "h1", {"a": 1}).version == 1
    again = store.put_document("workflow", "w", "h1", {"a": 1})
    assert (again.version, again.hash, again.body) == (1, "h1", {"a": 1})
    assert store.put_document("workflow", "w", "h2", {"a": 2}).version == 2
    assert store.put_document("workflow", "w", "h1", {"a": 1}).version == 3, "only the newest is the same"
    assert [kept.version for kept in store.documents("workflow", "w")] == [3]
    assert [kept.body for kept in store.documents("workflow", "w", 2)] == [{"a": 2}]
    assert store.documents("workflow", "w", 4) == store.documents("workflow", "w", 0) == []
    assert store.documents("workflow", "nobody") == []


def test_of_what_an_engine_remembers_only_the_newest_is_kept(store: Any) -> None:
    store.put_document("_seen", "w", "h1", {"a": 1})
    assert store.put_document("_seen", "w", "h2", {"a": 2}).version == 2
    assert [kept.body for kept in store.documents("_seen", "w")] == [{"a": 2}]
    assert store.documents("_seen", "w", 1) == []


def test_documents_of_a_kind_are_listed_by_their_newest_version(store: Any) -> None:
    for name, hash in (("b", "1"), ("a", "1"), ("b", "2")):
        store.put_document("workflow", name, hash, {"hash": hash})
    store.put_document("schedule", "a", "9", {})
    assert [(kept.name, kept.version, kept.body) for kept in store.documents("workflow")] == [
        ("a", 1, {"hash": "1"}),
        ("b", 2, {"hash": "2"}),
    ]
    assert [kept.name for kept in store.documents("workflow", version=1)] == ["a", "b"]


def test_a_document_without_a_body_ends_its_name(store: Any) -> None:
    store.put_document("schedule", "s", "h", {"cron": "* * * * *"})
    assert store.put_document("schedule", "s", "gone", None).version == 2
    assert store.documents("schedule") == store.documents("schedule", "s") == []
    assert store.documents("schedule", "s", 2) == []
    assert len(store.documents("schedule", "s", 1)) == 1
    assert store.put_document("schedule", "s", "h", {}).version == 3
    assert len(store.documents("schedule")) == 1


def test_bytes_are_kept_once_under_their_digest(store: Any) -> None:
    content = b"\x00\xff" * 1_000
    digest = store.put_blob(RUN, content)
    assert digest == f"sha256:{hashlib.sha256(content).hexdigest()}"
    assert digest == actions_blobs.digest_of(content) == digest_of(content)
    assert store.put_blob(OTHER, content) == digest
    assert store.get_blob(digest) == content
    for unknown in ("sha256:" + "0" * 64, "sha256:zz", "md5:1", ""):
        assert store.get_blob(unknown) is None


def test_bytes_live_as_long_as_a_run_that_put_them(store: Any) -> None:
    fence = store.held()
    store.commit(ended(), fence)
    store.commit(ended(OTHER), fence)
    shared, own = store.put_blob(RUN, b"shared"), store.put_blob(RUN, b"own")
    store.put_blob(OTHER, b"shared")
    store.forget([RUN], fence)
    assert store.get_blob(own) is None
    assert store.get_blob(shared) == b"shared"
    store.forget([OTHER], fence, history=False)
    assert store.get_blob(shared) is None


def test_large_values_come_back_as_they_were(store: Any) -> None:
    fence = store.held()
    nested = {"scan": BIG, "small": 1, "pages": [BIG, {"deep": BIG + "y"}], "many": list(range(500))}
    events = [
        started(input=nested),
        e.ContextUpdated(2, 1, [(("state", "doc"), nested), (("state", "n"), 1)]),
        e.TokenCompleted(3, 2, TOKEN, BIG),
    ]
    effects = (f.RunTask(TOKEN, 1, "a", nested), f.Publish("x", {"small": True}))
    rows = store.commit(Batch([commit(0, *events, effects=effects)]), fence)
    assert store.history(RUN) == events
    assert store.outbox(SHARD) == rows
    assert [row.effect for row in rows] == list(effects)
    store.commit(Batch([commit(3, e.RunCompleted(4, 3, nested), status=RunStatus.COMPLETED)]), fence)
    store.forget([RUN], fence, history=False)
    assert store.history(RUN) == [events[0], e.RunCompleted(4, 3, nested)]


def test_a_forgotten_run_is_gone_with_everything_that_is_only_its(store: Any) -> None:
    fence = store.held()
    store.commit(begin(RUN, WORK, f.SetTimer(ONE, 5), f.OpenGate(TOKEN, "n"), key="k", tags=("t",)), fence)
    store.commit(ended(OTHER), fence)
    store.submit(request("a"))
    store.submit(request("b"))
    over = commit(1, e.RunCancelled(2, 5, "ann"), status=RunStatus.CANCELLED)
    store.commit(Batch([over], answers=[InboxAnswer("a")]), fence)
    store.forget([RUN, RunId("nobody")], fence)
    assert store.history(RUN) == store.outbox(SHARD) == store.timers(SHARD) == store.find_gates() == []
    assert store.runs() == [OTHER]
    assert store.runs(tag="t") == store.runs(workflow="w", idempotency_key="k") == []
    assert [kept.id for kept in store.inbox(SHARD)] == ["b"], "its sender learns that there is no such run"
    store.commit(begin(key="k"), fence)
    assert store.runs() == [OTHER, RUN]


def test_a_shortened_run_keeps_what_it_was_asked_and_how_it_ended(store: Any) -> None:
    fence = store.held()
    store.commit(begin(RUN, WORK, input={"q": 1}, key="k"), fence)
    store.commit(Batch([commit(1, e.Custom(2, 1, "x"), e.Custom(3, 1, "y"))]), fence)
    over = e.RunCompleted(5, 9, {"answer": 42})
    store.commit(Batch([commit(3, e.Custom(4, 8, "z"), over, status=RunStatus.COMPLETED)]), fence)
    for _ in range(2):
        store.forget([RUN], fence, history=False)
        assert store.history(RUN) == [started(input={"q": 1}, key="k"), over]
    assert store.history(RUN, after=1) == [over]
    (row,) = store.find_runs(RunQuery(workflow="w", idempotency_key="k"))
    assert (row.seq, row.status) == (5, RunStatus.COMPLETED)
    assert store.outbox(SHARD) == []


def test_a_run_that_is_not_over_cannot_be_forgotten(store: Any) -> None:
    fence = store.held()
    store.commit(begin(RUN, WORK), fence)
    for history in (True, False):
        store.forget([RUN], fence, history=history)
    assert store.runs() == [RUN]
    assert len(store.outbox(SHARD)) == 1


@pytest.mark.parametrize("value", [2**70, "\ud800"])
def test_a_batch_with_something_that_cannot_be_packed_changes_nothing(store: Any, value: Any) -> None:
    fence = store.held()
    good, bad = started(OTHER), e.Custom(2, 2, "x", value, TOKEN, 1)
    store.commit(begin(), fence)
    with pytest.raises((OverflowError, UnicodeEncodeError)):
        store.commit(Batch([commit(0, good, run=OTHER), commit(1, bad)]), fence)
    assert store.history(OTHER) == []
    assert [row.run for row in store.find_runs(RunQuery())] == [RUN]


def test_a_fork_has_started_when_it_was_forked_also_if_more_is_decided_in_the_same_batch(store: Any) -> None:
    forked = commit(0, started(at=10), e.RunForked(2, 500, RunId("origin"), 1, "operator"))
    later = commit(2, e.RunPaused(3, 900, "operator"), status=RunStatus.PAUSED)
    store.commit(Batch([replace(forked, cuts=[1]), later]), store.held())
    (row,) = store.find_runs(RunQuery())
    assert (row.started, row.changed) == (500, 900)
    assert store.runs(started_from=500, started_until=501) == [RUN]
