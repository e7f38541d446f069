"""The language as tables (docs/reference/definition.md): every field with its shape, other spellings,
default and one sentence.

From these tables the loader reads, the document is written and the JSON Schema is generated. One file per
noun.
"""

from treadle.language.grammar.workflow import WORKFLOW

__all__ = ["WORKFLOW"]
