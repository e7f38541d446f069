"""What a planted bug is: a small patch of one file, in one room of the sources."""

from __future__ import annotations

from typing import Literal, NamedTuple

Room = Literal["kernel", "runtime", "store"]
ROOMS: tuple[Room, ...] = ("kernel", "runtime", "store")


class DoesNotFit(Exception):
    """A patch whose old text is not there exactly once: the source has moved on."""


class Mutant(NamedTuple):
    """One planted bug."""

    name: str
    """What the engine does with it, in words."""
    file: str
    """Below src/treadle/<room>."""
    old: str
    new: str
    room: Room = "kernel"

    def planted(self, text: str) -> str:
        """The file's text with the mistake in it."""
        found = text.count(self.old)
        if found != 1:
            raise DoesNotFit(f"{self.file} has its old text {found} times, not once: {self.old.strip()[:80]!r}")
        return text.replace(self.old, self.new)
