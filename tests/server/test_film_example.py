"""The example of a canvas whose Workers are HTTP services in JavaScript and Perl that answer later."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.server.client import Caller, Connected

FILM = Path(__file__).parents[2] / "examples" / "film"


@contextmanager
def worker(program: str, file: str) -> Iterator[str]:
    """A service of the example on a free port: its address."""
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"no {program} here")
    environment = {**os.environ, "PORT": "0", "WEBHOOK_SECRET": Connected.SIGNING}
    process = subprocess.Popen([found, str(FILM / file)], stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.kill()
        process.wait(30)
        process.stdout.close()


def test_two_workers_in_other_languages_make_a_film(connected: Connected) -> None:
    with worker("node", "script.mjs") as script, worker("perl", "render.pl") as render:
        canvas = (FILM / "film.canvas.json").read_text()
        canvas = canvas.replace("http://127.0.0.1:4801", script).replace("http://127.0.0.1:4802", render)
        deployed = connected.as_("author").api("POST", "/workflows", json.loads(canvas))
        assert deployed.status in (200, 201), deployed
        operator = connected.as_("operator")
        run = operator.post("/runs?wait_ms=30000", {"workflow": "film", "input": {"topic": "tea"}})
        assert (run["status"], run["error"]) == ("completed", None)
        history = json.loads(connected.run("runs", "history", run["run"], "--output", "json").stdout)
        answers = [event["output"] for event in history if event["type"] == "callback.received"]
        assert len(answers) == 2
        assert answers[1] == {"film": "film.mp4", "seconds": 30}
        failed = operator.post("/runs?wait_ms=30000", {"workflow": "film", "input": {}})
        assert (failed["status"], failed["error"]["kind"]) == ("failed", "NO_TOPIC")
        assert Caller(script, None)("POST", "/jobs", b"{}").status == 401, "a message without a signature is not taken"
        assert Caller(render, None)("POST", "/jobs", b"{}").status == 401
