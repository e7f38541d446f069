"""Anthropic's models, imported only where a profile uses them."""

from __future__ import annotations

from typing import Any

import httpx2
from anthropic import AsyncAnthropic
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.providers.anthropic import AnthropicProvider

from treadle.actions.llm.profiles import Profile

_URL = "https://api.anthropic.com"


def model_of(profile: Profile, model: str, key: str, http: httpx2.AsyncClient) -> Model[Any]:
    """The model as pydantic-ai knows it."""
    client = AsyncAnthropic(api_key=key, base_url=profile.base_url or _URL, http_client=http, max_retries=0)
    return AnthropicModel(model, provider=AnthropicProvider(anthropic_client=client))
