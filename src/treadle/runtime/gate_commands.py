"""Commands of people about the gates of a run: answer, claim, release, delegate, comment, attach. `Run` has them.

A `person` is somebody whose identity was checked, such as a server does by a key: only people whom a gate asks may
answer it then (5.5). Without one, `by` is the caller's word.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import uuid_utils

from treadle.model import commands as c
from treadle.model.ids import RunId, TokenId
from treadle.model.references import Person
from treadle.runtime.execute.artifacts import Artifact
from treadle.runtime.given import given, named

if TYPE_CHECKING:
    from treadle.runtime.command.commander import Commander

Json = Any


class GateCommands:
    """See the module's docstring."""

    id: RunId
    _commander: Commander

    if TYPE_CHECKING:

        async def ask(self, command: c.Command) -> bool: ...

        async def artifacts(self) -> dict[str, Artifact]: ...

    @property
    def caller(self) -> str | None:
        """The person whom a service knows by the key; None on a store, where the caller says who they are."""
        return self._commander.user

    async def complete_gate(
        self,
        visit: int,
        data: Json = None,
        *,
        by: str | None = None,
        force: bool = False,
        person: Person | None = None,
        comment: str | None = None,
    ) -> None:
        """Answers a gate. One that somebody has claimed is answered by them; by anybody else with `force`, which
        history records. With a quorum it is one answer of several."""
        by = person.name if person is not None else by
        named("person", by)
        command = c.CompleteGate(TokenId(visit), given("data", data), by, force, person=person, comment=comment)
        await self.ask(command)

    async def claim_gate(self, visit: int, *, by: str | None = None, person: Person | None = None) -> None:
        """Takes a gate on: nobody else answers it from now on, unless by force."""
        await self.ask(c.ClaimGate(TokenId(visit), self._name(by, person), person))

    async def release_gate(
        self, visit: int, *, by: str | None = None, force: bool = False, person: Person | None = None
    ) -> None:
        """Gives a claimed gate back."""
        await self.ask(c.ReleaseGate(TokenId(visit), self._name(by, person), force, person))

    async def delegate_gate(
        self, visit: int, to: str, *, by: str | None = None, force: bool = False, person: Person | None = None
    ) -> None:
        """Hands a gate to somebody else."""
        named("person", to)
        await self.ask(c.DelegateGate(TokenId(visit), to, self._name(by, person), force, person))

    async def comment_gate(
        self,
        visit: int,
        text: str,
        *,
        by: str | None = None,
        attachments: Sequence[str] = (),
        id: str | None = None,
        person: Person | None = None,
    ) -> None:
        """Says something about an open gate; `attachments` are names of artifacts of the run. With the same `id` it
        counts once."""
        by = person.name if person is not None else by
        named("person", by)
        named("id of the comment", id)
        await self.ask(c.CommentGate(TokenId(visit), text, by, tuple(attachments), id or str(uuid_utils.uuid7())))

    async def add_artifact(
        self, name: str, content: bytes, content_type: str | None = None, *, by: str | None = None
    ) -> Artifact:
        """Adds an artifact to a run that has not ended, such as an attachment of a comment. It may replace one that a
        person has added, but none that the run itself has written."""
        named("artifact", name)
        named("media type", content_type)
        digest = await self._commander.store.put_blob(self.id, content)
        await self.ask(c.KeepArtifact(name, digest, len(content), content_type, by))
        return (await self.artifacts())[name]

    def _name(self, by: str | None, person: Person | None) -> str:
        by = person.name if person is not None else by or self._commander.user
        if by is None:
            raise TypeError("say who does it: by=NAME")
        named("person", by)
        return by
