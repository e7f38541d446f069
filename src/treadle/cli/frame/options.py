"""Options that several verbs share."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

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


def configuration(store: str | None, output: str | None = None, library: str | None = None) -> Configuration:
    """The settings, overridden by the flags that were given."""
    return Configuration({"store": store, "output": output, "library": library})
