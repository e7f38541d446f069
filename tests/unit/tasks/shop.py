"""Typed functions for the tests of tasks: a shop that charges, refunds and greets."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Any, Literal, TypedDict

from msgspec import Struct

from treadle.tasks import task


class Currency(Enum):
    EUR = "EUR"
    CHF = "CHF"


class Order(Struct):
    id: str
    amount: int
    currency: Currency = Currency.EUR


class Receipt(Struct):
    charge: str
    amount: int


@dataclass
class Address:
    street: str
    city: str = "Bern"


class Person(TypedDict):
    name: str
    born: date


class Money:
    """Something msgspec knows nothing about."""


def refund(order: Order, charge: str, reason: str = "asked to") -> str:
    return f"{order.id}: {charge} back, {reason}"


@task(retry=3, timeout="30s", queue="bank", compensate=refund)
def pay(order: Order, strict: bool = False) -> Receipt:
    return Receipt(f"ch-{order.id}", order.amount)


@task
def greet(name: str) -> str:
    return f"Hello, {name}!"


@task
async def look_up(person: Person, where: Address | None = None) -> Any:
    return {"name": person["name"], "year": person["born"].year, "city": where.city if where else None}


@task
def choose(how: Literal["fast", "safe"], tries: int = 1, share: float = 0.5, names: list[str] | None = None) -> Any:
    return {"how": how, "tries": tries, "share": share, "names": names}


@task
def own(money: Money, later: NotThere = 0) -> str:  # type: ignore[name-defined]  # noqa: F821
    return type(money).__name__


@task(process=True)
def crunch(number: int) -> int:
    return number * number


def whole_order(input: Order) -> Any:
    return {"got": input.id}


def whole_text(input: str) -> str:
    return input


def by_position(first: int, second: int, /) -> int:
    return first + second


def anything(**inputs: Any) -> Any:
    return inputs
