"""The fields and modifiers of a step, as the parsers of steps take them."""

from __future__ import annotations

from typing import TypedDict

from treadle.testing.scenario.place import ValuePlace

Fields = dict[str, ValuePlace]


class Modifiers(TypedDict):
    """The modifiers of a step, as its class takes them."""

    place: ValuePlace
    refused: str | None
    expect_refused: tuple[str, ...]
    visit: int | None
    run: str | None
