"""The command line against a service: the same words as on a store, asked with `TREADLE_SERVER` and `TREADLE_KEY`.

Verbs that end at once run in this process, which saves half a second each; verbs that go on are processes. A name after
`--by` is a person: over HTTP that person's own key is used. An engine that a test begins is the service, which is there
already. Verbs that make no sense over HTTP work on the store.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import treadle
from tests.cli.shell import Shell
from tests.services import Project
from treadle.cli.frame.options import NOT_OVER_HTTP


class ServedShell(Shell):
    """A folder whose store is behind a service."""

    def __init__(self, project: Project) -> None:
        super().__init__(project.folder)
        self.project = project
        self.groups: dict[str, tuple[str, ...]] = {}
        """Groups of the people who are named by `--by`: a key says them."""

    def untidy(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return self.here(*words, stdin=stdin)

    @contextmanager
    def going(self, *words: str, until: str) -> Iterator[subprocess.Popen[str]]:
        if words[0] != "engine":
            with super().going(*words, until=until) as process:
                yield process
            return
        if "--deploy" in words:
            self("deploy", *words[words.index("--deploy") + 1 :])
        yield None  # type: ignore[misc]

    def surroundings(self, words: tuple[str, ...]) -> dict[str, str]:
        """The variables of a verb: the service and the key of who asks, unless it is about the store."""
        if words[0] in NOT_OVER_HTTP or "--store" in words:
            return self.environment
        person = words[words.index("--by") + 1] if "--by" in words else None
        key = self.project.key
        if person is not None:
            key = self.project.key_of(person, groups=self.groups.get(person, ()), admin="--force" in words)
        return {**self.environment, "TREADLE_SERVER": self.project.url, "TREADLE_KEY": key}


def opened(shell: Shell) -> Any:
    """An engine on the shell's store; where a service has it, the client of that service."""
    if isinstance(shell, ServedShell):
        return treadle.connect(shell.project.url, key=shell.project.key)
    return treadle.open(shell.folder / "treadle.db")
