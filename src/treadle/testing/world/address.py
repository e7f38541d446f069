"""Addresses: how a scenario names visits, `judge`, `judge[2]`, `judge[0.2]`, `compensate(judge[2])`,
`judge/step`.

Owns the notation and what it means to fit it. A ref may itself contain any of these characters (canvas ids
survive exactly), so an address is read against the refs that exist: the longest reading that names one wins.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

_INDEXED = re.compile(r"(?P<ref>.+)\[(?P<indexes>\d+(?:\.\d+)*)\]", re.DOTALL)
_COMPENSATE = re.compile(r"compensate\((?P<inner>.+)\)", re.DOTALL)


class Address(NamedTuple):
    """The visits that are meant. One index is the branch of the innermost group, several are the whole stack."""

    node: str
    indexes: tuple[int, ...] = ()
    compensation: bool = False
    step: str | None = None

    def fits(self, node: str, stack: tuple[int, ...], compensation: bool) -> bool:
        """Whether the address means a visit of `node` whose frames have these branch indexes, outermost first."""
        return self.node == node and self.compensation == compensation and fits_stack(self.indexes, stack)

    def __str__(self) -> str:
        indexes = f"[{'.'.join(map(str, self.indexes))}]" if self.indexes else ""
        text = f"{self.node}{indexes}"
        text = f"compensate({text})" if self.compensation else text
        return f"{text}/{self.step}" if self.step else text


def fits_stack(indexes: tuple[int, ...], stack: tuple[int, ...]) -> bool:
    """`()` fits every stack, one index the innermost frame, several the whole stack."""
    if len(indexes) <= 1:
        return stack[len(stack) - len(indexes) :] == indexes
    return stack == indexes


def parse_address(text: str, refs: Collection[str]) -> Address | None:
    """The address that `text` is, given the nodes `refs`; None if it names none of them."""
    if text in refs:
        return Address(text)
    outer = _COMPENSATE.fullmatch(text)
    if outer and (inner := parse_address(outer["inner"], refs)):
        return inner._replace(compensation=True) if not (inner.compensation or inner.step) else None
    indexed = _INDEXED.fullmatch(text)
    if indexed and indexed["ref"] in refs:
        return Address(indexed["ref"], tuple(int(index) for index in indexed["indexes"].split(".")))
    visit, slash, step = text.rpartition("/")
    if slash and step and (address := parse_address(visit, refs)) and address.step is None:
        return address._replace(step=step)
    return None


def ref_of(text: str) -> str:
    """The ref that an address without a matching node probably meant: a hint compares it with the known ones."""
    outer = _COMPENSATE.fullmatch(text)
    text = outer["inner"] if outer else text
    indexed = _INDEXED.fullmatch(text)
    return indexed["ref"] if indexed else text.partition("/")[0]


def show_visit(node: str, stack: tuple[int, ...], compensation: bool = False) -> str:
    """The address of a visit: `judge[2]`."""
    return str(Address(node, stack, compensation))


def path_order(path: str) -> list[tuple[int, str | int]]:
    """A sort key of paths in which `.2` comes before `.10`."""
    parts = re.split(r"(\d+)", path)
    return [(0, int(part)) if part.isdigit() else (1, part) for part in parts if part]
