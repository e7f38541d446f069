"""The base of all commands."""

from __future__ import annotations

from msgspec import Struct


class Command(Struct, tag_field="command", omit_defaults=True, frozen=True, gc=False):
    """A command to one run."""
