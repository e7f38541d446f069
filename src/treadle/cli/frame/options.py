"""Options that several verbs share."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from treadle.cli.frame.exits import USAGE, VerbFailed
from treadle.project.settings import Configuration, Output

FunctionsOption = Annotated[
    tuple[str, ...],
    Parameter(
        help="A module whose functions workflows may call, also by their bare names; repeat it.",
        negative="",
        consume_multiple=True,
    ),
]
NodeNameOption = Annotated[str | None, Parameter(help="Its name in `treadle nodes`; else host and process.")]
StoreOption = Annotated[
    str | None,
    Parameter(
        name="--store",
        help="A SQLite file, or postgresql://HOST/DATABASE. Else TREADLE_STORE, treadle.toml, treadle.db.",
    ),
]
OutputOption = Annotated[Output | None, Parameter(name=["--output", "-o"], help="Format of the answer.")]
LibraryOption = Annotated[
    str | None,
    Parameter(name="--library", help="A file with shared `tasks` and `actions`; else `library` of the settings."),
]
LimitOption = Annotated[int, Parameter(name=["--limit", "-n"], help="At most this many.")]

NOT_OVER_HTTP = {
    "init": "it makes files in this folder",
    "validate": "it reads files of this folder",
    "test": "it plays scenarios in this process",
    "schema": "it prints what this version knows",
    "dev": "it serves a store itself",
    "engine": "it coordinates a store itself; use --store",
    "serve": "it serves a store itself; use --store",
    "backup": "it copies the files of a store; use --store where the store is",
    "db": "it moves a store; use --store where the store is",
    "fsck": "it reads every row of a store; use --store where the store is",
    "doctor": "it looks at the machine and the store; use --store where the store is",
    "requests": "a service keeps no requests: it carries them out, or says that no engine is there; use --store",
    "completion": "it prints a script for this shell",
}
"""Verbs that need the store itself, and why."""


GIVEN: dict[str, str] = {}
"""Options that every verb takes, wherever they stand on the line: `--server`. The entry reads them first."""


def not_over_http(verb: str) -> VerbFailed:
    """The refusal of a verb that needs the store itself."""
    return VerbFailed(USAGE, f"`treadle {verb}` cannot ask a service: {NOT_OVER_HTTP[verb]}")


def configuration(store: str | None, output: str | None = None, library: str | None = None) -> Configuration:
    """The settings, overridden by the flags that were given. Raises VerbFailed for a store and a service at once."""
    if store is not None and "server" in GIVEN:
        raise VerbFailed(USAGE, "--store and --server: give one of them")
    server = "" if store is not None else GIVEN.get("server")
    return Configuration({"store": store, "output": output, "library": library, "server": server})
