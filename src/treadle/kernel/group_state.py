"""The shapes of groups and joins: one firing of a fan-out, its join sites, arrivals, and a node's own join."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from treadle.model.errors import Error
from treadle.model.ids import ArrivalId, Frame, Frames, GroupId, TimerId, TokenId

Json = Any
Members = int | dict[int, None]
"""One unit, or an ordered set of units: most branches hold exactly one token, and a set of one costs 200 bytes."""


class Arrival(Struct, gc=False):
    """A token's presence at a join."""

    id: ArrivalId
    token: TokenId
    target: str
    via: str
    path: str
    frames: Frames
    group: GroupId | None
    item: Frame | None
    value: Json = None
    loops: dict[str, int] | None = None


class SiteState(Struct):
    """A join of one group instance: the dynamic half of a `JoinSite`."""

    index: int
    target: str
    status: Literal["open", "fired", "failed", "dead"] = "open"
    live: dict[int, int] = {}
    """Branch → how many of its units can still arrive."""
    waiting: dict[int, tuple[ArrivalId, ...]] = {}
    arrived: int = 0
    """Branches with an arrival and no live unit."""
    timer: TimerId | None = None
    passes: bool = False
    """The join has fired and lets every later arrival pass on its own."""
    unevaluable: bool = False
    """Its computed strategy could not be evaluated, and the history has an event for it."""
    failure: int = 0
    """The failure of a failed join, or the one a dead join went down with. 0: it cannot be retried."""


class Group(Struct):
    """One firing of a fan-out."""

    id: GroupId
    names: tuple[str, ...]
    origin: TokenId
    node: str
    path: str
    frames: Frames
    total: int
    transitions: tuple[str, ...]
    items: list[Json] | None
    item_var: str | None
    replicated: bool
    isolating: bool
    open: bool
    max_in_flight: int | None
    ordinal: int
    shared: bool
    spawned: int = 0
    """Branches that have begun to exist; the rest are a cursor, not rows."""
    active: dict[int, int] = {}
    """Of a lazy group: branch → its units that are not held at a join."""
    members: dict[int, Members] = {}
    units: int = 0
    failed: dict[int, Error] = {}
    failures: dict[int, int] = {}
    """Branch → the failure it failed with, as long as an operator may retry that."""
    empties: int = 0
    """How many fan-outs inside it were empty and had no join of their own: the shape of a result must not depend on
    that."""
    sites: list[SiteState] = []
    abandoned: dict[int, None] = {}
    """Branches that no join waits for since the join fired early: they are live for no join around the group."""
    withdrawn: bool = False
    """The group was cancelled: branches that have not begun never will."""
    retained: int = 0
    """How many failed tokens, and things that went down with them, are kept inside for an operator's retry."""
    loops: dict[str, int] | None = None
    bounds: tuple[int, ...] = ()
    last_error: Error | None = None
    patient: bool = False
    """Nothing about its joins can be decided while a branch is live and none has failed: all of them wait for `all`,
    and no first branch makes the others superfluous."""


class NodeJoinState(Struct):
    """A node's own join, one per item (A0)."""

    node: str
    item: Frame | None
    held: list[ArrivalId] = []
    used: tuple[str, ...] = ()
    """Transitions consumed in the round that has fired and is not yet re-armed ({inbound: M})."""
    absorbed: tuple[str, ...] = ()
    """Other transitions that have delivered since then."""


class Failure(Struct):
    """A failure that nothing has handled, and everything it took down. An operator may take it back (6.2)."""

    token: TokenId
    """The visit that failed; 0 for a fan-in."""
    group: GroupId | None = None
    target: str | None = None
    item: Frame | None = None
    fails: Frame | None = None
    """The branch that failed with it."""
    unhandled: bool = False
    """It makes the run fail, now or when the other tokens have finished."""
    tokens: list[TokenId] = []
    arrivals: list[ArrivalId] = []
    """Arrivals that were withdrawn without their visit."""
    joins: list[tuple[GroupId, str]] = []
    """Open joins that died with the branch around them."""
    closed: list[tuple[GroupId, bool, bool]] = []
    """Groups that were closed or withdrawn, with their `open` and `withdrawn` before."""
    pinned: list[GroupId] = []
    """Groups that are kept because of this failure, although they may be empty; each as often as it is named."""
