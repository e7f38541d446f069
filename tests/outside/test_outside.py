"""How the kinds come into a registry, and what the language says about their configs."""

from __future__ import annotations

import ssl
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest

from tests.outside.peers import LOOPBACK, answering, output, peer, run
from tests.unit.actions.calls import call
from tests.unit.actions.calls import error as offline_error
from treadle.actions.failure import TaskFailure
from treadle.actions.http import HttpKind, classified
from treadle.actions.outside import OutsideSettings, install_outside
from treadle.actions.protocol import Call, Done, Reply
from treadle.actions.registry import Registry
from treadle.actions.shell import ShellKind
from treadle.language import load_text


def test_a_registry_is_offline_until_the_outside_is_installed() -> None:
    registry = Registry()
    assert "not executed here" in offline_error("http", {"url": "https://example.com"}, registry=registry).message
    install_outside(registry)
    assert isinstance(registry.kind("http"), HttpKind)
    assert isinstance(registry.kind("shell"), ShellKind)
    assert "shell actions are off" in offline_error("shell", {"argv": ["true"]}, registry=registry).message


def test_a_kind_of_somebody_elses_stays() -> None:
    class Fake:
        name = "http"

        def run(self, call: Call) -> Reply:
            return Done({"fake": True})

    registry = Registry()
    registry.register(Fake())
    install_outside(registry)
    assert isinstance(registry.kind("http"), Fake)


def test_a_closed_client_can_be_used_again() -> None:
    async def whole() -> None:
        registry = Registry()
        install_outside(registry, OutsideSettings(net=LOOPBACK))
        async with peer(answering()) as server:
            for _ in range(2):
                assert output(await registry.kind("http").run(call({"url": server.url})))["status"] == 200  # type: ignore[misc]
                await registry.close()
        await registry.close()

    run(whole())


def problems(action: dict[str, Any]) -> list[str]:
    import json

    text = json.dumps({"workflow": "w", "nodes": {"a": {"action": action}}})
    return [str(problem) for problem in load_text(text, "w.json").problems]


@pytest.mark.parametrize(
    "action",
    [
        {"kind": "http", "url": {"secret": "HOOK"}},
        {"kind": "http", "url": {"cel": "'https://x.example/' + input.id"}},
        {
            "kind": "http",
            "url": "https://x.example",
            "headers": {"A": {"secret": "K"}, "B": {"secret": "K", "prefix": "x"}},
        },
        {"kind": "http", "url": "$.input.url", "headers": "$.input.headers", "query": {"q": "$.input.q"}},
        {"kind": "http", "url": "https://x.example", "body": {"key": {"secret": "K"}}},
        {"kind": "shell", "argv": ["ls", "$.input.dir", {"cel": "input.n"}, 3], "env": {"K": {"secret": "K"}}},
        {"kind": "shell", "argv": "$.input.argv", "stdin": {"secret": "K"}},
    ],
)
def test_the_language_accepts_what_the_kinds_take(action: dict[str, Any]) -> None:
    assert problems(action) == []


@pytest.mark.parametrize(
    "action",
    [
        {"kind": "http", "url": "https://x.example", "headers": {"A": "$.input["}},
        {"kind": "http", "url": "https://x.example", "query": {"A": {"cel": "1 +"}}},
        {"kind": "shell", "argv": ["ls", "$.input["]},
        {"kind": "shell", "argv": ["ls", {"secret": "K"}]},
        {"kind": "shell", "argv": "ls | wc"},
        {"kind": "shell", "argv": ["ls"], "env": {"A": {"cel": "1 +"}}},
    ],
)
def test_a_mistake_inside_a_config_is_found_at_deploy(action: dict[str, Any]) -> None:
    assert problems(action)


def test_a_peer_that_cannot_prove_who_it_is_is_no_passing_trouble() -> None:
    problem = ssl.SSLCertVerificationError("self-signed certificate")
    place: Any = SimpleNamespace(host="x.example", port=443, ssl=True, is_ssl=True)
    for raised in (problem, aiohttp.ClientConnectorCertificateError(place, problem)):
        meant = classified(raised, "x.example")
        assert isinstance(meant, TaskFailure)
        assert not meant.retryable
        assert "cannot be trusted" in str(meant)
