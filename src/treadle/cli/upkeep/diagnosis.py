"""One line of `treadle doctor`, and the limits that the checks of files and of databases share."""

from __future__ import annotations

from typing import NamedTuple

LATE_WARN_MS = 5_000
"""A request or a timer that has waited longer than this means that its owner is stuck."""


class Diagnosis(NamedTuple):
    """One check: its verdict, what was found, and the remedy."""

    check: str
    verdict: str
    """ok | warn | bad"""
    finding: str
    remedy: str = ""


def size(count: float) -> str:
    """A number of bytes in the largest unit that fits."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"
