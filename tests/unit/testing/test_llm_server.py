"""The offline model is accepted by the official clients: every call that `llm` actions rely on, by their own code."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from treadle.testing.llm.answers import Asked, Rule, made_up, sample, scripted
from treadle.testing.llm.server import Answer, LlmServer

SCHEMA = {
    "type": "object",
    "properties": {"vote": {"enum": ["yes", "no"]}, "points": {"type": "integer", "minimum": 1, "maximum": 5}},
    "required": ["vote", "points"],
}
USER: Any = [{"role": "user", "content": "Is it good?"}]


def with_server(answer: Answer, work: Callable[[LlmServer], Awaitable[Any]]) -> Any:
    async def whole() -> Any:
        async with LlmServer(lambda asked: answer) as server:
            return await work(server)

    return asyncio.run(whole())


def by_openai(answer: Answer, **given: Any) -> Any:
    async def work(server: LlmServer) -> Any:
        async with openai.AsyncOpenAI(api_key="k", base_url=server.openai_url, max_retries=0) as client:
            reply = await client.chat.completions.create(model="m", messages=USER, **given)
            return [chunk async for chunk in reply] if given.get("stream") else reply

    return with_server(answer, work)


def by_anthropic(answer: Answer, **given: Any) -> Any:
    async def work(server: LlmServer) -> Any:
        async with anthropic.AsyncAnthropic(api_key="k", base_url=server.anthropic_url, max_retries=0) as client:
            reply = await client.messages.create(model="m", max_tokens=100, messages=USER, **given)
            return [event async for event in reply] if given.get("stream") else reply

    return with_server(answer, work)


def test_openai_reads_a_whole_answer_with_its_usage() -> None:
    reply = by_openai(Answer(text="Quite good.", input_tokens=12, output_tokens=3))
    assert reply.choices[0].message.content == "Quite good."
    assert reply.choices[0].finish_reason == "stop"
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (12, 3)


def test_openai_reads_a_streamed_answer_with_its_usage() -> None:
    chunks = by_openai(Answer(text="Quite good.", output_tokens=3), stream=True, stream_options={"include_usage": True})
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "Quite good."
    assert len(chunks) > 3
    assert chunks[-1].usage.completion_tokens == 3


def test_openai_reads_a_refusal_and_a_cut_off_answer() -> None:
    assert by_openai(Answer(text="I cannot.", finish="refusal")).choices[0].message.refusal == "I cannot."
    assert by_openai(Answer(text="Qui", finish="length")).choices[0].finish_reason == "length"


def test_openai_knows_a_rate_limit_and_its_retry_after() -> None:
    with pytest.raises(openai.RateLimitError) as caught:
        by_openai(Answer(status=429, headers={"retry-after": "7"}, error="slow down"))
    assert caught.value.response.headers["retry-after"] == "7"
    assert "slow down" in str(caught.value)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, openai.BadRequestError),
        (401, openai.AuthenticationError),
        (404, openai.NotFoundError),
        (500, openai.InternalServerError),
    ],
)
def test_openai_knows_the_class_of_every_error(status: int, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        by_openai(Answer(status=status))


def test_anthropic_reads_a_whole_answer_with_its_usage() -> None:
    reply = by_anthropic(Answer(text="Quite good.", input_tokens=12, output_tokens=3))
    assert reply.content[0].text == "Quite good."
    assert reply.stop_reason == "end_turn"
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (12, 3)


def test_anthropic_reads_a_streamed_answer_in_the_order_of_its_events() -> None:
    events = by_anthropic(Answer(text="Quite good."), stream=True)
    kinds = [event.type for event in events if event.type != "ping"]
    assert kinds[:2] == ["message_start", "content_block_start"]
    assert kinds[-3:] == ["content_block_stop", "message_delta", "message_stop"]
    assert "".join(event.delta.text for event in events if event.type == "content_block_delta") == "Quite good."


def test_anthropic_reads_the_input_of_a_forced_tool() -> None:
    tool: Any = {"name": "answer", "input_schema": SCHEMA}
    reply = by_anthropic(Answer(json={"vote": "yes"}), tools=[tool], tool_choice={"type": "tool", "name": "answer"})
    assert reply.stop_reason == "tool_use"
    assert reply.content[0].input == {"vote": "yes"}


@pytest.mark.parametrize(("status", "kind"), [(429, anthropic.RateLimitError), (529, anthropic.InternalServerError)])
def test_anthropic_knows_the_class_of_an_error(status: int, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        by_anthropic(Answer(status=status))


def test_every_question_is_recorded_with_its_schema_and_key() -> None:
    async def work(server: LlmServer) -> Asked:
        async with openai.AsyncOpenAI(api_key="my key", base_url=server.openai_url) as client:
            form: Any = {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}
            await client.chat.completions.create(model="m", messages=USER, response_format=form)
        return server.asked[0]

    asked = with_server(Answer(text="{}"), work)
    assert (asked.api, asked.model, asked.text) == ("openai", "m", "Is it good?")
    assert (asked.schema, asked.key, asked.stream) == (SCHEMA, "my key", False)


def test_what_is_made_up_fits_the_schema_and_is_the_same_every_time() -> None:
    asked = Asked(api="openai", model="m", text="Is it good?", schema=SCHEMA)
    answer = made_up(asked).json
    assert answer == made_up(asked).json
    assert answer["vote"] in ("yes", "no")
    assert 1 <= answer["points"] <= 5
    assert {sample(SCHEMA, seed)["vote"] for seed in range(8)} == {"yes", "no"}


def test_a_rule_that_is_used_up_makes_room_for_the_next() -> None:
    script = scripted([Rule(when="good", status=429, retry_after=2, times=1), Rule(when="good", text="yes")])
    asked = Asked(api="openai", model="m", text="Is it good?")
    first, second = script(asked), script(asked)
    assert (first.status, first.headers) == (429, {"retry-after": "2"})
    assert (second.status, second.said) == (200, "yes")


def test_the_command_serves_a_script_and_prints_its_address(tmp_path: Path) -> None:
    (tmp_path / "answers.yaml").write_text("- {when: good, text: 'Yes, it is.'}\n")
    command = [sys.executable, "-m", "treadle.testing.llm.server", "--script", str(tmp_path / "answers.yaml")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            url = server.stdout.readline().strip()
            assert re.fullmatch(r"http://127\.0\.0\.1:\d+/v1", url)
            with openai.OpenAI(api_key="k", base_url=url) as client:
                reply = client.chat.completions.create(model="m", messages=USER)
            assert reply.choices[0].message.content == "Yes, it is."
        finally:
            server.terminate()
