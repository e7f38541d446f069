"""Answers in the protocols of OpenAI's chat completions and Anthropic's messages, whole and streamed.

Owns both formats, as far as `llm` actions use them. Promises bodies and event streams that the official clients accept
(tests/unit/testing/test_llm_server.py asks them). Must not do I/O.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from treadle.testing.llm.answers import Answer, Asked

Json = Any
_PIECE = 6
"""Characters per streamed piece: short enough that any test answer comes in several."""


def read_openai(body: dict[str, Json], headers: dict[str, str]) -> Asked:
    """A request to `/chat/completions`."""
    wanted = body.get("response_format") or {}
    return Asked(
        api="openai",
        model=body["model"],
        text="\n".join(_text(message.get("content")) for message in body["messages"]),
        schema=(wanted.get("json_schema") or {}).get("schema"),
        stream=bool(body.get("stream")),
        key=_key(headers),
        body=body,
        headers=headers,
    )


def read_anthropic(body: dict[str, Json], headers: dict[str, str]) -> Asked:
    """A request to `/v1/messages`."""
    tools = body.get("tools") or [{}]
    output = (body.get("output_config") or {}).get("format") or {}
    texts = [_text(body.get("system")), *(_text(message["content"]) for message in body["messages"])]
    return Asked(
        api="anthropic",
        model=body["model"],
        text="\n".join(filter(None, texts)),
        schema=tools[0].get("input_schema") or output.get("schema"),
        stream=bool(body.get("stream")),
        key=_key(headers),
        body=body,
        headers=headers,
    )


def _key(headers: dict[str, str]) -> str | None:
    return headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ") or None


def _text(content: Json) -> str:
    if isinstance(content, list):
        return "\n".join(part.get("text", "") for part in content)
    return content or ""


def failure(api: str, answer: Answer) -> Json:
    """The body of an error status."""
    if api == "anthropic":
        return {
            "type": "error",
            "error": {"type": _ANTHROPIC_ERRORS.get(answer.status, "api_error"), "message": answer.error},
        }
    return {"error": {"message": answer.error, "type": "error", "param": None, "code": answer.error_code}}


_ANTHROPIC_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def whole(asked: Asked, answer: Answer) -> Json:
    """The body of an answer that is not streamed."""
    return _whole_anthropic(asked, answer) if asked.api == "anthropic" else _whole_openai(asked, answer)


def pieces(asked: Asked, answer: Answer) -> Iterator[bytes]:
    """The same answer as server-sent events."""
    return _anthropic_events(asked, answer) if asked.api == "anthropic" else _openai_chunks(asked, answer)


def _whole_openai(asked: Asked, answer: Answer) -> Json:
    refused = answer.finish == "refusal"
    message = {
        "role": "assistant",
        "content": None if refused else answer.said,
        "refusal": answer.said if refused else None,
    }
    choice = {"index": 0, "message": message, "finish_reason": "stop" if refused else answer.finish, "logprobs": None}
    return {**_head(asked, "chat.completion"), "choices": [choice], "usage": _openai_usage(asked, answer)}


def _head(asked: Asked, kind: str) -> dict[str, Json]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1_700_000_000, "model": asked.model}


def _openai_usage(asked: Asked, answer: Answer) -> Json:
    used, made = answer.usage(asked)
    return {"prompt_tokens": used, "completion_tokens": made, "total_tokens": used + made}


def _openai_chunks(asked: Asked, answer: Answer) -> Iterator[bytes]:
    head = _head(asked, "chat.completion.chunk")
    part = "refusal" if answer.finish == "refusal" else "content"

    def chunk(delta: Json, finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return _event(None, {**head, "choices": [choice], "usage": None})

    yield chunk({"role": "assistant", part: ""})
    for piece in _split(answer.said):
        yield chunk({part: piece})
    yield chunk({}, "stop" if answer.finish == "refusal" else answer.finish)
    if (asked.body.get("stream_options") or {}).get("include_usage"):
        yield _event(None, {**head, "choices": [], "usage": _openai_usage(asked, answer)})
    yield b"data: [DONE]\n\n"


def _forced_tool(asked: Asked) -> str | None:
    choice = asked.body.get("tool_choice") or {}
    tools = asked.body.get("tools") or []
    return tools[0]["name"] if choice.get("type") in ("any", "tool") and tools else None


def _stop_reason(asked: Asked, answer: Answer) -> str:
    if answer.finish == "stop":
        return "tool_use" if _forced_tool(asked) else "end_turn"
    return {"length": "max_tokens"}.get(answer.finish, answer.finish)


def _whole_anthropic(asked: Asked, answer: Answer) -> Json:
    tool = _forced_tool(asked)
    block: Json = {"type": "text", "text": answer.said}
    if tool is not None and answer.finish == "stop" and answer.text is None:
        block = {"type": "tool_use", "id": "toolu_1", "name": tool, "input": answer.json}
    return {**_message(asked, answer), "content": [block], "stop_reason": _stop_reason(asked, answer)}


def _message(asked: Asked, answer: Answer) -> dict[str, Json]:
    used, made = answer.usage(asked)
    usage = {"input_tokens": used, "output_tokens": made}
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": asked.model}
    return {**head, "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}


def _anthropic_events(asked: Asked, answer: Answer) -> Iterator[bytes]:
    def event(kind: str, **fields: Json) -> bytes:
        return _event(kind, {"type": kind, **fields})

    tool = _forced_tool(asked) if answer.text is None else None
    block: Json = {"type": "text", "text": ""}
    if tool is not None:
        block = {"type": "tool_use", "id": "toolu_1", "name": tool, "input": {}}
    message = _message(asked, answer)
    yield event("message_start", message={**message, "usage": {**message["usage"], "output_tokens": 1}})
    yield event("content_block_start", index=0, content_block=block)
    yield event("ping")
    for piece in _split(answer.said):
        text = {"type": "text_delta", "text": piece}
        delta = text if tool is None else {"type": "input_json_delta", "partial_json": piece}
        yield event("content_block_delta", index=0, delta=delta)
    yield event("content_block_stop", index=0)
    stop = {"stop_reason": _stop_reason(asked, answer), "stop_sequence": None}
    yield event("message_delta", delta=stop, usage={"output_tokens": message["usage"]["output_tokens"]})
    yield event("message_stop")


def _split(text: str) -> list[str]:
    return [text[at : at + _PIECE] for at in range(0, len(text), _PIECE)]


def _event(kind: str | None, fields: Json) -> bytes:
    name = b"" if kind is None else b"event: " + kind.encode() + b"\n"
    return name + b"data: " + msgspec.json.encode(fields) + b"\n\n"
