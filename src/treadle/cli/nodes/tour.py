"""`python -m treadle.cli.nodes.tour`: the first minute on the canvas. `./dev run` starts it.

An engine and the service on a file of their own. The panel of the demonstration runs, and its question waits for the
visitor; a new panel begins now and then, so that something moves. The link that is printed leads to the first run. It
ends when it is asked to (Ctrl+C), and takes its file with it unless --store names one. Exit codes: those of
`treadle serve`.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

from cyclopts import App, Parameter

from treadle.cli.frame.exits import OK
from treadle.cli.frame.options import StoreOption, configuration
from treadle.cli.frame.serving import ListenAt, PortOption, listen, until_stopped
from treadle.cli.nodes.demo import INPUT, WORKFLOW, stumble
from treadle.cli.screen.output import say

if TYPE_CHECKING:
    from treadle.project.settings import Configuration
    from treadle.runtime.engine import Engine

PAUSE_S = 20.0
"""Between two panels: one moves on the canvas most of the time, and the list stays short."""
PANELS_MAX = 12

app = App(name="tour", help=__doc__, help_format="plaintext")


@app.default
def tour(
    *,
    port: PortOption = None,
    browser: Annotated[bool, Parameter(help="Open a browser where there is one.", negative="--no-browser")] = True,
    store: StoreOption = None,
) -> int:
    """Show the canvas with something on it."""
    from treadle.cli.frame.opening import drive

    with tempfile.TemporaryDirectory(prefix="treadle-tour-") as folder:
        return drive(_tour(configuration(store or str(Path(folder, "treadle.db"))), port, browser))


async def _tour(config: Configuration, port: int | None, browser: bool) -> int:
    from treadle.language import load_text
    from treadle.runtime.engine import Engine
    from treadle.runtime.surroundings.logs import log_to_stderr

    log_to_stderr()
    at = ListenAt("127.0.0.1", port)
    listening = listen(at)
    try:
        async with Engine(config.store, functions={"demo.stumble": stumble}) as engine:
            panel = (await engine.deploy(load_text(WORKFLOW, "tour").require())).workflow
            first = await engine.start(panel, INPUT, key="first-draft", tags=["demo"])
            say("a panel of judges is at work on the canvas; then it asks you. Ctrl+C ends it")
            more = asyncio.create_task(_go_on(engine, panel))
            landing = f"/runs/{quote(first.id, safe='')}"
            try:
                await until_stopped({"": engine}, listening, config, at, landing=landing, told=_opener(browser))
            finally:
                more.cancel()
    finally:
        listening.close()
    return OK


async def _go_on(engine: Engine, panel: str) -> None:
    """Starts another panel now and then."""
    for number in range(2, PANELS_MAX + 1):
        await asyncio.sleep(PAUSE_S)
        await engine.start(panel, {"draft": f"Draft {number}"}, key=f"draft-{number}", tags=["demo"])


def _opener(wanted: bool) -> Callable[[str], object]:
    """Opens the link, where somebody sits in front of a screen."""
    has_screen = sys.platform == "darwin" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    return webbrowser.open if wanted and has_screen and sys.stderr.isatty() else lambda _link: None


if __name__ == "__main__":
    sys.exit(app(result_action="return_value") or OK)
