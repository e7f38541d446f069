"""Artifacts: content by its digest, names by the run."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from msgspec.structs import replace

from tests.unit.actions.calls import FACTS, error, reply
from treadle.actions.blobs import MemoryArtifacts
from treadle.actions.protocol import Done
from treadle.model.requests import WriteArtifact


def write(store: MemoryArtifacts, config: dict[str, Any], input: Any = None) -> Done:
    answer = reply("artifact_write", config, input, facts=replace(FACTS, artifacts=store))
    assert isinstance(answer, Done), answer
    return answer


def read(store: MemoryArtifacts, name: str, requests: tuple[Any, ...] = ()) -> Any:
    return reply("artifact_read", {"name": name}, facts=replace(FACTS, artifacts=store), requests=requests)


def test_writing_gives_a_reference_and_asks_the_run_to_bind_the_name() -> None:
    done = write(MemoryArtifacts(), {"name": "report"}, {"content": "grün"})
    digest = "sha256:" + hashlib.sha256("grün".encode()).hexdigest()
    assert done.output == {
        "name": "report",
        "digest": digest,
        "size": 5,
        "content_type": "text/plain; charset=utf-8",
    }
    assert done.requests == (WriteArtifact("report", digest, 5, "text/plain; charset=utf-8"),)


@pytest.mark.parametrize("content", ["", "text", {"a": [1, None]}, [], 0, False, None, "[1]"])
def test_what_is_read_is_what_was_written(content: Any) -> None:
    store = MemoryArtifacts()
    store.bind(write(store, {"name": "x", "content": {"literal": content}}).requests[0])  # type: ignore[arg-type]
    assert read(store, "x").output["content"] == content


def test_a_name_is_not_bound_before_the_run_has_accepted_it() -> None:
    store = MemoryArtifacts()
    write(store, {"name": "report", "content": "x"})
    assert read(store, "report").error.kind == "NOT_FOUND"


def test_a_later_step_of_the_same_task_reads_its_own_writing() -> None:
    store = MemoryArtifacts()
    store.bind(write(store, {"name": "x", "content": "old"}).requests[0])  # type: ignore[arg-type]
    own = write(store, {"name": "x", "content": "new"}).requests
    assert read(store, "x", own).output["content"] == "new"
    assert read(store, "x").output["content"] == "old"


def test_the_same_content_has_the_same_address() -> None:
    store = MemoryArtifacts()
    first = write(store, {"name": "a", "content": "x"}).output["digest"]
    assert write(store, {"name": "b", "content": "x"}).output["digest"] == first


def test_binary_content_comes_back_as_base64_and_says_so() -> None:
    store = MemoryArtifacts()
    store.bind(WriteArtifact("logo", store.put(b"\xff\xfe"), 2, "image/png"))
    assert read(store, "logo").output["content"] == "//4="
    assert read(store, "logo").output["encoding"] == "base64"


def test_an_unknown_name_says_what_is_nearest() -> None:
    store = MemoryArtifacts()
    store.bind(WriteArtifact("report", store.put(b""), 0))
    assert "did you mean 'report'?" in read(store, "raport").error.message


def test_lost_content_is_named_by_its_digest() -> None:
    store = MemoryArtifacts()
    store.bind(WriteArtifact("report", "sha256:gone", 0))
    assert "sha256:gone" in read(store, "report").error.message


@pytest.mark.parametrize("kind", ["artifact_write", "artifact_read"])
def test_an_attempt_without_a_store_says_so(kind: str) -> None:
    assert "needs an artifact store" in error(kind, {"name": "x", "content": ""}).message
