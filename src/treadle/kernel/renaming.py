"""The names of one version in another: which node and which transition of the new graph stands for one of the old.

Nodes keep their names unless a mapping says otherwise. A transition keeps its id; one whose id was made of its nodes'
names (`a->b`) follows them.
"""

from __future__ import annotations

from treadle.graph.execution_graph import ExecutionGraph, GraphNode, GraphTransition, JoinSite


class Renaming:
    """See the module's docstring."""

    def __init__(self, old: ExecutionGraph, new: ExecutionGraph, nodes: dict[str, str]) -> None:
        self.old = old
        self.new = new
        self.nodes = nodes

    def ref(self, ref: str) -> str:
        """The name a node has now, whether the new version has it or not."""
        return self.nodes.get(ref, ref)

    def node(self, ref: str) -> GraphNode | None:
        """The node of the new version; None: there is none."""
        return self.new.nodes.get(self.ref(ref))

    def transition(self, name: str) -> GraphTransition | None:
        """The transition of the new version; None: there is none."""
        same = self.new.transitions.get(name)
        before = self.old.transitions.get(name)
        if same is not None or before is None:
            return same
        made = f"{before.source.ref}->{before.target.ref}"
        if not name.startswith(made):
            return None
        now = f"{self.ref(before.source.ref)}->{self.ref(before.target.ref)}"
        return self.new.transitions.get(now + name.removeprefix(made))

    def via(self, name: str) -> str:
        """The id a transition has now; its old one if it is gone."""
        t = self.transition(name)
        return t.id if t is not None else name

    def counters(self, loops: dict[str, int] | None) -> dict[str, int] | None:
        """Loop counters under their new names."""
        return {self.via(name): count for name, count in loops.items()} if loops else loops

    def names(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """The names that a group answers to in the new version."""
        found: list[str] = []
        for name in names:
            kind, _, rest = name.partition(":")
            if kind == "node":
                found.append(f"node:{self.ref(rest)}")
            elif kind == "transition":
                t = self.transition(rest)
                declared = t.definition.sibling_group if t is not None else None
                if declared is not None and f"name:{declared}" not in found:
                    found.insert(0, f"name:{declared}")
                found.append(f"transition:{self.via(rest)}")
        return tuple(found)

    def site(self, names: tuple[str, ...], target: str) -> JoinSite | None:
        """The join that a group has at a node of the old version; None: the new version has none there."""
        ref = self.ref(target)
        return next((site for site in self.new.sites_of(self.names(names)) if site.target.ref == ref), None)
