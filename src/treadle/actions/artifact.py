"""`artifact_write {name, content_type?, content}` and `artifact_read {name}`: the run's named blobs.

Text is kept as UTF-8, any other JSON as JSON; reading gives back what was written. Content of another writer that is
neither comes back as base64, with `encoding` beside it.
"""

from __future__ import annotations

import base64
from functools import partial
from typing import Any

import msgspec

from treadle.actions.blobs import Artifacts
from treadle.actions.nearest import nearest
from treadle.actions.protocol import Call, Done, Failed, Work, failed
from treadle.actions.settings import setting, text_setting
from treadle.model.requests import WriteArtifact

Json = Any
JSON_TYPE = "application/json"
TEXT_TYPE = "text/plain; charset=utf-8"


class ArtifactWriteKind:
    """Stores the content at once; the name is bound when the run accepts the attempt."""

    name = "artifact_write"

    def run(self, call: Call) -> Work | Failed:
        store = call.facts.artifacts
        if store is None:
            return _homeless(call)
        content = setting(call, "content")
        kind = setting(call, "content_type") or (TEXT_TYPE if isinstance(content, str) else JSON_TYPE)
        return Work(partial(_write, store, text_setting(call, "name"), kind, content))


class ArtifactReadKind:
    """Reads the artifact that this attempt has written under the name, else the run's."""

    name = "artifact_read"

    def run(self, call: Call) -> Work | Failed:
        store = call.facts.artifacts
        if store is None:
            return _homeless(call)
        name = text_setting(call, "name")
        own = [r for r in call.requests if isinstance(r, WriteArtifact) and r.name == name]
        return Work(partial(_read, store, name, own[-1] if own else None))


def _homeless(call: Call) -> Failed:
    return failed(f"step {call.step!r} needs an artifact store, and this attempt was given none")


def _write(store: Artifacts, name: str, content_type: str, content: Json) -> Done:
    blob = content.encode() if isinstance(content, str) else msgspec.json.encode(content)
    written = WriteArtifact(name=name, digest=store.put(blob), size=len(blob), content_type=content_type)
    return Done(_reference(written), (written,))


def _read(store: Artifacts, name: str, own: WriteArtifact | None) -> Done | Failed:
    written = own or store.find(name)
    if written is None:
        return failed(f"this run has no artifact {name!r}{nearest(name, store.names())}", "NOT_FOUND")
    blob = store.get(written.digest)
    if blob is None:
        return failed(f"the content of artifact {name!r} ({written.digest}) is not in the store", "NOT_FOUND")
    return Done({**_reference(written), **_content(blob, written.content_type)})


def _reference(written: WriteArtifact) -> dict[str, Json]:
    return {
        "name": written.name,
        "digest": written.digest,
        "size": written.size,
        "content_type": written.content_type,
    }


def _content(blob: bytes, content_type: str | None) -> dict[str, Json]:
    try:
        text = blob.decode()
        return {"content": msgspec.json.decode(text) if content_type == JSON_TYPE else text}
    except (UnicodeDecodeError, msgspec.DecodeError):
        return {"content": base64.b64encode(blob).decode(), "encoding": "base64"}
