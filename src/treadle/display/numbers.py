"""Lists of numbers written as ranges, for the shards of a node in tables and in logs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def ranges(numbers: Sequence[int]) -> str:
    """`0-3, 8-15`. The numbers must be sorted."""
    return ", ".join(_ranges(numbers)) if numbers else ""


def _ranges(numbers: Sequence[int]) -> Iterator[str]:
    first = last = numbers[0]
    for number in (*numbers[1:], -1):
        if number == last + 1:
            last = number
            continue
        yield f"{first}" if first == last else f"{first}-{last}"
        first = last = number
