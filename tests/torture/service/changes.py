"""The operators among the tortured clients: they change runs that have failed, stand still or are under way.

Owns the workflows they change, the ways in which they do it, and what a run must give after each way. A change is sent
with an idempotency key until somebody answers; every second one to two servers at once, and every third once more
afterwards. Each answer goes into the journal.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

from tests.torture.service.asking import AGAIN_S, Answer, Asking

Json = Any
CHANGED, SPENDING, GATHERING = "changed", "spending", "gathering"
WAYS = (
    "forked",
    "branched",
    "edited",
    "skipped",
    "overtaken",
    "jumped",
    "supplied",
    "migrated",
    "raised",
    "gathered",
    "patched",
    "spread",
)
"""`branched`: a fork of a run that is under way. `overtaken`: a visit is skipped while a worker may complete it, and
one of the two is too late. `supplied`: `set_input`. `raised`: the budget. In the last three one branch of three has
failed and taken the others with it: it is tried again, it is skipped, or all three begin anew in a fork."""
FORKED = ("forked", "spread")
"""The ways that leave a run failed, and fork it."""
BRANCHES = 3
SOUND = ("branched", "overtaken", "raised")
"""The ways in which the data does not make the check fail."""


def answer_of(n: int) -> int:
    """What everybody who is asked about a number says."""
    return n * 2 + 1


def given_by(way: str, n: int) -> int:
    """The number that an operator gives instead of the one a run has."""
    return n + 1_000 * (1 + WAYS.index(way))


def wanted_of(way: str, n: int, is_taken: bool) -> Json:
    """What a run gives in the end: every node it still executes asks about the number once. `is_taken`: the skip of a
    visit that somebody works at was accepted."""
    own, asked = given_by(way, n), 3
    if way in ("gathered", "patched", "spread"):
        each = answer_of(answer_of(n))
        return [each, own if way == "patched" else each, each]
    if way in ("forked", "edited", "supplied"):
        n, asked = own, 2
    elif way == "skipped":
        n, asked = own, 1
    elif way in ("jumped", "raised"):
        asked = 2
    elif way == "overtaken" and is_taken:
        n, asked = own, 2
    for _ in range(asked):
        n = answer_of(n)
    return n


def definitions(queue: str) -> list[Json]:
    """A check that fails if the data says so; its second version, which does not ask; a run with a budget of one visit;
    and three checks beside each other, of which the second one fails."""

    def pull(**given: str) -> Json:
        work = {"queue": queue, "action": {"kind": "work", "name": "n"}, "input_mapping": given}
        return {**work, "output_mapping": {"state.n": "$.n"}}

    first = pull(n="$.input.n", good="$.input.good")
    first["output_mapping"] = {"state.n": "$.n", "state.good": "$.good"}
    last = pull(n="$.state.n")
    ways = [{"from": "a", "to": "check"}, {"from": "check", "to": "b"}]
    changed = {"workflow": CHANGED, "transitions": ways, "output": {"n": "$.state.n"}}
    strict = {"a": first, "check": pull(n="$.state.n", must="$.state.good"), "b": last}
    mild = {"a": first, "check": pull(n="$.state.n"), "b": last}
    spending = {
        "workflow": SPENDING,
        "budget": {"visits": 1},
        "nodes": {"a": pull(n="$.input.n"), "b": last},
        "transitions": [{"from": "a", "to": "b"}],
        "output": {"n": "$.state.n"},
    }
    merge = {"source": "_branch.output.n", "target": "state.all", "strategy": "append"}
    join = {"sibling_group": "fan", "on_branch_failure": "fail", "merge": merge}
    gathering = {
        "workflow": GATHERING,
        "nodes": {"a": first, "check": pull(n="$.state.n", must="$.state.good", index="$._branch.index"), "b": {}},
        "transitions": [
            {"id": "fan", "from": "a", "to": "check", "spawn_count": BRANCHES},
            {"from": "check", "to": "b", "synchronization": join},
        ],
        "output": {"n": "$.state.all"},
    }
    return [{**changed, "nodes": strict}, {**changed, "nodes": mild}, spending, gathering]


def start_of(way: str, key: str, n: int) -> Json:
    """The body of a start."""
    given = {"key": key, "n": n, "good": way in SOUND}
    workflow = {"raised": SPENDING, "gathered": GATHERING, "patched": GATHERING, "spread": GATHERING}.get(way, CHANGED)
    return {"workflow": workflow, "version": 1, "input": given}


class Operators:
    """See the module's docstring."""

    def __init__(self, asking: Asking, choose: random.Random) -> None:
        self._asking = asking
        self._choose = choose
        self._sent = 0

    async def change(self, way: str, run: str, n: int) -> list[str]:
        """Changes a run that was started for it; the forks that were made."""
        if way == "branched":
            return await self._fork(run, None, {})
        if way == "overtaken":
            visit = await self._visit(run, "node=a")
            output = {"n": given_by(way, n), "good": True}
            await self._send("skip", run, f"visits/{visit}/skip", {"output": output})
            return []
        await self._until(run, "paused" if way == "raised" else "failed")
        return await self._mend(way, run, given_by(way, n))

    async def _mend(self, way: str, run: str, own: int) -> list[str]:
        """What an operator does to a run that stands still."""
        state = {"state.n": own, "state.good": True}
        if way == "raised":
            await self._send("budget", run, "budget", {"visits": 1})
            return []
        visit = await self._visit(run, "status=failed")
        if way == "forked":
            return await self._fork(run, self._point(await self._past(run), visit), {"state": state})
        if way == "spread":
            return await self._fork(run, {"node": "check"}, {"state": {"state.good": True}})
        if way in ("skipped", "patched"):
            await self._send("skip", run, f"visits/{visit}/skip", {"output": {"n": own}})
        elif way == "jumped":
            await self._send("jump", run, f"visits/{visit}/jump", {"to": "b", "reason": "there is no time"})
        elif way == "supplied":
            await self._send("set_input", run, f"visits/{visit}/input", {"input": {"n": own, "must": True}})
            await self._retry(run, visit)
        elif way == "migrated":
            await self._send("migrate", run, "", {"runs": [run], "to": 2}, "/api/v1/migrations")
            await self._retry(run, visit)
        else:
            await self._retry(run, visit)  # nothing has changed: it fails again
            await self._until(run, "failed")
            writes = {"state.good": True} if way == "gathered" else state
            await self._send("edit", run, "edit", {"writes": writes})
            await self._retry(run, visit)
        return []

    def _point(self, past: Json, visit: int) -> Json:
        """Three names of the same point: before the work of the check."""
        done = next(row["seq"] for row in past if row["type"] == "token.completed")
        return self._choose.choice([{"node": "check"}, {"visit": visit}, done])

    async def _fork(self, run: str, at: Json, changes: Json) -> list[str]:
        """One fork, or two under two keys; what the run was before and is afterwards goes into the journal."""
        await self._past(run)
        forks = [
            await self._send("fork", run, "fork", {"at": at, "changes": changes})
            for _ in range(2 if self._choose.random() < 0.3 else 1)
        ]
        await self._past(run)
        return [fork.body["run"] for fork in forks if fork.status < 300]

    async def _retry(self, run: str, visit: int) -> None:
        await self._send("retry", run, "retry" if self._choose.random() < 0.5 else f"visits/{visit}/retry", {})

    async def _send(self, command: str, run: str, path: str, body: Json, instead: str = "") -> Answer:
        """One command under one key, however often it is sent."""
        self._sent += 1
        key = f"{command} {self._sent}"
        at_once = 2 if self._choose.random() < 0.5 else 1
        self._asking.journal.say(op="change", run=run, command=command, key=key)

        async def send() -> Answer:
            answer = await self._asking.ask(
                "operator", "POST", instead or f"/api/v1/runs/{run}/{path}", body, {"Idempotency-Key": key}
            )
            said = answer.body if isinstance(answer.body, dict) else {}
            self._asking.journal.say(
                sure=True,
                op="changed",
                command=command,
                run=run,
                key=key,
                status=answer.status,
                request=answer.request,
                replayed=answer.is_replayed,
                said=said.get("code"),
                fork=said.get("run") if command == "fork" else None,
                outcome=said["results"][0]["outcome"] if "results" in said else None,
            )
            return answer

        answers = await asyncio.gather(*(send() for _ in range(at_once)))
        return answers[0] if self._choose.random() < 0.7 else await send()

    async def _past(self, run: str) -> Json:
        """All events of a run, which go into the journal."""
        shown = await self._asking.ask("viewer", "GET", f"/api/v1/runs/{run}/history?limit=1000")
        self._asking.journal.say(sure=True, op="past", run=run, rows=shown.body["items"])
        return shown.body["items"]

    async def _visit(self, run: str, which: str) -> int:
        while True:
            shown = await self._asking.ask("viewer", "GET", f"/api/v1/runs/{run}/visits?{which}")
            if shown.status == 200 and shown.body["items"]:
                found: int = shown.body["items"][0]["visit"]
                return found
            await asyncio.sleep(AGAIN_S)

    async def _until(self, run: str, status: str) -> None:
        while True:
            shown = await self._asking.ask("viewer", "GET", f"/api/v1/runs/{run}")
            if shown.status == 200 and shown.body["status"] == status:
                return
            await asyncio.sleep(AGAIN_S)
