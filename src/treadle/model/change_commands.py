"""Commands by which an operator changes a run that stands still (6.4), and what a fork changes (6.3). Part of
`commands`."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from treadle.model.command import Command
from treadle.model.ids import TokenId

Json = Any


class EditRun(Command, tag="edit_run", frozen=True):
    """Write into the run's data."""

    writes: dict[str, Json]
    """Target path, as in an output mapping, to value."""
    branch: TokenId | None = None
    """A visit: the scope of its branch is written. None: the run's own scope."""
    by: str = "operator"
    reason: str | None = None


class SkipToken(Command, tag="skip_token", frozen=True):
    """Complete a visit with this output, whatever its work says."""

    token: TokenId
    output: Json = None
    by: str = "operator"
    reason: str | None = None


class JumpToken(Command, tag="jump_token", frozen=True):
    """End a visit and go on at another node."""

    token: TokenId
    to: str
    by: str = "operator"
    reason: str | None = None


class SetInput(Command, tag="set_input", frozen=True):
    """Say what the next attempt of a visit is given, in place of what its mappings would give."""

    token: TokenId
    input: Json = None
    by: str = "operator"
    reason: str | None = None


class ForkChanges(Struct, omit_defaults=True, frozen=True, gc=False):
    """What is otherwise in a fork, from its point on."""

    input: Json = None
    """Replaces the whole input; None: it is inherited."""
    state: dict[str, Json] = {}
    """Target path to value, in the run's own scope."""
    outputs: dict[str, Json] = {}
    """The number of a visit that has returned, or a node for its latest such visit, to the output it gave."""
    version: int | None = None
