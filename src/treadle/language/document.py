"""`Workflow` → the canonical document: canonical field names, defaults left out, names resolved.

Promises that loading the document again gives an equal workflow. It is what versions store and what tools
exchange.
"""

from __future__ import annotations

from typing import Any

from treadle.language.grammar.workflow import WORKFLOW
from treadle.model.definition import Workflow


def document_of(workflow: Workflow) -> dict[str, Any]:
    """The canonical document of a workflow, as plain JSON."""
    document: dict[str, Any] = WORKFLOW.write(workflow)
    return document
