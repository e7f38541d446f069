"""The adapter to pydantic-ai, which only this module and those of the providers import.

Owns the translation of questions and answers, and the classes of trouble. Promises one request per call (no client
retries: retries are ours, and durable) and a connection that is closed when the caller is cancelled. It takes
seconds to import, so import it in a thread. Each provider's own library (`warm`) takes a second more; only those in use
are imported.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import httpx2
from msgspec import UNSET
from pydantic_ai import exceptions
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    SystemPromptPart,
    TextPart,
    TextPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from treadle.actions.llm.profiles import Profile
from treadle.actions.llm.question import Message, Question
from treadle.actions.llm.verdict import Exchange
from treadle.actions.protocol import Failed, failed
from treadle.expression.words import clip

Json = Any
TROUBLE = (exceptions.AgentRunError, exceptions.UserError, httpx2.TransportError)
"""Exceptions that `ask` may raise; `failure` turns them into errors."""

_NO_KEY = "no-key"
"""The key of a server that needs none: without one, both clients would look for a key in the environment."""
_CONNECT_S = 10.0
_TOOL = "answer"
_WORDS_MAX = 500
_FINISHES = {"length": "length", "content_filter": "refused", "error": "error"}


def connections(proxy: str | None) -> httpx2.AsyncClient:
    """A pool of connections, for one event loop. It does not look at the environment and follows no redirects."""
    return httpx2.AsyncClient(trust_env=False, proxy=proxy)


async def ask(
    question: Question, key: str | None, http: httpx2.AsyncClient, partial: Callable[[str], None] | None
) -> Exchange:
    """Asks once; with `partial`, tells every piece of the answer as it arrives."""
    model = _model(question.profile, question.model, key or _NO_KEY, http)
    messages, settings, parameters = _messages(question.messages), _settings(question), _parameters(question)
    if not question.stream:
        response = await model_request(model, messages, model_settings=settings, model_request_parameters=parameters)
        return _exchange(response, question)
    async with model_request_stream(
        model, messages, model_settings=settings, model_request_parameters=parameters
    ) as stream:
        async for event in stream:
            piece = _piece(event)
            if piece and partial is not None:
                partial(piece)
        return _exchange(stream.get(), question)


def warm(provider: str) -> Any:
    """The module of one provider's models. Takes seconds the first time: not on the event loop."""
    return importlib.import_module(f"treadle.actions.llm.{provider}_model")


def _model(profile: Profile, model: str, key: str, http: httpx2.AsyncClient) -> Model[Any]:
    made: Model[Any] = warm(profile.provider).model_of(profile, model, key, http)
    return made


def _messages(turns: tuple[Message, ...]) -> list[ModelMessage]:
    """Joins adjacent messages of the same role into one, as both protocols require."""
    messages: list[ModelMessage] = []
    for turn in turns:
        if turn.role == "assistant":
            messages.append(ModelResponse(parts=[TextPart(turn.content)]))
            continue
        part = SystemPromptPart(turn.content) if turn.role == "system" else UserPromptPart(turn.content)
        if messages and isinstance(messages[-1], ModelRequest):
            messages[-1] = ModelRequest(parts=[*messages[-1].parts, part])
        else:
            messages.append(ModelRequest(parts=[part]))
    return messages


def _settings(question: Question) -> ModelSettings:
    idle_s = question.profile.timeout_ms / 1000
    settings = ModelSettings(timeout=httpx2.Timeout(idle_s, connect=min(_CONNECT_S, idle_s)), max_retries=0)
    if question.temperature is not None:
        settings["temperature"] = float(question.temperature)
    if question.max_tokens is not None:
        settings["max_tokens"] = question.max_tokens
    return settings


def _parameters(question: Question) -> ModelRequestParameters:
    if question.mode == "native":
        wanted = OutputObjectDefinition(json_schema=question.schema, name=_TOOL)
        return ModelRequestParameters(output_mode="native", output_object=wanted)
    if question.mode == "tool":
        tool = ToolDefinition(
            name=_TOOL, description="Gives the answer.", parameters_json_schema=question.schema, kind="output"
        )
        return ModelRequestParameters(output_mode="tool", output_tools=[tool], allow_text_output=False)
    return ModelRequestParameters()


def _piece(event: object) -> str | None:
    """The text in one event: of the answer itself, or of the tool input that is the answer."""
    if isinstance(event, PartStartEvent):
        part = event.part
        args = part.args if isinstance(part, ToolCallPart) else None
        return part.content if isinstance(part, TextPart) else args if isinstance(args, str) else None
    if isinstance(event, PartDeltaEvent):
        delta = event.delta
        args = delta.args_delta if isinstance(delta, ToolCallPartDelta) else None
        return delta.content_delta if isinstance(delta, TextPartDelta) else args if isinstance(args, str) else None
    return None


def _exchange(response: ModelResponse, question: Question) -> Exchange:
    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
    refusal = (response.provider_details or {}).get("refusal")
    if calls and not text:
        text = calls[0].args_as_json_str()
    structured = calls[0].args if calls and isinstance(calls[0].args, dict) else UNSET
    return Exchange(
        text=text,
        structured=structured,
        finish=_FINISHES.get(response.finish_reason or "stop", "stop"),
        refusal=refusal if isinstance(refusal, str) else None,
        model=response.model_name or question.model,
        input_tokens=response.usage.input_tokens,
        output_tokens=response.usage.output_tokens,
    )


def failure(problem: Exception, question: Question) -> Failed:
    """The failure for an exception: infrastructure (retryable) or business (2.6), with the provider's message."""
    status = problem.status_code if isinstance(problem, exceptions.ModelHTTPError) else None
    details: dict[str, Json] = {"profile": question.profile.name, "model": question.model}
    if status is not None:
        details["status"] = status
    if isinstance(problem, exceptions.ModelAPIError):
        if problem.retry_after is not None:
            details["retry_after_ms"] = round(problem.retry_after * 1000)
        code = problem.provider_error_code or problem.provider_error_type
        if code:
            details["code"] = str(code)
    said = _words(problem)
    what = f"HTTP {status}: {said}" if status is not None else said
    message = f"llm profile {question.profile.name!r}, model {question.model!r}: {what}"
    return failed(message, retryable=_transient(problem, status), details=details)


def _transient(problem: Exception, status: int | None) -> bool:
    if status is not None:
        return status in (408, 425, 429) or status >= 500
    rejected = (exceptions.ModelRequestRejectedError, exceptions.ModelQuotaExceededError, exceptions.UserError)
    return not isinstance(problem, rejected)


def _words(problem: Exception) -> str:
    """The provider's own sentence, if there is one in the body."""
    body = getattr(problem, "body", None)
    inner = body.get("error", body) if isinstance(body, dict) else body
    sentence = inner.get("message") if isinstance(inner, dict) else None
    return clip(str(sentence or problem), _WORDS_MAX)
