"""The port to a run's artifacts, and its memory implementation.

An artifact is a named, content-addressed blob: `put` stores bytes under their SHA-256 and is idempotent; the
*name* is bound by the run itself, when it accepts the attempt's `WriteArtifact` request. So an attempt that
is lost or fails leaves an unnamed blob behind, never a wrong name. Must not interpret content.
"""

from __future__ import annotations

import hashlib
from typing import Protocol

from treadle.model.requests import WriteArtifact


class Artifacts(Protocol):
    """The verbs of a store that the artifact actions use. They may block: they are only called from `Work`."""

    def put(self, content: bytes) -> str:
        """Stores bytes, returns their digest."""

    def get(self, digest: str) -> bytes | None:
        """The bytes of a digest."""

    def find(self, name: str) -> WriteArtifact | None:
        """The artifact that the run has bound to a name."""

    def names(self) -> list[str]:
        """Every name bound so far, for messages."""


def digest_of(content: bytes) -> str:
    """The digest of some bytes. It names the algorithm, so that the algorithm can change one day."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


class MemoryArtifacts:
    """The artifacts of one run, in memory."""

    def __init__(self) -> None:
        self._blobs: dict[str, bytes] = {}
        self._bound: dict[str, WriteArtifact] = {}

    def put(self, content: bytes) -> str:
        digest = digest_of(content)
        self._blobs[digest] = content
        return digest

    def get(self, digest: str) -> bytes | None:
        return self._blobs.get(digest)

    def find(self, name: str) -> WriteArtifact | None:
        return self._bound.get(name)

    def names(self) -> list[str]:
        return sorted(self._bound)

    def bind(self, written: WriteArtifact) -> None:
        """Binds a name: the run has accepted an attempt that wrote the artifact."""
        self._bound[written.name] = written
