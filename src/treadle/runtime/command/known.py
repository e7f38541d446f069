"""Looks for requests that were made before, and refuses their names for anything else."""

from __future__ import annotations

from functools import partial
from typing import cast

from treadle.errors import CommandRefused
from treadle.model.ids import RunId
from treadle.runtime.surroundings.patience import patiently
from treadle.store.port import KnownRequest, Store
from treadle.store.service import ServiceStore


async def known_request(store: Store, run: RunId, request: str, fingerprint: str) -> KnownRequest | None:
    """The request of this name, if there is one. Raises CommandRefused if it asked for something else."""
    known = await patiently(partial(cast(ServiceStore, store).find_request, run, request))
    if known is not None:
        check_fingerprint(request, known.fingerprint, fingerprint)
    return known


def check_fingerprint(request: str, known: str | None, given: str) -> None:
    """Refuses a request whose name was used for something else."""
    if known is not None and known != given:
        text = f"request {request.partition(':')[0]} has been made before, and asked for something else"
        raise CommandRefused("IDEMPOTENCY_MISMATCH", text)
