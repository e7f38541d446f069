"""The definitions a scenario deploys: loaded, with the lines of the scenario file in every problem."""

from __future__ import annotations

from pathlib import Path

from treadle.actions.python import UnknownFunction, find_function
from treadle.language import Loaded, load_source
from treadle.language.load import load_settled, settled
from treadle.testing.scenario import Definition


def load_definition(definition: Definition, *, check_functions: bool = False) -> Loaded:
    """Loads what is written inline or in the file it names, relative to the scenario's own.

    Functions are looked for only where a refusal is expected: a scenario may mock what cannot be imported here, and
    an unmocked one that is missing fails its node when it is executed.
    """
    place = definition.place
    functions = is_function if check_functions else None
    settings = settled({**place.document.known, "functions": functions})._replace(answered=True)
    if definition.file is not None:
        path = Path(place.document.file).parent / definition.file
        try:
            return load_settled(path.read_bytes(), str(path), settings)
        except OSError as problem:
            place.refuse(f"cannot read {path}: {problem.strerror}")
    return load_source(place.document.source(*place.path), settings)


def is_function(name: str) -> bool:
    """Whether a `python` action could call it."""
    try:
        find_function(name, {})
    except UnknownFunction:
        return False
    return True
