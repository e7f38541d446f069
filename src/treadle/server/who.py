"""Callers: who asks, and what they may see."""

from __future__ import annotations

from fnmatch import fnmatchcase

from msgspec import Struct

from treadle.server.routes import Role


class Who(Struct, frozen=True):
    """A caller: a key, a browser session, or nobody (open routes)."""

    id: str = ""
    """Names the key or session for audit and idempotency; empty: nobody."""
    name: str = ""
    user: str = ""
    """The person, as gates know them: the key's `user`, else its name."""
    groups: tuple[str, ...] = ()
    roles: frozenset[Role] = frozenset()
    workflows: tuple[str, ...] | None = None
    """Patterns of the workflows it may see; None: all."""
    expires: int | None = None
    session: str | None = None
    """The id of the browser session it came with: its writes need the session's CSRF token."""
    key: str | None = None
    """The id of the key it has its rights from."""

    @property
    def is_admin(self) -> bool:
        return Role.ADMIN in self.roles

    def sees(self, workflow: str) -> bool:
        """Whether a workflow lies within the caller's patterns."""
        return self.workflows is None or is_within(workflow, self.workflows)


def is_within(workflow: str, patterns: tuple[str, ...]) -> bool:
    """Whether a workflow fits one of these patterns."""
    return any(fnmatchcase(workflow, pattern) for pattern in patterns)


NOBODY = Who()
