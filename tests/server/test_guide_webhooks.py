"""docs/guides/webhooks.md, played from top to bottom: its commands run in one shell, and say what it shows.

`name`:  + a fenced block     the block becomes that file
```console                    `$ ` is a command, which may go on for several lines; the lines below it that begin
                              with `{` or `[` are what it says; `…` stands for anything
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from tests.server.client import Connected

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "webhooks.md"
STEP = re.compile(r"^(?:`(?P<file>[^`\n]+)`:\n\n)?```(?P<kind>\w+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
END = "__the command has ended__"


class Reader:
    """Somebody who follows the page in one shell."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self.shell = subprocess.Popen(
            ["bash"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=folder,
            env={**os.environ, **environment},
        )

    def says(self, command: str) -> str:
        assert self.shell.stdin is not None and self.shell.stdout is not None
        self.shell.stdin.write(f"{command}\necho; echo '{END}'\n")
        self.shell.stdin.flush()
        said = ""
        while not said.endswith(f"{END}\n"):
            line = self.shell.stdout.readline()
            assert line, said
            said += line
        return said.removesuffix(f"{END}\n").strip()

    def close(self) -> None:
        assert self.shell.stdin is not None and self.shell.stdout is not None
        self.shell.stdin.write("kill %1\n")
        self.shell.stdin.close()
        self.shell.wait(30)
        self.shell.stdout.close()


def commands(block: str) -> list[tuple[str, list[str]]]:
    """The commands of a block, and what each is to say."""
    found: list[tuple[list[str], list[str]]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append(([line[2:]], []))
        elif line.startswith(("{", "[")):
            found[-1][1].append(line)
        else:
            found[-1][0].append(line)
    return [("\n".join(lines), shown) for lines, shown in found]


def fits(shown: str, said: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, shown.split("…"))), said, re.DOTALL) is not None


def test_the_guide_says_what_happens(tmp_path: Path) -> None:
    if shutil.which("curl") is None or shutil.which("jq") is None or shutil.which("openssl") is None:
        pytest.skip("no curl here")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    text = PAGE.read_text("utf-8").replace("127.0.0.1:4801", f"127.0.0.1:{port}").replace('", 4801)', f'", {port})')
    service = Connected(str(tmp_path / "treadle.db"), tmp_path)
    key = service.new_key("guide", "--role", "author", "--role", "operator")
    with service:
        reader = Reader(tmp_path, {"URL": service.url, "AUTHOR": key})
        played = 0
        try:
            for step in STEP.finditer(text):
                if step["file"] is not None:
                    (tmp_path / step["file"]).write_text(step["body"])
                elif step["kind"] == "console":
                    for command, shown in commands(step["body"]):
                        said = reader.says(command)
                        if not command.rstrip().endswith("&"):
                            assert fits("\n".join(shown), said), f"$ {command}\n{said}\ninstead of\n{shown}"
                        played += 1
        finally:
            reader.close()
    assert played > 15
