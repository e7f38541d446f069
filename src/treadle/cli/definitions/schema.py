"""`treadle schema`: prints the JSON Schema of the definition language, for editors."""

from __future__ import annotations

import sys


def schema() -> int:
    """Print the JSON Schema of the definition language (draft 2020-12), for editors."""
    from treadle.language.schema import schema_text

    sys.stdout.write(schema_text())
    return 0
