"""The mistakes in leases and hand-over, each a patch as in `catalogue`: what happens while shards change hands."""

from __future__ import annotations

from tests.mutants.runtime_catalogue import bug

LEASE_MUTANTS = [
    bug(
        "report-is-applied-after-the-shard-was-handed-over",
        "coordinate/coordinator.py",
        "if item.epoch and not self.shards.is_current(item.run, item.epoch):",
        "if False:",
    ),
    bug(
        "tenure-goes-on-although-another-node-had-the-shard",
        "coordinate/shards.py",
        "if before is None or fence.epoch - before.epoch not in (0, 1):",
        "if before is None:",
    ),
    bug(
        "reports-kept-back-in-doubt-are-dropped",
        "deliver/other_nodes.py",
        "                put(item)\n",
        "                pass\n",
    ),
    bug(
        "work-in-hand-stops-at-a-hand-over",
        "deliver/core.py",
        "        settle = self.handover.claim(shards)\n",
        "        settle = self.handover.claim(())\n",
    ),
    bug(
        "node-without-a-heartbeat-goes-on-deciding",
        "cluster/membership.py",
        '        self._core.doubt(tuple(self._core.shards.fences), f"no heartbeat',
        '        self._core.doubt((), f"no heartbeat',
    ),
    bug(
        "lease-is-counted-from-the-answer-instead-of-the-question",
        "cluster/membership.py",
        "self._trust_until(self._began + self._ttl_ms)",
        "self._trust_until(self._clock.elapsed() + self._ttl_ms)",
    ),
    bug(
        "standing-does-not-tell-which-shards-others-have-taken",
        "cluster/membership.py",
        '        self._core.lose(taken, "another node has taken them over")\n',
        "",
    ),
    bug(
        "lease-that-ran-out-meanwhile-is-not-noticed",
        "cluster/membership.py",
        '        self._core.doubt(gone, "their leases have run out")\n',
        "",
    ),
    bug(
        "standing-from-before-a-release-brings-the-shards-back",
        "cluster/membership.py",
        "(found if is_fresh else [])",
        "found",
    ),
    bug(
        "shards-taken-by-a-call-without-an-answer-are-never-used",
        "cluster/membership.py",
        "(found if is_fresh else [])",
        "[]",
    ),
    bug(
        "heartbeat-ends-with-the-first-one-that-fails",
        "cluster/membership.py",
        "        finally:\n            self._again_in(pause)\n",
        "        else:\n            self._again_in(pause)\n",
    ),
    bug(
        "shard-is-released-before-its-decisions-are-durable",
        "deliver/core.py",
        "        self._let_go()\n        await self.coordinator.drained()\n        settle()\n",
        "        self._let_go()\n        settle()\n",
    ),
    bug(
        "node-goes-on-deciding-while-it-hands-over",
        "deliver/core.py",
        "        self.shards.leave(shards)\n        self._let_go()\n",
        "        self._let_go()\n",
    ),
    bug(
        "lease-is-not-released-at-a-hand-over",
        "deliver/core.py",
        "        await asyncio.gather(*(reliably(partial(release, fence), self._is_over) for fence in fences))\n",
        "        _ = release\n",
    ),
    bug(
        "work-goes-on-although-another-node-had-the-shard",
        "deliver/core.py",
        "        self._stop_work(lambda run: self.shards.of(run) in anew)",
        "        self._stop_work(lambda run: False and run in anew)",
    ),
    bug(
        "states-of-lost-shards-are-kept",
        "deliver/core.py",
        "        self.coordinator.let_go()\n",
        "",
    ),
    bug(
        "work-in-line-of-lost-shards-still-begins",
        "deliver/core.py",
        "        self.own_work.drop_unless(owns)\n",
        "",
    ),
    bug(
        "messages-of-lost-shards-are-still-sent",
        "deliver/core.py",
        "        self.outgoing.drop_unless(owns)\n",
        "",
    ),
    bug(
        "claimed-work-of-another-node-is-taken-for-lost",
        "deliver/core.py",
        "return not self.shards.is_shared or worker is None",
        "return True",
    ),
    bug(
        "reports-of-doubtful-shards-are-not-kept-back",
        "deliver/other_nodes.py",
        "            self._held.append(item)\n            return\n",
        "            return\n",
    ),
    bug(
        "report-does-not-say-under-which-lease-its-work-ran",
        "deliver/own_work.py",
        "epoch=self._epoch_of(run) if self._is_shared else 0))",
        "epoch=0))",
    ),
    bug(
        "work-whose-claim-failed-goes-on-after-the-hand-over",
        "deliver/handover.py",
        "            if refused and attempt in self._claims:\n",
        "            if False and refused:\n",
    ),
    bug(
        "claim-of-work-that-goes-on-is-not-renewed",
        "deliver/handover.py",
        "        self._renew_later()\n        return lambda",
        "        return lambda",
    ),
    bug(
        "work-of-runs-that-are-not-in-memory-is-not-claimed",
        "deliver/core.py",
        "        await self.handover.claim_cold(shards)\n",
        "",
    ),
    bug(
        "result-of-work-that-went-on-does-not-say-who-did-it",
        "deliver/handover.py",
        "                return replace(command, worker=self.owner)\n",
        "                return command\n",
    ),
    bug(
        "claimed-work-is-not-given-back-when-the-node-closes",
        "deliver/core.py",
        "        self.handover.give_up()\n",
        "",
    ),
    bug(
        "request-of-a-shard-that-left-is-never-taken-up-again",
        "deliver/inbox.py",
        "        self._taken.discard(request)\n",
        "",
    ),
    bug(
        "inbox-is-not-read-when-shards-are-gained",
        "deliver/core.py",
        "        await self.recovery.recover(shards, graceful)\n        await self.inbox.read()\n",
        "        await self.recovery.recover(shards, graceful)\n",
    ),
]
