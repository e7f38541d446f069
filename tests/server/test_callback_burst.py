"""Callbacks in a burst, each doubled and in any order: every one is applied once.

A thousand in the suite; `TREADLE_BURST=10000` says how many."""

from __future__ import annotations

import json
import os
import random
import threading
from collections import Counter
from contextlib import closing
from http.client import HTTPConnection

from tests.server.client import Connected, Worker

COUNT = int(os.environ.get("TREADLE_BURST", "1000"))
SENDERS = 16
FLOW = """
workflow: {name}
limits: {{max_tokens_per_run: {limit}, max_spawn_count: {limit}}}
nodes: {{a: {{}}, ask: {{action: {{kind: webhook, url: "{url}"}}, output_mapping: {{state.v: $.v}}}}, c: {{}}}}
transitions:
  - {{id: many, from: a, to: ask, spawn_count: {count}}}
  - from: ask
    to: c
    synchronization: {{sibling_group: many, merge: {{source: _branch.output.v, target: state.all, strategy: append}}}}
output: {{all: $.state.all}}
"""


def test_every_callback_of_a_burst_is_applied_once(connected: Connected) -> None:
    with Worker() as worker:
        limit = 3 * COUNT + 10
        connected.deploy(FLOW.format(name="burst", url=worker.url, count=COUNT, limit=limit))
        run = connected.as_("operator").post("/runs", {"workflow": "burst"})["run"]
        messages = [worker.next() for _ in range(COUNT)]
        letters = [(one["callback_token"], one["visit"]) for one in messages] * 2
        random.Random(7).shuffle(letters)
        answers = _sent(connected.port, letters)
        assert Counter(answers.values()) == {(True, False): COUNT}, "one of each pair was applied"
        view = connected.as_("viewer").get(f"/runs/{run}")
        assert view["status"] == "completed"
        assert sorted(view["output"]["all"]) == sorted(one["visit"] for one in messages)


def _sent(port: int, letters: list[tuple[str, int]]) -> dict[int, tuple[bool, ...]]:
    """Sends all letters, sixteen at a time: what each visit was answered, in order of `applied`."""
    todo, lock = iter(letters), threading.Lock()
    answers: dict[int, list[bool]] = {}

    def send() -> None:
        with closing(HTTPConnection("127.0.0.1", port, timeout=120)) as connection:
            while True:
                with lock:
                    letter = next(todo, None)
                if letter is None:
                    return
                token, visit = letter
                body = json.dumps({"status": "completed", "output": {"v": visit}})
                connection.request("POST", f"/callbacks/{token}", body, {"Content-Type": "application/json"})
                said = json.loads(connection.getresponse().read())
                with lock:
                    answers.setdefault(visit, []).append(said["applied"])

    threads = [threading.Thread(target=send) for _ in range(SENDERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {visit: tuple(sorted(said, reverse=True)) for visit, said in answers.items()}
