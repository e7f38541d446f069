"""The language as tables (docs/reference/definition.md): every field with its shape, other spellings,
default and one sentence.

The loader reads by these tables, the document is written by them, and the JSON Schema is generated from them. One file
per noun.
"""

from treadle.language.grammar.workflow import WORKFLOW

__all__ = ["WORKFLOW"]
