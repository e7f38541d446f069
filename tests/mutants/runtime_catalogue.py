"""The mistakes in the runtime, each a patch as in `catalogue`: what a durable engine must never do. Those of
leases and hand-over are in `lease_catalogue`."""

from __future__ import annotations

from tests.mutants.bug import Mutant


def bug(name: str, file: str, old: str, new: str) -> Mutant:
    return Mutant(name, file, old, new, "runtime")


RUNTIME_MUTANTS = [
    # Coordinator and committer
    bug(
        "client-is-told-before-the-decision-is-durable",
        "coordinate/coordinator.py",
        "        hot.unsettled += 1\n        commit = Commit(",
        "        hot.unsettled += 1\n"
        "        told = answer_to(item, rejection)\n"
        "        if item.future is not None and told is not None and not item.future.done():\n"
        "            item.future.set_result(told)\n"
        "        commit = Commit(",
    ),
    bug(
        "commit-compares-no-fences",
        "coordinate/committer.py",
        "self.store.commit(gathered.batch(), *gathered.fences)",
        "self.store.commit(gathered.batch())",
    ),
    bug(
        "gathered-batch-is-dropped-at-a-conflict",
        "coordinate/committer.py",
        "for one in (gathered, *behind) for decided",
        "for one in (gathered,) for decided",
    ),
    bug(
        "commit-without-an-answer-is-taken-for-done",
        "coordinate/committer.py",
        "            if not await self._is_there(commit, entirely=not are_ours):\n                return None\n",
        "            await self._is_there(commit, entirely=not are_ours)\n",
    ),
    bug(
        "commit-without-an-answer-is-taken-for-lost",
        "coordinate/committer.py",
        "            if found is not None:\n                return found\n        else:",
        "            if found is not None:\n                pass\n        else:",
    ),
    bug(
        "states-ahead-of-the-store-are-kept",
        "coordinate/coordinator.py",
        "        self._hots.clear()\n",
        "",
    ),
    bug(
        "commands-are-decided-again-in-reverse-order",
        "coordinate/coordinator.py",
        "self._queue.put_first(items)",
        "self._queue.put_first(items[::-1])",
    ),
    bug(
        "run-at-work-is-not-marked-busy",
        "coordinate/coordinator.py",
        "Commit(item.run, seq, events, kept, state.status, busy, decision.cuts)",
        "Commit(item.run, seq, events, kept, state.status, False, decision.cuts)",
    ),
    bug(
        "start-does-not-look-for-its-key",
        "coordinate/coordinator.py",
        "item.command.idempotency_key is not None and not item.keyed:",
        "False:",
    ),
    bug(
        "commands-that-waited-for-their-run-come-back-in-reverse",
        "coordinate/loading.py",
        "self._requeue(item for item in items if id(item) not in second)",
        "self._requeue(item for item in reversed(items) if id(item) not in second)",
    ),
    # Delivery and courier
    bug(
        "outbox-row-is-settled-before-it-is-delivered",
        "deliver/outgoing.py",
        "            row = line[0]\n",
        "            row = line[0]\n            self._coordinator.settle(row.id)\n",
    ),
    bug(
        "delivery-is-given-up-after-one-try",
        "deliver/outgoing.py",
        "if tries >= retry.max_attempts:",
        "if tries >= 1:",
    ),
    bug(
        "work-held-by-a-pause-never-begins",
        "deliver/delivery.py",
        "            self._own_work.decided(one)\n",
        "",
    ),
    # Recovery and inbox
    bug(
        "lost-work-is-not-looked-for",
        "deliver/recovery.py",
        "            await self._replace_workers(shards, offered, graceful)\n",
        "",
    ),
    bug(
        "outbox-is-not-read-at-recovery",
        "deliver/recovery.py",
        "            offered = await self._redeliver(shards)\n",
        "            offered: set[tuple[RunId, TokenId]] = set()\n",
    ),
    bug(
        "letters-overtake-those-the-last-owner-has-left",
        "deliver/core.py",
        "        self.delivery.held.hold([fence.shard for fence in fences])\n",
        "",
    ),
    bug(
        "request-is-taken-up-twice",
        "deliver/inbox.py",
        "                self._taken.add(request.id)\n",
        "",
    ),
    bug(
        "inbox-is-read-out-of-order",
        "deliver/inbox.py",
        "        for request in requests:\n            if request.id not in self._taken and",
        "        for request in reversed(requests):\n            if request.id not in self._taken and",
    ),
    # Timers
    bug(
        "timers-are-forgotten-at-recovery",
        "deliver/core.py",
        "            await self._reliably(self.timers.turn_page)\n"
        "            await self._reliably(lambda: self._recover(shards, graceful))",
        "            await self._reliably(lambda: self._recover(shards, graceful))",
    ),
    bug(
        "committed-timer-is-not-armed",
        "deliver/delivery.py",
        "            self._timers.set(run, effect.timer, effect.due)",
        "            _ = (run, effect.timer, effect.due)",
    ),
    bug(
        "timer-that-was-not-due-after-all-is-forgotten",
        "deliver/timers.py",
        "if too_early and self._looking is None and",
        "if False and",
    ),
    # Claims
    bug(
        "claim-that-ran-out-is-not-noticed",
        "queue/offers.py",
        "        self._coordinator.tell(run, c.LoseWorker(token, expired.attempt, expired.recovery))\n",
        "",
    ),
    bug(
        "result-of-claimed-work-does-not-say-who-did-it",
        "queue/claimant.py",
        "entry.post(replace(command, worker=entry.claimed.holder))",
        "entry.post(command)",
    ),
    bug(
        "work-whose-claim-was-lost-goes-on",
        "queue/claimant.py",
        '                log.warning("lost a claim", run=claim.run, visit=claim.token)\n'
        "                self._forget(entry)\n",
        '                log.warning("lost a claim", run=claim.run, visit=claim.token)\n',
    ),
    # Other nodes
    bug(
        "message-to-another-node-is-written-twice",
        "deliver/other_nodes.py",
        'self._send(item, f"outbox:{item.row}")',
        'self._send(item, f"outbox:{item.row}:{next(self._reports)}")',
    ),
    bug(
        "messages-to-another-node-overtake-each-other",
        "deliver/other_nodes.py",
        "            line.append((item, request))\n",
        "            line.insert(1, (item, request))\n",
    ),
    bug(
        "row-for-another-node-is-settled-before-it-is-written",
        "deliver/other_nodes.py",
        "        self._under_way.add(id)\n",
        "        self._under_way.add(id)\n"
        "        if item.row and not item.keeps_row:\n"
        "            self._settle(item.row)\n",
    ),
    # Courier
    bug(
        "refusal-of-a-receiver-is-tried-again",
        "deliver/courier.py",
        '        raise Undeliverable(f"the receiver answered {status}{where}", answered=True)',
        '        raise DeliveryFailed(f"the receiver answered {status}{where}")',
    ),
    bug(
        "every-try-of-a-message-has-another-name",
        "deliver/courier.py",
        '        "webhook-id": message.id,\n',
        '        "webhook-id": f"{message.id}:{now}",\n',
    ),
    bug(
        "answer-of-a-worker-that-did-the-work-at-once-is-ignored",
        "deliver/courier.py",
        "            return _answered(answer) if status == 200 else None\n",
        "            return None\n",
    ),
    bug(
        "one-subscriber-that-refuses-ends-the-tries-for-the-others",
        "deliver/courier.py",
        "            raise min(problems,",
        "            raise max(problems,",
    ),
]
