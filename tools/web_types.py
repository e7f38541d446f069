"""Whether the types of the canvas are those of the service: a hash of the description they were made from.

Owns the file with the hash, beside the types. `./dev web types` writes both; a test compares the hash with the
description as it is now, so that neither Node nor a registry is needed to notice types that are out of date.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

KEPT = Path(__file__).resolve().parent.parent / "web" / "src" / "api" / "schema.sha256"


def description() -> str:
    """The service's description of itself, always written the same way."""
    from treadle.server.openapi import document
    from treadle.server.table import all_routes

    return json.dumps(document(all_routes()), sort_keys=True)


def hash_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def keep(text: str) -> None:
    KEPT.write_text(hash_of(text) + "\n", "utf-8")
