"""Claims, heartbeats, results and doubles from many clients while the serving engine is killed: nothing is lost, and no
result is accepted twice. The clients' journal is the judge."""

from __future__ import annotations

import random
import threading
import time
from http.client import HTTPException
from typing import Any

from tests.server.client import Caller, Reply, Served

RUNS, CLIENTS, KILLS = 90, 6, 3
DEADLINE_S = 120.0
FLOW = """
workflow: killed
nodes:
  n:
    queue: killed
    action: {kind: work, name: n}
    input: {n: $.input.n}
output: {by: $.nodes.n.output.by}
"""


class Journal:
    """What clients were told: run → answers that were accepted."""

    def __init__(self, served: Served) -> None:
        self.caller = Caller(served.url, served.keys["worker"])
        self.accepted: dict[str, set[str]] = {}
        self.over = threading.Event()
        self.lock = threading.Lock()

    def post(self, path: str, body: Any) -> Reply | None:
        """Until it is answered; None when the test is over."""
        while not self.over.is_set():
            try:
                reply = self.caller.api("POST", path, body)
            except (OSError, HTTPException):  # killed before, or in the middle of, its answer
                self.over.wait(0.1)
                continue
            if reply.status < 500:
                return reply
            self.over.wait(0.1)
        return None

    def work(self, name: str, draw: random.Random) -> None:
        """One client: claims, sometimes forgets what it has, and sends every result twice."""
        wanted = {"queues": ["killed"], "worker": name, "limit": 3, "lease_ms": 2_000, "wait_ms": 1_000}
        while not self.over.is_set():
            reply = self.post("/tasks/claim", wanted)
            for task in reply.json["tasks"] if reply is not None else ():
                if draw.random() < 0.1:
                    continue
                self.post(f"/tasks/{task['task']}/heartbeat", {"lease_ms": 2_000})
                mine = f"{name}/{draw.random()}"
                for _ in range(2):
                    told = self.post(f"/tasks/{task['task']}/complete", {"output": {"by": mine}})
                    if told is not None and told.status == 200:
                        with self.lock:
                            self.accepted.setdefault(task["run"], set()).add(mine)


def test_nothing_is_lost_or_accepted_twice_while_the_service_is_killed(own_service: Served) -> None:
    served = own_service.start()
    port = served.port
    try:
        served.deploy(FLOW)
        operator = served.as_("operator")
        runs = [operator.post("/runs", {"workflow": "killed", "input": {"n": n}})["run"] for n in range(RUNS)]
        journal = Journal(served)
        clients = [
            threading.Thread(target=journal.work, args=(f"c{n}", random.Random(n)), daemon=True) for n in range(CLIENTS)
        ]
        for client in clients:
            client.start()
        left, kills, until = set(runs), 0, time.monotonic() + DEADLINE_S
        while left and time.monotonic() < until:
            left -= {run for run in list(left)[:20] if served.as_("viewer").get(f"/runs/{run}")["status"] != "running"}
            if kills < KILLS:
                kills += 1
                served.kill()
                served.start(port)
        journal.over.set()
        for client in clients:
            client.join(30)
        assert not left, f"{len(left)} runs are lost"
        assert kills == KILLS
        for run in runs:
            shown = served.as_("viewer").get(f"/runs/{run}")
            assert shown["status"] == "completed", shown
            assert journal.accepted.get(run, {shown["output"]["by"]}) == {shown["output"]["by"]}, "told twice"
    finally:
        served.kill()
