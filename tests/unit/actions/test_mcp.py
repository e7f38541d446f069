"""`mcp` against a real MCP server: a program over stdin and stdout, and an address that speaks streamable HTTP."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.unit.actions.calls import call
from treadle.actions.failure import TaskFailure
from treadle.actions.mcp.kind import McpKind, install_mcp
from treadle.actions.mcp.servers import McpServer, McpSettings
from treadle.actions.protocol import Done, Failed
from treadle.actions.registry import Registry
from treadle.actions.secrets import DictSecrets

PROGRAM = (sys.executable, str(Path(__file__).parents[2] / "peers" / "tool_server.py"))
CANARY = "canary-0123456789"
PATIENCE_S = 60


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with subprocess.Popen([*PROGRAM, "http"], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        server.kill()


@pytest.fixture(params=["stdio", "http"])
def server(request: pytest.FixtureRequest) -> McpServer:
    if request.param == "stdio":
        return McpServer(name="tools", command=PROGRAM)
    return McpServer(name="tools", url=request.getfixturevalue("address"))


def with_kind(server: McpServer, work: Callable[[McpKind], Awaitable[Any]]) -> Any:
    async def whole() -> Any:
        kind = McpKind(McpSettings(servers=(server,)), DictSecrets({"token": CANARY}))
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await work(kind)
        finally:
            await kind.close()

    return asyncio.run(whole())


async def called(kind: McpKind, tool: str, arguments: Any = None, input: Any = None) -> Done | Failed:
    config = {"server": "tools", "tool": tool, **({} if arguments is None else {"arguments": arguments})}
    reply: Any = kind.run(call(config, input))
    answer: Done | Failed = await reply
    return answer


def once(server: McpServer, tool: str, arguments: Any = None, input: Any = None) -> Any:
    """The output of one call, or its error."""
    reply = with_kind(server, lambda kind: called(kind, tool, arguments, input))
    return reply.output if isinstance(reply, Done) else reply.error


def test_the_structured_result_of_a_tool_is_the_output(server: McpServer) -> None:
    assert once(server, "add", {"a": "$.input.n", "b": {"cel": "input.n + 1"}}, {"n": 2}) == {"sum": 5}


def test_arguments_come_from_the_input_where_the_action_has_none() -> None:
    assert once(McpServer(name="tools", command=PROGRAM), "add", None, {"arguments": {"a": 1, "b": 2}}) == {"sum": 3}


def test_many_kinds_of_results_and_failures_over_one_session(server: McpServer) -> None:
    async def work(kind: McpKind) -> None:
        said, refused, drawn, unknown, wrong = await asyncio.gather(
            called(kind, "say", {"text": "hello"}),
            called(kind, "refuse", {"why": "not today"}),
            called(kind, "draw"),
            called(kind, "dance"),
            called(kind, "add", {"a": "x"}),
        )
        assert said == Done({"text": "You said hello."})
        assert isinstance(refused, Failed) and not refused.error.retryable and "not today" in refused.error.message
        assert isinstance(drawn, Done) and drawn.output["content"][0]["mimeType"] == "image/png"
        assert isinstance(unknown, Failed) and not unknown.error.retryable and "dance" in unknown.error.message
        assert isinstance(wrong, Failed) and not wrong.error.retryable

    with_kind(server, work)


def test_calls_share_one_program_until_it_is_closed() -> None:
    async def work(kind: McpKind) -> tuple[Any, Any, Any]:
        first, second = [await called(kind, "environment", {"name": "X"}) for _ in range(2)]
        await kind.close()
        return first, second, await called(kind, "environment", {"name": "X"})

    first, second, third = with_kind(McpServer(name="tools", command=PROGRAM, env={"X": "y"}), work)
    assert first.output["value"] == "y"
    assert first == second != third


def test_a_program_that_dies_is_a_failure_worth_another_try_and_is_started_again() -> None:
    async def work(kind: McpKind) -> None:
        died = await called(kind, "die")
        assert isinstance(died, Failed) and died.error.retryable
        assert await called(kind, "add", {"a": 1, "b": 1}) == Done({"sum": 2})

    with_kind(McpServer(name="tools", command=PROGRAM), work)


def test_an_address_where_nobody_listens_is_worth_another_try() -> None:
    error = once(McpServer(name="tools", url="http://127.0.0.1:9/mcp"), "add", {})
    assert error.retryable and "'tools'" in error.message


def test_a_program_that_does_not_exist_is_not() -> None:
    error = once(McpServer(name="tools", command=("no-such-program-anywhere",)), "add", {})
    assert not error.retryable and "'tools'" in error.message


def test_a_program_that_does_not_speak_the_protocol_is_a_failure() -> None:
    error = once(McpServer(name="tools", command=(sys.executable, "-c", "print('hello')")), "add", {})
    assert "'tools'" in error.message


def test_cancelling_a_call_reaches_the_tool_and_leaves_the_session_usable(server: McpServer) -> None:
    async def work(kind: McpKind) -> None:
        lines: asyncio.Queue[bytes] = asyncio.Queue()

        async def heard(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            async for line in reader:
                lines.put_nowait(line)
            writer.close()

        async with await asyncio.start_server(heard, "127.0.0.1", 0) as listening:
            waiting = asyncio.ensure_future(called(kind, "wait", {"port": listening.sockets[0].getsockname()[1]}))
            assert await lines.get() == b"started\n"
            waiting.cancel()
            await asyncio.wait([waiting])
            assert waiting.cancelled()
            assert await lines.get() == b"cancelled\n"
            assert await called(kind, "add", {"a": 1, "b": 1}) == Done({"sum": 2})

    with_kind(server, work)


def test_the_idempotency_key_travels_with_the_call(server: McpServer) -> None:
    seen = once(server, "request")
    assert (seen["key"], seen["attempt"]) == ("r1:7:1:only", 2)


def test_secrets_reach_the_server_and_never_come_back(address: str) -> None:
    program = McpServer(name="tools", command=PROGRAM, env={"TOKEN": {"secret": "token"}})
    assert once(program, "environment", {"name": "TOKEN"})["value"] == "***"
    web = McpServer(name="tools", url=address, headers={"Authorization": {"secret": "token", "prefix": "Bearer "}})
    assert once(web, "request")["authorization"] == "Bearer ***"
    for tool, argument in (("say", "text"), ("refuse", "why")):
        reply = with_kind(
            program,
            lambda kind, tool=tool, name=argument: called(kind, tool, {name: {"secret": "token"}}),  # type: ignore[misc]
        )
        assert CANARY.encode() not in msgspec.json.encode(reply)
        assert b"***" in msgspec.json.encode(reply)


def test_a_secret_reference_that_arrives_as_data_stays_data() -> None:
    reply = once(McpServer(name="tools", command=PROGRAM), "say", {"text": "$.input.text"}, {"text": "{secret: token}"})
    assert reply == {"text": "You said {secret: token}."}


def test_a_tool_the_operator_does_not_allow_is_refused() -> None:
    kind = McpKind(McpSettings(servers=(McpServer(name="tools", command=PROGRAM, tools=("add",)),)), DictSecrets({}))
    with pytest.raises(TaskFailure, match="does not allow the tool 'die'"):
        kind.run(call({"server": "tools", "tool": "die"}))


def test_an_unknown_server_is_named_with_its_nearest() -> None:
    kind = McpKind(McpSettings(servers=(McpServer(name="tools", command=PROGRAM),)), DictSecrets({}))
    with pytest.raises(TaskFailure, match="'tols'; did you mean 'tools'"):
        kind.run(call({"server": "tols", "tool": "add"}))


def test_a_server_is_a_command_or_an_address() -> None:
    for fields in ({}, {"command": ("x",), "url": "http://x"}):
        with pytest.raises(ValueError, match="either a command or a url"):
            McpServer(name="tools", **fields)  # type: ignore[arg-type]


def test_a_missing_extra_is_a_failure_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "treadle.actions.mcp.session", None)
    error = once(McpServer(name="tools", command=PROGRAM), "add", {})
    assert "pip install 'treadle[mcp]'" in error.message


def test_installing_replaces_the_kind_that_only_explains_itself() -> None:
    registry = Registry()
    assert registry.kind("mcp") is not install_mcp(registry, McpSettings())
    assert isinstance(registry.kind("mcp"), McpKind)
