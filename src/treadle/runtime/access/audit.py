"""The audit: who did what, when, from where, with which outcome (5.6). One entry of the store's chained log each.

Owns the form of an entry. Promises that an entry holds no secret: neither bodies nor queries are written down, and a
part of a path that is itself a proof is masked before it comes here. Must not decide what is audited: the door and the
verbs do.
"""

from __future__ import annotations

import getpass

import msgspec
from msgspec import Struct

from treadle.store.service import Entry, LogEntry

LOG = "audit"
TEXT_MAX = 500
"""Characters of a text of the caller's: a path of a megabyte would fill the log."""
ON_STORE = "store"
"""The caller of those who work on the store directly, with the command line or as a library."""


class AuditEvent(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One event of the audit."""

    who: str = ""
    """The caller: `key:ID`, `session:ID`, `store` (directly on the store); empty: nobody known."""
    name: str = ""
    user: str = ""
    action: str
    """The method and the route, `POST /api/v1/runs`; or the verb, `keys create`."""
    path: str = ""
    """The path that was asked for, below the prefix of the service."""
    address: str = ""
    status: int = 0
    code: str | None = None
    request: str = ""
    about: str | None = None
    """The id of what was made or changed, where the path does not tell it."""
    left_out: int = 0
    """Refusals of the same address before it that have no entry of their own, because there were too many."""


def entry_of(event: AuditEvent, at: int) -> Entry:
    """The entry to be appended."""
    return Entry(LOG, event.who, msgspec.to_builtins(event), at)


def event_of(entry: LogEntry) -> AuditEvent:
    """What an entry says."""
    return msgspec.convert(entry.body, AuditEvent)


def on_store(action: str, at: int, about: str | None = None) -> Entry:
    """The entry of somebody who works on the store directly: the user of the operating system."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as in containers
        user = ""
    return entry_of(AuditEvent(who=ON_STORE, name=user, user=user, action=action, about=about), at)


def shortened(text: str) -> str:
    """A text of the caller's as the audit keeps it: printable, and not longer than it may be."""
    plain = "".join(character if character.isprintable() else "?" for character in text[:TEXT_MAX])
    return plain if len(text) <= TEXT_MAX else plain + "…"
