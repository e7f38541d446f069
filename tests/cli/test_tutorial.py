"""docs/tutorial.md, played from top to bottom: its files are written, its commands run, and they say what it shows.

    `name`:  + a fenced block     the block becomes that file
    ```console                    `$ ` is a command; the lines below it are shown by it, in this order; `…` stands for
                                  anything; a last line `^C` ends the command with SIGKILL once it has shown the others

The wheel of this checkout is built and installed into a fresh environment; only its dependencies are borrowed from the
environment of the tests, since tests do not download.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.cli.shell import Shell, hear

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tutorial.md"
STEP = re.compile(r"^(?:`(?P<file>[^`\n]+)`:\n\n)?```(?P<kind>\w+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)

# `python3 -m venv` and `pip` are not on every machine, and pip would download.
WITHOUT_DOWNLOADS = f"""
python3() {{
    [ "$1 $2" = "-m venv" ] && uv venv --quiet --offline --python {shlex.quote(sys.executable)} "$3" &&
        echo {shlex.quote(sysconfig.get_path("purelib"))} > "$(echo "$3"/lib/python3*/site-packages)/borrowed.pth"
}}
pip() {{
    if [ -d "$2" ]; then uv pip "$1" --quiet --offline --no-cache --no-deps --no-build-isolation "$2"
    else python -c "import $2"; fi
}}
"""


class Reader:
    """Somebody who follows the page in one terminal: the folder and the environment go on from command to command."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.environment = Shell(home).environment | {
            "PATH": f"{sysconfig.get_path('scripts')}:{os.environ['PATH']}",
            "COLUMNS": "200",
        }
        self.run = ""
        (home / "environment").write_text(f"cd {shlex.quote(str(home))}\n")
        (home / "treadle").symlink_to(ROOT)

    def folder(self) -> Path:
        return Path(self.output("pwd").strip())

    def write(self, name: str, text: str) -> None:
        (self.folder() / name).write_text(text, "utf-8")

    def script(self, line: str) -> list[str]:
        kept = shlex.quote(str(self.home / "environment"))
        before = f"set -o pipefail; . {kept}; {WITHOUT_DOWNLOADS}"
        return [
            "bash",
            "-c",
            before
            + line.replace("RUN", self.run)
            + f'\ncode=$?; {{ export -p; echo cd "$PWD"; }} > {kept}; exit $code',
        ]

    def output(self, line: str, code: int = 0) -> str:
        done = subprocess.run(
            self.script(line),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self.environment,
            timeout=300,
        )
        assert done.returncode == code, f"{line}: {done.returncode}\n{done.stdout}"
        return done.stdout

    def kill(self, line: str, last: str) -> str:
        """Begin a command, and end it as a power cut would once it has said the last words."""
        process = subprocess.Popen(
            self.script(f"exec {line}"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment,
        )
        try:
            return hear(process, last)
        finally:
            process.kill()
            process.communicate(timeout=60)

    def follow(self, line: str, shown: list[str]) -> None:
        if shown and shown[-1] == "^C":
            shown.pop()
            said = self.kill(line, shown[-1].rpartition("… ")[2])
        else:
            said = self.output(line, 5 if shown and shown[0].startswith("treadle:") else 0)
        problem = missing(said, shown)
        assert problem is None, f"$ {line}\ndoes not show: {problem}\n{said}"
        if found := RUN_ID.search(said):
            self.run = found[0]


RUN_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?=/\d)")


def missing(said: str, shown: list[str]) -> str | None:
    """The first line of the page that was not said, each after the one before; blanks and `…` stretch."""
    lines = iter(" ".join(line.split()) for line in said.splitlines())
    for line in shown:
        pattern = ".*".join(re.escape(part.strip()) for part in " ".join(line.split()).split("…"))
        if not any(re.search(pattern, candidate) for candidate in lines):
            return line
    return None


def test_a_line_that_is_not_shown_in_its_order_is_noticed() -> None:
    said = "  0 ms  quote    2/2\ncompleted\n"
    assert missing(said, ["… quote … 2/2", "completed"]) is None
    assert missing(said, ["completed", "… quote … 2/2"]) == "… quote … 2/2"
    assert missing(said, ["failed"]) == "failed"


@pytest.mark.slow
def test_the_tutorial_does_what_it_says(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    steps = list(STEP.finditer(PAGE.read_text("utf-8")))
    assert [step["file"] for step in steps if step["kind"] != "console"].count(None) == 0, "a block without a file"
    for step in steps:
        if step["kind"] != "console":
            reader.write(step["file"], step["body"])
            continue
        for block in re.split(r"^\$ ", step["body"], flags=re.MULTILINE)[1:]:
            line, *shown = block.splitlines()
            reader.follow(line, shown)
    assert reader.run, "the page has shown a run"
