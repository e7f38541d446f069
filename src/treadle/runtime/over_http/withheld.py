"""The parts of a client that work inside a store, which a service has for itself: each says so when it is asked for.

A program that needs one of them over HTTP uses its routes (docs/reference/http.md)."""

from __future__ import annotations

from typing import Any, NoReturn

from treadle.errors import CommandRefused

REASONS = {
    "callbacks": "a webhook worker answers at the address it was given",
    "following": "all events of all runs are at GET /stream",
    "once": "every command over HTTP is carried out once; Idempotency-Key names it",
    "records": "the documents of a service are its own",
    "sealing": "the store's own secret never leaves it",
    "secret_root": "the store's own secret never leaves it",
}


class Withheld:
    """See the module's docstring."""

    @property
    def callbacks(self) -> Any:
        _withhold("callbacks")

    @property
    def following(self) -> Any:
        _withhold("following")

    @property
    def records(self) -> Any:
        _withhold("records")

    def once(self, id: str, fingerprint: str) -> Any:  # noqa: ARG002
        _withhold("once")

    async def sealing(self) -> Any:
        _withhold("sealing")

    async def secret_root(self) -> bytes:
        _withhold("secret_root")


def _withhold(part: str) -> NoReturn:
    raise CommandRefused("BAD_REQUEST", f"a client of a service has no {part}: {REASONS[part]}")
