"""A panel of language models, offline: a local server speaks the real protocol.

./dev python examples/judges.py
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from treadle import Engine, EngineSettings, load_file
from treadle.settings import LlmSettings, Profile
from treadle.testing import Answer, Asked, LlmServer

HERE = Path(__file__).parent


def model(asked: Asked) -> Answer:
    """Strict judges ask for a revision; editors write a line."""
    if "judge." in asked.text:
        return Answer(json={"vote": "revise" if "strict" in asked.text else "publish"})
    manner = "quick" if "quick" in asked.text else "careful"
    return Answer(text=f"Dear author, a {manner} note: please revise.")


async def main() -> None:
    async with LlmServer(model) as server:
        profile = Profile(name="local", base_url=server.openai_url, model="any")
        settings = EngineSettings(llm=LlmSettings(profiles=(profile,)))
        with TemporaryDirectory() as home:
            async with Engine(Path(home) / "treadle.db", settings=settings) as engine:
                run = await engine.start(load_file(HERE / "judges.yaml"), {"draft": "On looms"})
                async for event in run.events():
                    if event.type == "token.progress":  # a model's text as it comes
                        print("…", event.data["text"])
                print((await run.wait()).output)


if __name__ == "__main__":
    asyncio.run(main())
