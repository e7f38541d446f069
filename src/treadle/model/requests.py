"""Requests of a task to its own run. They travel with the attempt's result and are applied with it, exactly once."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from treadle.model.ids import RunId

Json = Any


class Request(Struct, tag_field="request", omit_defaults=True, frozen=True):
    """A request of a task to its own run, applied together with its result, exactly once."""


class Emit(Request, tag="emit", frozen=True):
    type: str
    data: Json = None


class Send(Request, tag="send", frozen=True):
    signal: str
    key: Json = None
    data: Json = None
    run: RunId | None = None


class WriteArtifact(Request, tag="write_artifact", frozen=True):
    name: str
    digest: str
    size: int
    content_type: str | None = None


class ChangeGroup(Request, tag="change_group", frozen=True):
    verb: Literal["cancel_group", "add_siblings", "close_group"]
    group: str
    items: list[Json] | None = None
    count: int | None = None
    join: Literal["fire", "drop"] = "fire"


AnyRequest = Emit | Send | WriteArtifact | ChangeGroup
