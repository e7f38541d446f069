"""stub"""

from treadle.kernel.evolve import evolve
from treadle.kernel.invariants import violations
from treadle.kernel.state import RunState
from treadle.model.codec import pack_events, unpack_events
from treadle.testing.simulator.audit.complaint import Violation


class _R:
    def __init__(self, state):
        self.state = state
        self.events = []


class Auditor:
    def __init__(self, catalog):
        self.catalog = catalog
        self.runs = {}

    def committed(self, commit, fence, now, shard):
        events = unpack_events(pack_events(list(commit.events)))
        r = self.runs.get(commit.run)
        if r is None:
            r = self.runs[commit.run] = _R(RunState(self.catalog.lookup(events[0].workflow, None)))
        for e in events:
            r.events.append(e)
            evolve(r.state, e)
        v = violations(r.state.graph, r.state)
        if v:
            raise Violation(commit.run, "invariant " + v[0].split(":")[0], "; ".join(v))

    def compare(self, run, state):
        mine = self.runs[run].state
        if mine.seq == state.seq and mine != state:
            from dataclasses import fields

            bad = [
                f"{f.name}: history {getattr(mine, f.name)!r} engine {getattr(state, f.name)!r}"
                for f in fields(mine)
                if f.compare and getattr(mine, f.name) != getattr(state, f.name)
            ]
            raise Violation(run, "fold", "\n".join(bad))

    def conclude(self, letters):
        pass
