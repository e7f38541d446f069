"""The commands of README.md, as somebody types them who has just copied the repository."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

from tests.cli.shell import Shell

ROOT = Path(__file__).parents[2]
COMMAND = re.compile(r"^\$ ./dev treadle ((?:validate|run|test|deploy) .*)$", re.MULTILINE)


def test_the_commands_of_the_readme_find_their_files_and_their_workflow(tmp_path: Path) -> None:
    page = (ROOT / "README.md").read_text("utf-8")
    shell = Shell(ROOT)
    shell.environment["TREADLE_STORE"] = str(tmp_path / "treadle.db")
    commands = [shlex.split(line, comments=True) for line in COMMAND.findall(page)]
    assert [words[0] for words in commands] == ["validate", "run", "test", "deploy"]
    asked = json.loads(re.findall(r"-d '(.*?)'", page)[0])
    commands.append(["run", asked["workflow"], "--input", json.dumps(asked["input"])])
    for words in commands:
        done = shell.here(*words, *(["--no-wait"] if words[0] == "run" else []))
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
