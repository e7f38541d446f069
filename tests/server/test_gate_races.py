"""Many people at once: every gate is answered once, claims have one holder, a quorum counts every person once."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest

from tests.server.client import Caller, Served
from tests.server.test_gates import asking

GATES, PEOPLE = 100, 50


@pytest.fixture(scope="module")
def crowds() -> dict[str, list[Caller]]:
    return {}


def crowd(served: Served, crowds: dict[str, list[Caller]]) -> list[Caller]:
    """Fifty people with keys of their own."""
    if served.url not in crowds:
        admin = served.as_("admin")
        bodies = [
            {"name": f"racer {number}", "user": f"racer{number}", "groups": ["racers"], "roles": ["approver"]}
            for number in range(PEOPLE)
        ]
        crowds[served.url] = [Caller(served.url, admin.post("/keys", body, status=201)["key"]) for body in bodies]
    return crowds[served.url]


def test_a_hundred_gates_and_fifty_racing_people(served: Served, crowds: dict[str, list[Caller]]) -> None:
    run, visits = asking(served, nodes=GATES, assign={"groups": ["racers"]})
    assert len(visits) == GATES
    people = crowd(served, crowds)

    def race(number: int) -> Counter[int]:
        order = visits[:]
        Random(number).shuffle(order)
        statuses: Counter[int] = Counter()
        for visit in order[: 2 * GATES // PEOPLE + 6]:
            reply = people[number].api("POST", f"/gates/{run}/{visit}/answer", {"data": {"by": number}})
            assert reply.status in (200, 409), reply
            statuses[reply.status] += 1
        return statuses

    with ThreadPoolExecutor(PEOPLE) as pool:
        statuses = sum(pool.map(race, range(PEOPLE)), Counter[int]())
    for gate in served.as_("viewer").get(f"/gates?run={run}&limit=1000")["items"]:
        answered = people[0].post(f"/gates/{run}/{gate['visit']}/answer", {"data": {"by": 0}}, status=200)
        assert answered["status"] == "completed"
        statuses[200] += 1
    assert statuses[200] == GATES, "each gate took one answer, and every other was refused"
    assert statuses[409] > 0, "people have raced"
    assert served.as_("viewer").get(f"/runs/{run}")["status"] == "completed"
    for visit in visits[:: GATES // 10]:
        gate = served.as_("viewer").get(f"/gates/{run}/{visit}")
        assert gate["answer"]["by"] == f"racer{gate['answer']['data']['by']}"


def test_of_people_who_claim_or_answer_at_once_one_wins(served: Served, crowds: dict[str, list[Caller]]) -> None:
    people = crowd(served, crowds)[:12]
    run, visits = asking(served, nodes=4)
    for visit in visits:

        def move(number: int, visit: int = visit) -> tuple[int, str, int]:
            verb = "claim" if number % 2 else "answer"
            body = {} if verb == "claim" else {"data": number}
            return number, verb, people[number].api("POST", f"/gates/{run}/{visit}/{verb}", body).status

        with ThreadPoolExecutor(len(people)) as pool:
            moves = list(pool.map(move, range(len(people))))
        claimed = [number for number, verb, status in moves if verb == "claim" and status == 200]
        answered = [number for number, verb, status in moves if verb == "answer" and status == 200]
        assert {status for _, _, status in moves} <= {200, 409}
        gate = served.as_("viewer").get(f"/gates/{run}/{visit}")
        assert len(claimed) + len(answered) == 1, "a claim keeps answers out, an answer ends the gate"
        if claimed:
            assert (gate["status"], gate["claimed_by"]) == ("open", f"racer{claimed[0]}")
        else:
            assert gate["answer"]["by"] == f"racer{answered[0]}"


def test_a_quorum_of_racing_people_counts_each_once(served: Served, crowds: dict[str, list[Caller]]) -> None:
    people = crowd(served, crowds)[:10]
    run, visits = asking(served, nodes=5, assign={"groups": ["racers"], "quorum": {"of": 10, "accept": 6}})
    for visit in visits:

        def vote(number: int, visit: int = visit) -> int:
            body = {"data": {"ok": number % 3 != 0}}
            replies = [people[number].api("POST", f"/gates/{run}/{visit}/answer", body).status for _ in range(2)]
            assert set(replies) <= {200, 409}
            return replies[0]

        with ThreadPoolExecutor(len(people)) as pool:
            statuses = list(pool.map(vote, range(len(people))))
        gate = served.as_("viewer").get(f"/gates/{run}/{visit}")
        people_said = [answer["by"] for answer in gate["answers"]]
        assert gate["status"] == "completed"
        assert gate["answer"]["data"] == {"ok": True}
        assert len(people_said) == len(set(people_said)) == statuses.count(200)
        assert sum(answer["data"] == {"ok": True} for answer in gate["answers"]) == 6, "it ends with the sixth"
    assert served.as_("viewer").get(f"/runs/{run}")["status"] == "completed"
