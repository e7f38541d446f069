"""`llm` actions against the offline model: one line to ask, one line to see what was sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from tests.unit.actions.calls import FACTS, call
from treadle.actions.llm.kind import LlmKind
from treadle.actions.llm.profiles import LlmSettings, Price, Profile
from treadle.actions.protocol import AttemptFacts, Call, Done, Failed
from treadle.actions.secrets import DictSecrets
from treadle.testing.llm.server import Answer, Asked, LlmServer, Script

KEY = "sk-canary-0123456789"
VOTE = {"type": "object", "properties": {"vote": {"enum": ["yes", "no"]}}, "required": ["vote"]}
BOTH = ("openai", "anthropic")


def profile(server: LlmServer, provider: Any = "openai", **fields: Any) -> Profile:
    url = server.openai_url if provider == "openai" else server.anthropic_url
    given: dict[str, Any] = {"name": "local", "model": "small", "api_key": "llm_key", "base_url": url, **fields}
    return Profile(provider=provider, **given)


def kind_for(*profiles: Profile) -> LlmKind:
    return LlmKind(LlmSettings(profiles=profiles), DictSecrets({"llm_key": KEY}))


async def answered(kind: LlmKind, asking: Call) -> Done | Failed:
    reply: Any = kind.run(asking)
    answer: Done | Failed = await reply
    return answer


class Told:
    """A conversation that is over."""

    def __init__(self, reply: Done | Failed, asked: list[Asked]) -> None:
        self.reply = reply
        self.asked = asked

    @property
    def output(self) -> Any:
        assert isinstance(self.reply, Done), self.reply
        return self.reply.output

    @property
    def error(self) -> Any:
        assert isinstance(self.reply, Failed), self.reply
        return self.reply.error


def tell(
    script: Answer | Script,
    config: dict[str, Any],
    input: Any = None,
    provider: str = "openai",
    facts: AttemptFacts = FACTS,
    **fields: Any,
) -> Told:
    """Asks the model once, through a profile with a key."""
    answer: Callable[[Asked], Answer] = (lambda asked: script) if isinstance(script, Answer) else script

    async def whole() -> Told:
        async with LlmServer(answer) as server:
            kind = kind_for(profile(server, provider, **fields))
            try:
                return Told(await answered(kind, call(config, input, facts=facts)), server.asked)
            finally:
                await kind.close()

    return asyncio.run(whole())


PRICE = Price(input=3.0, output=15.0)
