"""The library of tasks and actions and the worker types that all definitions of a project may use."""

from __future__ import annotations

from treadle.language.library import library_in
from treadle.language.load import Known
from treadle.project.settings import Configuration


def shared(config: Configuration) -> Known:
    """The settings `library` and `workers`, ready for reading definitions.

    Raises FileNotFoundError if the library's file is missing, and DefinitionError if the library is wrong."""
    known: Known = {"workers": config["workers"]}
    if config.library is None:
        return known
    if not config.library.is_file():
        raise FileNotFoundError(f"there is no file {config.library}, which `library` names")
    known["library"] = library_in(config.library.read_bytes(), str(config.library))
    return known
