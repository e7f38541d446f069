"""ruamel.yaml's scanner, made to stop early where the stock one would first do quadratic work.

Imported only where ruamel.yaml reads at all.
"""

from __future__ import annotations

import re
from typing import Any

from ruamel.yaml.scanner import Scanner

from treadle.language.limits import Bounds
from treadle.language.source import COLUMN_BITS, Refusal

_CORE_TAG = re.compile(r"!!(str|int|float|bool|null|map|seq)(?=[\s,\]}]|\Z)")


def bounded_scanner(bounds: Bounds) -> type[Scanner]:
    """A scanner that refuses depth and foreign tags before it has looked further."""

    class Bounded(Scanner):
        def fetch_flow_collection_start(self, token_class: Any, to_push: Any) -> None:
            if self.flow_level >= bounds.depth:
                raise self._refusal(f"nested more than {bounds.depth} levels deep")
            super().fetch_flow_collection_start(token_class, to_push)

        def fetch_tag(self) -> None:
            reader = self.reader
            if not _CORE_TAG.match(reader.buffer, reader.pointer):
                raise self._refusal("tags are not supported", hint="write plain YAML")
            super().fetch_tag()

        def _refusal(self, message: str, hint: str | None = None) -> Refusal:
            mark = self.reader.get_mark()
            return Refusal(message, mark.line << COLUMN_BITS | mark.column, hint=hint)

    return Bounded
