"""A definition as the auditor reads it: by itself, naively, from the text of the specification.

Deliberately shares no code with `graph` or `kernel`: a mistake there must not be repeated here. Slow and obvious:
reachability is a search over sets, remembered per question.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from treadle.model.definition import Synchronization, Transition, Workflow


class Site(NamedTuple):
    """A join: branches of the group called `key` meet at `target`."""

    target: str
    key: str
    sync: Synchronization


class Chart:
    """See the module's docstring."""

    def __init__(self, workflow: Workflow) -> None:
        self.workflow = workflow
        self.transitions = {t.id: t for t in workflow.transitions}
        self.out: dict[str, list[Transition]] = {ref: [] for ref in workflow.nodes}
        self.into: dict[str, list[Transition]] = {ref: [] for ref in workflow.nodes}
        for t in workflow.transitions:
            self.out[t.from_].append(t)
            self.into[t.to].append(t)
        self._declared = {t.sibling_group for t in workflow.transitions if t.sibling_group is not None}
        self._site_of = {t.id: self._site(t) for t in workflow.transitions}
        self.sites = list(dict.fromkeys((s.target, s.key) for s in self._site_of.values() if s is not None))
        self._reach: dict[tuple[str, frozenset[str]], frozenset[str]] = {}
        self._members: dict[tuple[str, str], frozenset[str]] = {}

    def key(self, name: str) -> str:
        """What a group name means: declared name, then transition id, then node ref (2.16)."""
        if name in self._declared:
            return f"name:{name}"
        return f"transition:{name}" if name in self.transitions else f"node:{name}"

    def _site(self, t: Transition) -> Site | None:
        sync = t.synchronization
        return Site(t.to, self.key(sync.sibling_group), sync) if sync is not None else None

    def site_of(self, transition: str) -> Site | None:
        """The join a transition leads into."""
        return self._site_of[transition]

    def sites_of(self, names: Iterable[str]) -> list[Site]:
        """Every join of a group that answers to these names."""
        found: dict[tuple[str, str], Site] = {}
        for site in self._site_of.values():
            if site is not None and site.key in names:
                found.setdefault((site.target, site.key), site)
        return list(found.values())

    def is_joined(self, names: Iterable[str]) -> bool:
        """Whether some synchronization names the group: then its branches are isolated (A0)."""
        return bool(self.sites_of(names))

    def reach(self, ref: str, spent: frozenset[str] = frozenset()) -> frozenset[str]:
        """Nodes one hop or more away, over every transition but the `spent` ones."""
        question = (ref, spent)
        if question not in self._reach:
            found: set[str] = set()
            todo = [ref]
            while todo:
                for t in self.out[todo.pop()]:
                    if t.id not in spent and t.to not in found:
                        found.add(t.to)
                        todo.append(t.to)
            self._reach[question] = frozenset(found)
        return self._reach[question]

    def members(self, site: Site) -> frozenset[str]:
        """Nodes from which a member of the group can still arrive at this join. A join of the same group on the way
        takes its frame off: behind it nobody is a member any more."""
        question = (site.target, site.key)
        if question not in self._members:
            found = {t.from_ for t in self.workflow.transitions if self._same(t, site)}
            todo = list(found)
            while todo:
                for t in self.into[todo.pop()]:
                    other = self._site_of[t.id]
                    if t.from_ not in found and (other is None or other.key != site.key):
                        found.add(t.from_)
                        todo.append(t.from_)
            self._members[question] = frozenset(found)
        return self._members[question]

    def _same(self, t: Transition, site: Site) -> bool:
        other = self._site_of[t.id]
        return other is not None and (other.target, other.key) == (site.target, site.key)

    def leads_to(self, t: Transition, site: Site) -> bool:
        """Whether a branch that begins with `t` can arrive at the join."""
        return self._same(t, site) or t.to in self.members(site)
