"""Proof that a database has not gone back behind what this process has already seen of it.

Owns the memory of one address: its cluster, its timeline, how far its log and the epochs of its leases had come.
Promises that a database that surely has gone back is recognised, and that two connections that overtake each other do
not cause a false alarm. Must not query a server, nor decide what happens to the connection.

Theory of operation
    A standby that is promoted begins a timeline of its own, with a higher number. When the old primary comes back
    writable, it is still on the old one: same cluster, lower timeline. What was acknowledged since is not there.

        system identifier   made with the cluster; standbys and restored copies share it
        timeline            grows with every promotion and every recovery to a point in time
        log position        of what is safely written; on one timeline it only grows. Lower: a snapshot was put back
        epochs              the sum over all leases of our own tables, which only grow. Lower: a dump was restored, or
                            a standby was promoted that had not got everything

    Positions on different timelines cannot be compared: a standby may lawfully lack commits that were not acknowledged.

Known limits: a process that has just started remembers nothing. If its address names several servers it asks all of
them first (`hosts.Way`); behind a single address it believes the first answer.
"""

from __future__ import annotations

from typing import NamedTuple


class Sight(NamedTuple):
    """A server as one connection found it. None: the server does not tell."""

    system: int | None
    timeline: int | None
    position: int | None
    epochs: int | None
    """None also where there are no tables."""


class Witness:
    """See the module's docstring."""

    def __init__(self) -> None:
        self.seen: Sight | None = None

    @property
    def timeline(self) -> int | None:
        """The newest one that was seen."""
        return self.seen.timeline if self.seen is not None else None

    def objection(self, sight: Sight, before: Sight | None) -> str:
        """Why this server must not be used; "" if nothing is known against it. `before`: what had been seen when it was
        asked. Other connections may have seen more of the same server since."""
        seen = self.seen
        if seen is None:
            return ""
        if sight.system == seen.system and None not in (sight.timeline, seen.timeline):
            assert sight.timeline is not None and seen.timeline is not None
            if sight.timeline < seen.timeline:
                return (
                    f"it is on timeline {sight.timeline}, and this store has been on timeline {seen.timeline} since:"
                    " it is an old primary that has come back"
                )
        return _went_back(sight, before) if before is not None else ""

    def note(self, sight: Sight) -> None:
        """Notes the facts of a server that is used."""
        seen = self.seen
        if seen is None or sight.system != seen.system or sight.timeline != seen.timeline:
            epochs = _greater(seen.epochs if seen is not None else None, sight.epochs)
            self.seen = sight._replace(epochs=epochs)
        else:
            position = _greater(seen.position, sight.position)
            self.seen = sight._replace(position=position, epochs=_greater(seen.epochs, sight.epochs))

    def forget(self) -> None:
        """Forgets everything, so that the next answer is believed: for tests, which put tables back on purpose."""
        self.seen = None

    def expect(self, system: int | None, timeline: int) -> None:
        """Notes a timeline of the cluster that another server has seen."""
        if self.seen is None:
            self.seen = Sight(system, timeline, None, None)


def _went_back(sight: Sight, before: Sight) -> str:
    same = (sight.system, sight.timeline) == (before.system, before.timeline)
    if same and None not in (sight.position, before.position):
        assert sight.position is not None and before.position is not None
        if sight.position < before.position:
            return (
                f"its log ends at {_written(sight.position)}, and {_written(before.position)} has been seen on the same"
                " timeline: an older copy was put in its place"
            )
    if before.epochs and sight.epochs is not None and sight.epochs < before.epochs:
        return (
            f"the epochs of its leases add up to {sight.epochs}, and {before.epochs} has been seen: an older copy was"
            " put in its place, or a standby that lacked the newest was promoted"
        )
    return ""


def _greater(one: int | None, other: int | None) -> int | None:
    return max(one, other) if one is not None and other is not None else one if other is None else other


def _written(position: int) -> str:
    """As PostgreSQL writes it."""
    return f"{position >> 32:X}/{position & 0xFFFFFFFF:X}"
