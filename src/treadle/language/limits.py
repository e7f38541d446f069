"""Limits on the size of a document: the numbers that keep a hostile document cheap to refuse
(docs/reference/definition.md, Limits of a file).

Promises that each number has its reason beside it. Nothing here knows what a workflow is.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds on one text. A caller may pass narrower ones for untrusted authors."""

    text_bytes: int = 1 << 20
    """1 MiB: two hundred times the longest definition we have seen; also the HTTP body limit."""
    depth: int = 64
    """Nesting. The deepest valid definition needs about 20; Python's own recursion ends near 1,000."""
    values: int = 50_000
    """Maps, lists, scalars and keys after aliases are expanded: a workflow of 1,200 nodes with all their settings, or
    of 7,000 bare ones. Bounds an alias bomb, time (2 to 3 µs per value) and memory (up to 300 bytes per value).
    """
    second_reading_bytes: int = 8 << 10
    """The longest YAML that is given to ruamel.yaml after libyaml has refused it: its pure-Python scanner needs up to
    15 µs per character, and libyaml's message is nearly as good.
    """
    documents: int = 1_000
    """Documents of one file."""
    problems: int = 500
    """Problems reported for one definition; beyond it nobody reads them."""
    number_digits: int = 40
    """Longest number: parsing digits is quadratic, and nothing beyond 64 bits is accepted anyway."""


BOUNDS = Bounds()
