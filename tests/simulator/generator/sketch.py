"""A workflow being drawn: nodes and transitions as fields that may still change, until `build`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.simulator.draw import Draw
from tests.simulator.plan import Plan
from treadle.model.definition import Node, Synchronization, Transition, Workflow

Fields = dict[str, Any]


class Span(NamedTuple):
    """A piece of graph with one way in and one way out."""

    entry: str
    exit: str


@dataclass(slots=True)
class Sketch:
    """See the module's docstring."""

    name: str
    plan: Plan
    draw: Draw
    callees: tuple[str, ...] = ()
    """Workflows a `workflow_call` may name."""
    nodes: dict[str, Fields] = field(default_factory=dict)
    edges: list[Fields] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    """Names of sibling groups that exist somewhere."""
    open_groups: list[str] = field(default_factory=list)
    inside: dict[str, list[str]] = field(default_factory=dict)
    """By group: the nodes of its branches."""
    spared: set[str] = field(default_factory=set)
    """Nodes that trimmings leave alone: their shape is the point."""
    room: int = 14
    """Nodes that may still be added by choice; a block begun is always finished."""
    _reserved: int = 0

    def identity(self) -> str:
        """A transition id that the enclosing block needs before it can draw the transition."""
        self._reserved += 1
        return f"r{self._reserved}"

    def node(self, **fields: Any) -> str:
        ref = f"n{len(self.nodes)}"
        self.nodes[ref] = fields
        self.room -= 1
        return ref

    def edge(self, source: str, target: str, **fields: Any) -> str:
        identity = fields.pop("id", None) or f"t{len(self.edges)}"
        self.edges.append({"id": identity, "from_": source, "to": target, **fields})
        return str(identity)

    def out(self, ref: str) -> list[Fields]:
        """Transitions leaving a node."""
        return [edge for edge in self.edges if edge["from_"] == ref]

    def into(self, ref: str) -> list[Fields]:
        """Transitions entering a node."""
        return [edge for edge in self.edges if edge["to"] == ref]

    def has(self, feature: str, probability: float = 1.0) -> bool:
        """Whether this seed has the feature and a coin says to use it here."""
        return self.plan.has(feature) and self.draw.chance(probability)

    def join(self, source: str, target: str, sync: Synchronization | None, **fields: Any) -> str:
        """A transition into a join, or a plain one where there is none."""
        return (
            self.edge(source, target, **fields)
            if sync is None
            else self.edge(source, target, synchronization=sync, **fields)
        )

    def build(self, start: list[str], **fields: Any) -> Workflow:
        """The finished workflow."""
        return Workflow(
            workflow=self.name,
            nodes={ref: Node(**values) for ref, values in self.nodes.items()},
            transitions=[Transition(**values) for values in self.edges],
            start=start,
            **fields,
        )
