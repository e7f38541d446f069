"""The contract of queue work (`store.work`), for every store that has it: what is offered, claimed, lost, withdrawn."""

from __future__ import annotations

import pytest

from tests.contract.making import OTHER, RUN, commit
from tests.contract.shop import Shop
from treadle.model import events as e
from treadle.model.effects import HoldWork, OfferWork, Slot, WithdrawWork
from treadle.model.ids import TokenId
from treadle.model.states import RunStatus
from treadle.store.port import Batch, Commit
from treadle.store.rows import SHARD
from treadle.store.work import Claim, Claimed, WorkStore


def test_the_port_is_small_and_every_store_has_it(shop: Shop) -> None:
    assert isinstance(shop.store, WorkStore)
    assert len([name for name in vars(WorkStore) if not name.startswith("_")]) <= 9


def test_what_is_claimed_is_what_was_offered(shop: Shop) -> None:
    offer = OfferWork(
        TokenId(7), 2, "n", {"big": "x" * 500}, "q", '"k"', "w", 3, "root.a.0", 1, 4, {"index": 0}, Slot("w/n", 2, "k")
    )
    shop.decide(offer)
    (claimed,) = shop.take(worker="ann")
    assert claimed == Claimed(RUN, offer, "ann", 1)
    assert claimed.holder == "ann#1"
    assert shop.outbox(SHARD) == []


def test_an_offer_is_claimed_once(shop: Shop) -> None:
    shop.offer("k")
    assert shop.taken(5) == ["k"]
    assert shop.taken(5, worker="bob") == []


def test_which_queues_have_something_to_claim(shop: Shop) -> None:
    shop.offer("k", queue="gpu")
    shop.offer("k", "k", queue="cpu")
    assert shop.waiting_queues() == ["cpu", "gpu"]
    shop.take(queue="gpu")
    assert shop.waiting_queues() == ["cpu"]


def test_a_queue_gives_its_own_work_only(shop: Shop) -> None:
    shop.offer("k", queue="gpu")
    assert shop.taken(queue="cpu") == []
    assert shop.taken(queue="gpu") == ["k"]


def test_a_claim_that_ran_out_is_the_owners_to_decide(shop: Shop) -> None:
    shop.offer("k")
    (claimed,) = shop.take(ttl_ms=1_000)
    assert shop.expired_claims([SHARD]) == []
    shop.pass_time(1_001)
    assert shop.taken() == [], "nobody takes it before its owner has said so"
    (expired,) = shop.expired_claims([SHARD])
    assert (expired.claim, expired.attempt, expired.recovery, expired.worker) == (claimed.claim, 1, 0, "ann")
    assert shop.expired_claims([SHARD + 1]) == []


def test_offered_again_it_is_another_claim_at_its_old_place_in_the_line(shop: Shop) -> None:
    shop.offer("k", "k")
    (first,) = shop.take()
    shop.decide(OfferWork(first.offer.token, 1, "n", None, "q", "k", "w", 1, "root", recovery=1))
    assert shop.renew("ann", [first.claim], 60_000) == [first.claim], "it is not hers any more"
    (again,) = shop.take(worker="ann")
    assert (again.offer.token, again.offer.recovery, again.number) == (first.offer.token, 1, 2)
    assert again.holder != first.holder


def test_the_claims_of_a_buried_worker_have_run_out(shop: Shop) -> None:
    shop.offer("k", "k")
    hers, his = shop.take(worker="ann"), shop.take(worker="bob")
    shop.bury("ann")
    assert [expired.claim for expired in shop.expired_claims([SHARD])] == [one.claim for one in hers]
    assert shop.renew("bob", [one.claim for one in his], 60_000) == []


def test_renewing_keeps_a_claim_alive_also_one_that_ran_out_unnoticed(shop: Shop) -> None:
    shop.offer("k", "k")
    claimed = shop.take(2, ttl_ms=1_000)
    shop.pass_time(5_000)
    assert shop.renew("ann", [claimed[0].claim], 60_000) == []
    assert [expired.claim for expired in shop.expired_claims([SHARD])] == [claimed[1].claim]


