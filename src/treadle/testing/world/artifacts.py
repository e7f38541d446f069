"""The artifacts of the runs of a world: blobs in memory, names as the runs' own states bind them."""

from __future__ import annotations

from treadle.actions.blobs import digest_of
from treadle.kernel.state import RunState
from treadle.model.requests import WriteArtifact


class RunArtifacts:
    """What one attempt sees: its run's names, then those of the ancestors it inherits from."""

    def __init__(self, blobs: dict[str, bytes], lineage: list[RunState]) -> None:
        self._blobs = blobs
        self._lineage = lineage

    def put(self, content: bytes) -> str:
        digest = digest_of(content)
        self._blobs[digest] = content
        return digest

    def get(self, digest: str) -> bytes | None:
        return self._blobs.get(digest)

    def find(self, name: str) -> WriteArtifact | None:
        for state in self._lineage:
            if name in state.artifacts:
                return WriteArtifact(name=name, **state.artifacts[name])
        return None

    def names(self) -> list[str]:
        return sorted({name for state in self._lineage for name in state.artifacts})
