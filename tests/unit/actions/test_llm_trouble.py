"""`llm` when things go wrong: every class of error, half answers, refusals, hang-ups; and the key stays out of it."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from tests.unit.actions.calls import FACTS, call
from tests.unit.actions.llm_calls import BOTH, KEY, VOTE, answered, kind_for, profile, tell
from treadle.actions.llm.kind import PARTIAL
from treadle.actions.llm.profiles import Profile
from treadle.actions.protocol import AttemptFacts, Failed
from treadle.runtime.execute.progress import continued
from treadle.testing.llm.server import Answer, LlmServer

ASK = {"prompt": "Is it good?"}
STREAM = {**ASK, "stream": True}


@pytest.mark.parametrize("provider", BOTH)
@pytest.mark.parametrize("config", [ASK, STREAM], ids=["whole", "stream"])
@pytest.mark.parametrize(
    ("status", "retryable"),
    [(400, False), (401, False), (403, False), (404, False), (429, True), (500, True), (529, True)],
)
def test_the_status_decides_whether_trying_again_may_help(
    provider: str, config: dict[str, Any], status: int, retryable: bool
) -> None:
    told = tell(Answer(status=status, error="the reason"), config, provider=provider)
    assert told.error.kind == "TASK_FAILED"
    assert (told.error.details["status"], told.error.retryable) == (status, retryable)
    assert "the reason" in told.error.message and "'local'" in told.error.message
    assert len(told.asked) == 1, "the client must not retry by itself"


@pytest.mark.parametrize("provider", BOTH)
def test_retry_after_is_kept_for_whoever_plans_the_next_try(provider: str) -> None:
    told = tell(Answer(status=429, headers={"retry-after": "7"}), ASK, provider=provider)
    assert told.error.details["retry_after_ms"] == 7_000


def test_a_server_that_is_not_there_is_worth_another_try() -> None:
    kind = kind_for(Profile(name="gone", model="m", base_url="http://127.0.0.1:9/v1"))
    reply = asyncio.run(answered(kind, call(ASK)))
    assert isinstance(reply, Failed)
    assert reply.error.retryable and "'gone'" in reply.error.message


@pytest.mark.parametrize("provider", BOTH)
def test_a_body_that_is_not_json_is_worth_another_try(provider: str) -> None:
    error = tell(Answer(raw="<html>gateway</html>"), ASK, provider=provider).error
    assert error.retryable


@pytest.mark.parametrize("provider", BOTH)
def test_a_stream_that_breaks_off_is_a_failure_worth_another_try(provider: str) -> None:
    error = tell(Answer(text="Quite good, I think.", break_after=4), STREAM, provider=provider).error
    assert error.retryable


@pytest.mark.parametrize("provider", BOTH)
@pytest.mark.parametrize("config", [ASK, STREAM], ids=["whole", "stream"])
def test_a_refusal_has_a_kind_of_its_own(provider: str, config: dict[str, Any]) -> None:
    error = tell(Answer(text="I will not.", finish="refusal"), config, provider=provider).error
    assert (error.kind, error.retryable) == ("LLM_REFUSED", False)


@pytest.mark.parametrize("provider", BOTH)
@pytest.mark.parametrize("config", [ASK, STREAM], ids=["whole", "stream"])
def test_an_answer_that_was_cut_off_is_not_taken_for_a_whole_one(provider: str, config: dict[str, Any]) -> None:
    error = tell(Answer(text="Quite g", finish="length"), {**config, "max_tokens": 2}, provider=provider).error
    assert (error.kind, error.retryable) == ("LLM_CUT_OFF", False)
    assert "max_tokens = 2" in error.message
    assert error.details["text"] == "Quite g"


@pytest.mark.parametrize(
    ("said", "complaint"), [("yes, of course", "not JSON"), ('{"vote": "maybe"}', "$.vote"), ("{}", "vote")]
)
def test_an_answer_that_misses_the_schema_is_a_schema_failure_with_the_raw_text(said: str, complaint: str) -> None:
    error = tell(Answer(text=said), {**ASK, "response_schema": VOTE}).error
    assert (error.kind, error.retryable) == ("SCHEMA", True)
    assert complaint in error.message
    assert error.details["text"] == said


def test_the_raw_text_in_an_error_is_capped() -> None:
    error = tell(Answer(text="x" * 100_000), {**ASK, "response_schema": VOTE}).error
    assert len(error.details["text"]) == 4_000


@pytest.mark.parametrize("provider", BOTH)
@pytest.mark.parametrize("status", [200, 400, 401, 500])
def test_the_key_is_nowhere_in_what_comes_back(provider: str, status: int) -> None:
    echo = f"your key {KEY} is noted"
    told = tell(Answer(status=status, error=echo, error_code=KEY, text=echo), ASK, provider=provider)
    assert told.asked[0].key == KEY
    assert KEY.encode() not in msgspec.json.encode(told.reply)


@pytest.mark.parametrize("provider", BOTH)
@pytest.mark.parametrize("config", [ASK, STREAM], ids=["whole", "stream"])
def test_cancelling_closes_the_connection(provider: str, config: dict[str, Any]) -> None:
    async def whole() -> None:
        slow = Answer(text="Quite good, I think.", hold=asyncio.Event(), hold_after=3)
        async with LlmServer(lambda asked: slow) as server:
            kind = kind_for(profile(server, provider))
            asking = asyncio.ensure_future(answered(kind, call(config)))
            await asyncio.wait_for(server.arrived.wait(), 30)
            asking.cancel()
            await asyncio.wait([asking])
            assert asking.cancelled()
            await asyncio.wait_for(server.hung_up.wait(), 30)
            await kind.close()

    asyncio.run(whole())


def test_one_slow_answer_does_not_hold_up_another() -> None:
    async def whole() -> None:
        hold = asyncio.Event()
        async with LlmServer(lambda asked: Answer(text="ok", hold=hold if "slow" in asked.text else None)) as server:
            kind = kind_for(profile(server))
            slow = asyncio.ensure_future(answered(kind, call({"prompt": "slow"})))
            await asyncio.wait_for(server.arrived.wait(), 30)
            quick = await answered(kind, call({"prompt": "quick"}))
            assert not isinstance(quick, Failed) and not slow.done()
            hold.set()
            assert not isinstance(await slow, Failed)
            await kind.close()

    asyncio.run(whole())


def listening(heard: list[Any]) -> AttemptFacts:
    return msgspec.structs.replace(FACTS, emit=lambda kind, data: heard.append((kind, data)))


@pytest.mark.parametrize("provider", BOTH)
@pytest.mark.parametrize("schema", [{}, {"response_schema": VOTE}], ids=["text", "json"])
def test_streamed_pieces_are_told_in_order_and_join_to_the_answer(provider: str, schema: dict[str, Any]) -> None:
    heard: list[Any] = []
    answer = Answer(json={"vote": "yes"}) if schema else Answer(text="Quite good, I think.")
    told = tell(answer, {**STREAM, **schema}, provider=provider, facts=listening(heard))
    assert {kind for kind, _ in heard} == {PARTIAL}
    assert len(heard) > 1
    whole = heard[0][1]
    for _, piece in heard[1:]:
        whole = continued(PARTIAL, whole, PARTIAL, piece)
    assert whole == {"step": "only", "at": 0, "text": answer.said}
    assert told.output == tell(answer, {**STREAM, **schema}, provider=provider).output


def test_pieces_of_different_tries_are_not_joined() -> None:
    piece = {"step": "a", "at": 0, "text": "abc"}
    assert continued(PARTIAL, piece, PARTIAL, {"step": "a", "at": 0, "text": "abc"}) is None
    assert continued(PARTIAL, piece, PARTIAL, {"step": "b", "at": 3, "text": "d"}) is None


def test_without_stream_nothing_is_told() -> None:
    heard: list[Any] = []
    tell(Answer(text="ok"), ASK, facts=listening(heard))
    assert heard == []


def test_a_streamed_piece_is_told_before_the_answer_is_complete() -> None:
    async def whole() -> None:
        hold, first = asyncio.Event(), asyncio.Event()
        facts = msgspec.structs.replace(FACTS, emit=lambda kind, data: first.set())
        slow = Answer(text="Quite good, I think.", hold=hold, hold_after=3)
        async with LlmServer(lambda asked: slow) as server:
            kind = kind_for(profile(server))
            asking = asyncio.ensure_future(answered(kind, call(STREAM, facts=facts)))
            await asyncio.wait_for(first.wait(), 30)
            assert not asking.done()
            hold.set()
            assert not isinstance(await asking, Failed)
            await kind.close()

    asyncio.run(whole())
