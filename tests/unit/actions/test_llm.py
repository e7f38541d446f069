"""`llm`: what is asked, what comes back, what it costs, against a server that speaks both real protocols."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import pytest

from tests.unit.actions.calls import call
from tests.unit.actions.llm_calls import BOTH, KEY, PRICE, VOTE, answered, kind_for, tell
from treadle.actions.failure import TaskFailure
from treadle.actions.llm.kind import install_llm
from treadle.actions.llm.profiles import LlmSettings, Price, Profile
from treadle.actions.protocol import Failed
from treadle.actions.registry import Registry
from treadle.testing.llm.server import Answer

ASK = {"prompt": "Is {{ thing }} good?"}


@pytest.mark.parametrize("provider", BOTH)
def test_a_prompt_is_a_template_and_the_answer_is_text_with_its_usage(provider: str) -> None:
    told = tell(Answer(text="Yes.", input_tokens=9, output_tokens=2), ASK, {"thing": "tea"}, provider)
    usage = {"input_tokens": 9, "output_tokens": 2}
    assert told.output == {"text": "Yes.", "usage": usage, "model": "small"}
    assert told.asked[0].text == "Is tea good?"
    assert told.asked[0].key == KEY


@pytest.mark.parametrize("provider", BOTH)
def test_system_and_messages_arrive_in_their_roles(provider: str) -> None:
    turns = [
        {"role": "user", "content": "Hello {{ name }}"},
        {"role": "assistant", "content": "Hello!"},
        {"role": "user", "content": "Well?"},
    ]
    config = {"system": "Be brief, {{ name }}.", "messages": turns}
    body = tell(Answer(text="ok"), config, {"name": "Ann"}, provider).asked[0].body
    said = [(turn["role"], turn["content"]) for turn in body["messages"]]
    if provider == "openai":
        assert said[0] == ("system", "Be brief, Ann.")
        assert said[1:] == [("user", "Hello Ann"), ("assistant", "Hello!"), ("user", "Well?")]
    else:
        assert body["system"] == "Be brief, Ann."
        assert [role for role, _ in said] == ["user", "assistant", "user"]


def test_what_comes_as_data_is_never_a_template() -> None:
    trap = "{{ state.secret }}"
    config: dict[str, Any]
    for config, input in [
        ({}, {"prompt": trap}),
        ({}, {"messages": [{"role": "user", "content": trap}]}),
        ({"messages": "$.input.history"}, {"history": [{"role": "user", "content": trap}]}),
        ({"prompt": "{{ text }}"}, {"text": trap}),
    ]:
        assert tell(Answer(text="ok"), config, input).asked[0].text == trap


def test_an_input_that_is_called_model_chooses_no_model() -> None:
    input = {"thing": "tea", "model": "Golf", "profile": "x", "temperature": 9}
    asked = tell(Answer(text="ok"), ASK, input).asked[0]
    assert asked.model == "small"
    assert "temperature" not in asked.body


def test_the_action_may_name_a_model_and_sampling_by_a_source() -> None:
    config = {**ASK, "model": "$.input.which", "temperature": 0.5, "max_tokens": 40}
    asked = tell(Answer(text="ok"), config, {"thing": "tea", "which": "large"}, temperature=1.0).asked[0]
    assert asked.model == "large"
    assert asked.body["temperature"] == 0.5
    assert 40 in (asked.body.get("max_tokens"), asked.body.get("max_completion_tokens"))


@pytest.mark.parametrize("provider", BOTH)
@pytest.mark.parametrize("stream", [False, True])
def test_a_response_schema_is_asked_for_natively_and_gives_json(provider: str, stream: bool) -> None:
    config = {"prompt": "Vote.", "response_schema": VOTE, "stream": stream}
    told = tell(Answer(json={"vote": "yes"}), config, provider=provider)
    assert told.output["json"] == {"vote": "yes"}
    body = told.asked[0].body
    if provider == "openai":
        assert body["response_format"]["type"] == "json_schema"
    else:
        assert body["tool_choice"]["type"] in ("any", "tool")
        assert body["tools"][0]["input_schema"]["properties"] == VOTE["properties"]


@pytest.mark.parametrize("provider", BOTH)
def test_a_schema_that_is_no_object_is_asked_for_in_words(provider: str) -> None:
    config = {"prompt": "Three words.", "response_schema": {"type": "array", "items": {"type": "string"}}}
    told = tell(Answer(text='```json\n["a", "b"]\n```'), config, provider=provider)
    assert told.output["json"] == ["a", "b"]
    assert '"type":"array"' in told.asked[0].text
    assert "response_format" not in told.asked[0].body and "tools" not in told.asked[0].body


@pytest.mark.parametrize("mode", ["native", "tool", "prompt"])
@pytest.mark.parametrize("provider", BOTH)
def test_a_profile_chooses_how_json_is_asked_for(provider: str, mode: str) -> None:
    model = "claude-haiku-5-5" if provider == "anthropic" else "gpt-4o"  # native is not for every model
    answer = Answer(text='{"vote": "no"}') if (provider, mode) != ("anthropic", "tool") else Answer(json={"vote": "no"})
    told = tell(answer, {"prompt": "Vote.", "response_schema": VOTE}, provider=provider, structured=mode, model=model)
    assert told.output["json"] == {"vote": "no"}
    assert ("tools" in told.asked[0].body) is (mode == "tool")


def test_cost_is_tokens_times_the_price_of_the_model_that_was_used() -> None:
    answer = Answer(text="ok", input_tokens=1_000, output_tokens=200)
    prices = {"price": PRICE, "prices": {"large": Price(input=10, output=50)}}
    assert tell(answer, ASK, {"thing": 1}, **prices).output["cost"] == 0.006  # type: ignore[arg-type]
    assert tell(answer, {**ASK, "model": "large"}, {"thing": 1}, **prices).output["cost"] == 0.02  # type: ignore[arg-type]
    assert "cost" not in tell(answer, {**ASK, "model": "other"}, {"thing": 1}, **prices).output  # type: ignore[arg-type]


def test_a_model_the_operator_does_not_allow_is_refused_before_anything_is_sent() -> None:
    told = tell(Answer(text="ok"), {**ASK, "model": "huge"}, {"thing": 1}, models=("large",))
    assert "does not allow the model 'huge'" in told.error.message
    assert told.asked == []


def test_a_profile_that_does_not_exist_is_named_with_its_nearest() -> None:
    kind = kind_for(Profile(name="local", model="m", base_url="http://127.0.0.1:9"))
    reply = asyncio.run(answered(kind, call({**ASK, "profile": "locl"}, {"thing": 1})))
    assert isinstance(reply, Failed)
    assert "'locl'; did you mean 'local'" in reply.error.message


def test_without_a_default_an_action_must_name_one_of_several_profiles() -> None:
    two = [Profile(name=name, model="m", base_url="http://127.0.0.1:9") for name in ("a", "b")]
    with pytest.raises(TaskFailure, match="names no profile, and none of a, b is the default"):
        LlmSettings(profiles=tuple(two)).profile(None)
    assert LlmSettings(profiles=tuple(two), default="b").profile(None).name == "b"


def test_a_template_that_fails_says_which_text_and_where() -> None:
    assert "prompt: undefined value" in tell(Answer(text="ok"), ASK, {}).error.message


def test_a_secret_that_is_missing_is_named_and_nothing_is_sent() -> None:
    told = tell(Answer(text="ok"), {"prompt": "x"}, api_key="nobody")
    assert told.error.kind == "NOT_FOUND"
    assert "'nobody'" in told.error.message
    assert told.asked == []


def test_a_server_without_a_key_is_asked_without_one_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "from-the-environment")
    for provider in BOTH:
        assert tell(Answer(text="ok"), {"prompt": "x"}, provider=provider, api_key=None).asked[0].key == "no-key"


def test_a_profile_for_the_providers_own_address_needs_a_key() -> None:
    with pytest.raises(ValueError, match="needs an api_key"):
        Profile(name="cloud", model="m")


def test_installing_replaces_the_kind_that_only_explains_itself() -> None:
    registry = Registry()
    kind = install_llm(registry, LlmSettings())
    assert registry.kind("llm") is kind


def test_neither_the_registry_nor_installing_imports_the_extras() -> None:
    code = (
        "import sys\n"
        "from treadle.actions.registry import Registry\n"
        "from treadle.actions.llm.kind import install_llm, LlmSettings\n"
        "from treadle.actions.mcp.kind import install_mcp, McpSettings\n"
        "registry = Registry()\n"
        "install_llm(registry, LlmSettings()), install_mcp(registry, McpSettings())\n"
        "print(sorted({'pydantic_ai', 'mcp', 'openai', 'anthropic', 'httpx2', 'pydantic'} & sys.modules.keys()))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_missing_extra_is_a_failure_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "treadle.actions.llm.provider", None)
    told = tell(Answer(text="ok"), {"prompt": "x"})
    assert "pip install 'treadle[llm]'" in told.error.message
    assert not told.error.retryable
