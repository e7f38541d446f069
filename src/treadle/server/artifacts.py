"""Artifacts of runs: lists, bytes with their type and ranges, uploads of people.

Promises that bytes of a run never act as a page of this service: only types that cannot carry script are shown inline,
everything else is a download, and no answer may be taken for another type than its own.
"""

from __future__ import annotations

import re
from typing import Annotated, Any
from urllib.parse import quote

from msgspec import Meta, Struct

from treadle.runtime.execute.artifacts import Artifact
from treadle.runtime.run import Run
from treadle.server.call import HttpAnswer, HttpCall, ListPage
from treadle.server.door import matches
from treadle.server.paging import PageQuery, page_of
from treadle.server.problems import HttpProblem, not_found
from treadle.server.routes import APPROVER, VIEWER, Route

HARMLESS = frozenset(
    {"image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "text/plain", "application/json"}
)
"""Types that browsers show and that cannot carry script. SVG, HTML, XML and PDF are downloads."""
UNKNOWN = "application/octet-stream"
POLICY = "default-src 'none'; sandbox; frame-ancestors 'none'"
"""For the bytes of a run, should a browser open them as a page all the same."""
_RANGE = re.compile(r"bytes=(\d{0,15})-(\d{0,15})")
_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,63}/[a-z0-9][a-z0-9!#$&^_.+-]{0,63}")


class ArtifactItem(Struct):
    """A named blob of a run."""

    name: str
    size: int
    content_type: str | None
    digest: str
    run: Annotated[str, Meta(description="The run that has it: this one, or one it inherits from.")]
    by: Annotated[str | None, Meta(description="The person who has added it; null: the run has written it.")]


class ArtifactPage(Struct):
    """A run's artifacts, by name."""

    items: list[ArtifactItem]
    next: str | None = None


def item_of(artifact: Artifact) -> ArtifactItem:
    """An artifact as lists show it."""
    return ArtifactItem(*(getattr(artifact, name) for name in ArtifactItem.__struct_fields__))


async def list_artifacts(call: HttpCall) -> HttpAnswer:
    found = await call.client.run(call.path["run"]).artifacts()
    shown, more = page_of(call, found.values(), lambda artifact: [artifact.name])
    return HttpAnswer(ListPage([item_of(artifact) for artifact in shown], more))


async def read(call: HttpCall) -> HttpAnswer:
    run = call.client.run(call.path["run"])
    artifact = (await run.artifacts()).get(call.path["name"])
    if artifact is None:
        raise not_found(f"artifact {call.path['name']!r} of run {run.id!r}")
    return await bytes_of(call, run, artifact)


async def bytes_of(call: HttpCall, run: Run, artifact: Artifact) -> HttpAnswer:
    """The bytes of an artifact, or the part of them that the request asks for."""
    etag = artifact.digest.partition(":")[2]
    kind = type_of(artifact.content_type)
    headers = {
        "accept-ranges": "bytes",
        "content-disposition": disposition(artifact.name, kind in HARMLESS),
        "content-security-policy": POLICY,
    }
    shown = f"{kind}; charset=utf-8" if kind in ("text/plain", "application/json") else kind
    if matches(call.request.headers.get("if-none-match"), etag):
        return HttpAnswer(b"", 200, headers, shown, etag)
    content = await run.artifact(artifact.name)
    part = _part(call, len(content), etag)
    if part is None:
        return HttpAnswer(content, 200, headers, shown, etag)
    first, last = part
    headers["content-range"] = f"bytes {first}-{last}/{len(content)}"
    return HttpAnswer(content[first : last + 1], 206, headers, shown, etag)


def type_of(content_type: str | None) -> str:
    """The media type to send; one that is odd or missing is no type at all."""
    kind = (content_type or "").partition(";")[0].strip().lower()
    return kind if _TYPE.fullmatch(kind) else UNKNOWN


def disposition(name: str, inline: bool) -> str:
    """Content-Disposition with a name that no header can be broken by."""
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", name)[:100] or "artifact"
    return (
        f"{'inline' if inline else 'attachment'}; filename=\"{plain}\"; filename*=UTF-8''{quote(name[:200], safe='')}"
    )


def _part(call: HttpCall, size: int, etag: str) -> tuple[int, int] | None:
    """First and last byte of the range that is asked for; None: everything. Several ranges are answered whole."""
    text = call.request.headers.get("range")
    condition = call.request.headers.get("if-range")
    if text is None or (condition is not None and condition.strip('"') != etag):
        return None
    match = _RANGE.fullmatch(text.strip())
    if match is None or not (match[1] or match[2]):
        return None
    first, last = (int(match[1]), int(match[2] or size - 1)) if match[1] else (size - int(match[2]), size - 1)
    first, last = max(first, 0), min(last, size - 1)
    if first > last or (not match[1] and not int(match[2])):
        raise HttpProblem(
            "BAD_REQUEST",
            f"the artifact has {size} bytes, and the range lies outside",
            status=416,
            headers={"content-range": f"bytes */{size}"},
        )
    return first, last


async def upload(call: HttpCall) -> HttpAnswer:
    run, name = call.client.run(call.path["run"]), call.path["name"]
    kind = type_of(call.request.headers.get("content-type"))
    await call.service.require_engine()
    before = (await run.artifacts()).get(name)
    artifact = await run.add_artifact(name, call.raw, kind, by=call.who.user)
    known = before is not None and before.run == run.id
    headers = {} if known else {"location": f"/api/v1/runs/{quote(run.id, safe='')}/artifacts/{quote(name, safe='')}"}
    return HttpAnswer(item_of(artifact), 200 if known else 201, headers)


def _route(method: Any, path: str, handler: Any, summary: str, **more: Any) -> Route:
    fields: dict[str, Any] = {"access": VIEWER, "about": "run", "noun": "runs", "problems": ("NOT_FOUND",), **more}
    return Route(method=method, path=path, handler=handler, summary=summary, **fields)


ROUTES = (
    _route(
        "GET",
        "/runs/{run}/artifacts",
        list_artifacts,
        "Artifacts of a run, by name",
        query=PageQuery,
        answers={200: ArtifactPage},
    ),
    _route(
        "GET",
        "/runs/{run}/artifacts/{name}",
        read,
        "The bytes of an artifact",
        description="With `Range: bytes=…` a part of them. Types that could carry script are downloads.",
        answers={200: bytes, 206: bytes},
        answer_type=UNKNOWN,
        other_types=("*/*",),
        reads_headers=("If-None-Match", "Range", "If-Range"),
    ),
    _route(
        "PUT",
        "/runs/{run}/artifacts/{name}",
        upload,
        "Add an artifact to a run, such as an attachment",
        description="It never replaces an artifact that the run itself has written.",
        access=APPROVER,
        body=bytes,
        media_types=("*/*",),
        is_upload=True,
        answers={200: ArtifactItem, 201: ArtifactItem},
        problems=("NOT_FOUND", "INVALID_STATE", "DUPLICATE", "NO_ENGINE"),
    ),
)
