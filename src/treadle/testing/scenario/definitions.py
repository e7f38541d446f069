"""The definitions a scenario deploys: loaded, with the lines of the scenario file in every problem."""

from __future__ import annotations

from pathlib import Path

from treadle.actions.python import UnknownFunction, find_function
from treadle.language import Loaded, load_source
from treadle.language.load import load_all_settled, settled
from treadle.testing.scenario.form import Definition


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
            text = path.read_bytes()
        except OSError as problem:
            place.refuse(f"cannot read {path}: {problem.strerror}")
        return _chosen(load_all_settled(text, str(path), settings), path, definition)
    return load_source(place.document.source(*place.path), settings)


def _chosen(found: list[Loaded], path: Path, definition: Definition) -> Loaded:
    """The workflow of a file that a scenario means."""
    wanted = definition.workflow
    fitting = found if wanted is None else [loaded for loaded in found if loaded.name == wanted]
    if len(fitting) != 1:
        names = ", ".join(loaded.name or "one without a name" for loaded in found)
        which = f"there is no workflow {wanted!r} in {path}" if wanted else f"{path} holds {len(found)} workflows"
        definition.place.refuse(f"{which}: {names}; say which: {{file: {definition.file}, workflow: NAME}}")
    return fitting[0]


def is_function(name: str) -> bool:
    """Whether a `python` action could call it."""
    try:
        find_function(name, {})
    except UnknownFunction:
        return False
    return True