def test_nobody_renews_what_is_somebody_elses_or_over(shop: Shop) -> None:
    shop.offer("k", "k")
    hers, gone = shop.take(2)
    shop.finish(gone)
    assert shop.renew("bob", [hers.claim], 60_000) == [hers.claim]
    assert shop.renew("ann", [hers.claim, gone.claim, Claim(OTHER, TokenId(9), 1)], 60_000) == [
        gone.claim,
        Claim(OTHER, TokenId(9), 1),
    ]


def test_what_is_given_back_is_on_offer_again_and_keeps_its_place(shop: Shop) -> None:
    shop.offer("k", "k")
    (claimed,) = shop.take()
    shop.give_back([claimed.claim])
    (again,) = shop.take(worker="bob")
    assert again.offer == claimed.offer
    shop.give_back([claimed.claim])  # a claim of the past
    assert shop.renew("bob", [again.claim], 60_000) == []


def test_what_a_worker_does_not_know_it_has_is_on_offer_again(shop: Shop) -> None:
    shop.offer("k", "k", "k")
    known, stray = shop.take(2)
    (other,) = shop.take(worker="bob")
    shop.give_back_strays("ann", [known.claim])
    (again,) = shop.take(2, worker="bob")
    assert (again.offer, again.number) == (stray.offer, 2)
    assert shop.renew("ann", [known.claim], 60_000) == shop.renew("bob", [other.claim], 60_000) == []
    shop.give_back_strays("ann", [])
    assert shop.taken(5) == ["k"]


def test_only_the_newest_claim_drops_an_offer(shop: Shop) -> None:
    shop.offer("k")
    (old,) = shop.take()
    shop.give_back([old.claim])
    shop.drop_offers([old.claim])
    (new,) = shop.take(worker="bob")
    shop.drop_offers([new.claim])
    assert shop.queue_rows() == []


def test_withdrawn_work_is_gone_claimed_or_not(shop: Shop) -> None:
    shop.offer("k", "k")
    (claimed,) = shop.take()
    shop.decide(WithdrawWork(TokenId(1)), WithdrawWork(TokenId(2)), WithdrawWork(TokenId(99)))
    assert shop.taken() == []
    assert shop.renew("ann", [claimed.claim], 1) == [claimed.claim]


def test_offered_and_withdrawn_in_one_batch_is_nothing(shop: Shop) -> None:
    offer = shop.made("k")
    shop.decide(offer, WithdrawWork(offer.token))
    assert shop.taken() == []
    shop.decide(WithdrawWork(offer.token), offer)
    assert shop.taken() == ["k"]


def test_work_of_a_paused_run_stands_still(shop: Shop) -> None:
    shop.offer("k")
    shop.offer("other", run=OTHER)
    paused = e.RunPaused(2, 0, "ann")
    shop.commit(Batch([commit(1, paused, effects=(HoldWork(True),), status=RunStatus.PAUSED)]), shop.fence)
    assert shop.taken(5) == ["other"]
    late = OfferWork(TokenId(50), 1, "n", None, "q", "late", "w", 1, "root")
    shop.commit(Batch([Commit(RUN, 2, [], [late], RunStatus.PAUSED)]), shop.fence)
    assert shop.taken(5) == []
    assert [(row.waiting, row.claimed, row.held) for row in shop.queue_rows()] == [(0, 1, 2)]
    resumed = e.RunResumed(3, 1, "ann")
    shop.commit(Batch([commit(2, resumed, effects=(HoldWork(False),))]), shop.fence)
    assert sorted(shop.taken(5)) == ["k", "late"]


def test_a_refused_commit_offers_nothing(shop: Shop) -> None:
    with pytest.raises(Exception, match="is at 1"):
        shop.commit(Batch([Commit(RUN, 9, [], [shop.made("k")], RunStatus.RUNNING)]), shop.fence)
    assert shop.taken() == []


def test_forgetting_a_run_forgets_its_offers(shop: Shop) -> None:
    shop.offer("k", run=OTHER)
    done = e.RunCompleted(2, 0, None)
    shop.commit(Batch([commit(1, done, run=OTHER, status=RunStatus.COMPLETED)]), shop.fence)
    shop.forget([OTHER], shop.fence)
    assert shop.queue_rows() == []
