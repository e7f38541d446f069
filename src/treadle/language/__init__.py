"""Pure: the definition an author writes → a checked, canonical `Workflow`.

load        the door: text, file or value in, `Loaded` out
text        YAML and JSON with positions, hostile documents refused
grammar     the language as tables; from them reading, writing and the JSON Schema
assemble    ids, start nodes, references
checks      mistakes in a definition whose fields are all right
canvas      the visual dialect
builder     definitions from Python
"""

from treadle.language.load import (
    Loaded,
    load_documents,
    load_file,
    load_source,
    load_text,
    load_value,
)
from treadle.language.problem import Problem

__all__ = [
    "Loaded",
    "Problem",
    "load_documents",
    "load_file",
    "load_source",
    "load_text",
    "load_value",
]
