"""OpenAI's models and those of servers that speak its protocol, imported only where a profile uses them."""

from __future__ import annotations

from typing import Any

import httpx2
from openai import AsyncOpenAI
from pydantic_ai.models import Model
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

from treadle.actions.llm.profiles import Profile

_URL = "https://api.openai.com/v1"


def model_of(profile: Profile, model: str, key: str, http: httpx2.AsyncClient) -> Model[Any]:
    """The model as pydantic-ai knows it."""
    client = AsyncOpenAI(api_key=key, base_url=profile.base_url or _URL, http_client=http, max_retries=0)
    if profile.base_url is None:
        return OpenAIChatModel(model, provider=OpenAIProvider(openai_client=client))
    return OpenAIChatModel(model, provider=OpenAICompatibleProvider(profile.name, openai_client=client))
