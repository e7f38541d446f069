"""The definitions a scenario deploys: loaded, with the lines of the scenario file in every problem."""

from __future__ import annotations

from pathlib import Path

from treadle.language import Loaded, load_file, load_source, load_value
from treadle.testing.scenario import Definition


def load_definition(definition: Definition) -> Loaded:
    """Loads what is written inline or in the file it names, relative to the scenario's own."""
    place = definition.place
    if definition.file is None:
        return _load_inline(definition)
    path = Path(place.document.file).parent / definition.file
    try:
        return load_file(path)
    except OSError as problem:
        place.refuse(f"cannot read {path}: {problem.strerror}")


def _load_inline(definition: Definition) -> Loaded:
    """Lines are looked up only when there is something to say about them: most definitions are fine."""
    place = definition.place
    loaded = load_value(place.value, place.document.file)
    if not loaded.errors:
        return loaded
    return load_source(place.document.source(*place.path))
