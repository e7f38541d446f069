"""The cost of an answer: tokens times the operator's price. Without a price there is no cost, rather than a guess."""

from __future__ import annotations

from treadle.actions.llm.profiles import Price

_PER = 1_000_000
_DIGITS = 9
"""Below a thousandth of the cheapest token there is."""


def cost_of(price: Price | None, input_tokens: int, output_tokens: int) -> float | None:
    """The cost in the currency of the price. Tokens read from a provider's cache count as input: an upper bound."""
    if price is None:
        return None
    return round((input_tokens * price.input + output_tokens * price.output) / _PER, _DIGITS)
