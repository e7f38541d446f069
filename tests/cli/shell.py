"""The command line as its users meet it: real processes on real files."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

from treadle.cli.main import run_verb

COMMAND = [sys.executable, "-m", "treadle.cli.main"]


class Shell:
    """A folder to stand in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("TREADLE_")}

    def __call__(self, *words: str, stdin: str = "", code: int | None = 0) -> subprocess.CompletedProcess[str]:
        """One call to its end; `code` is the exit code it must have."""
        done = self.untidy(*words, stdin=stdin)
        assert code is None or done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def untidy(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """One call to its end, whatever it may be."""
        return subprocess.run(
            [*COMMAND, *words],
            input=stdin,
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=self.surroundings(words),
            check=False,
            timeout=120,
        )

    def here(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """One call in this process, which takes a fraction of the time; nothing else may go on in it meanwhile."""
        out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
        folder, path = Path.cwd(), list(sys.path)
        os.chdir(self.folder)
        try:
            with (
                mock.patch.dict(os.environ, self.surroundings(words), clear=True),
                mock.patch.object(sys, "stdin", io.StringIO(stdin)),
                redirect_stdout(out),
                redirect_stderr(err),
            ):
                code = run_verb(list(words), debug=False)
        finally:
            os.chdir(folder)
            sys.path[:] = path
        out.flush()
        printed: bytes = out.buffer.getvalue()
        return subprocess.CompletedProcess(words, code, printed.decode(), err.getvalue())

    def surroundings(self, words: tuple[str, ...]) -> dict[str, str]:
        """The environment of a call."""
        return self.environment

    def json(self, *words: str, code: int = 0) -> Any:
        """The answer as a program reads it."""
        return json.loads(self(*words, "--output", "json", code=code).stdout)

    def write(self, name: str, text: str) -> str:
        (self.folder / name).write_text(text, "utf-8")
        return name

    def begin(self, *words: str) -> subprocess.Popen[str]:
        """A process that goes on; whoever begins it ends it."""
        return subprocess.Popen(
            [*COMMAND, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env=self.surroundings(words),
        )

    @contextmanager
    def going(self, *words: str, until: str) -> Iterator[subprocess.Popen[str]]:
        """A process in the background, from the moment it has said `until` on stderr."""
        process = self.begin(*words)
        try:
            hear(process, until)
            yield process
        finally:
            if process.poll() is None:
                process.terminate()
            process.communicate(timeout=60)


def hear(process: subprocess.Popen[str], words: str) -> str:
    """Reads a process's stderr until it has said something."""
    assert process.stderr is not None
    heard = ""
    while line := process.stderr.readline():
        heard += line
        if words in line:
            return heard
    raise AssertionError(f"it ended without saying {words!r}:\n{heard}")
