"""Metadata hook of the wheel: where the project is on the web, as told by the one who publishes it.

Owns: `project.urls`. The repository names no host of its own, because a checkout does not know where it is published;
a release says it with the variable TREADLE_URLS, as `Label=https://…` separated by blanks. Without the variable a wheel
has no addresses, and points to nothing that is not there.
"""

from __future__ import annotations

import os
import re
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class ProjectUrls(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        metadata["urls"] = urls_of(os.environ.get("TREADLE_URLS", ""))


def urls_of(told: str) -> dict[str, str]:
    """`Source=https://a/b Issues=https://a/b/issues` → by label; a mistake ends the build."""
    found = {}
    for entry in told.split():
        match = re.fullmatch(r"([A-Za-z][\w-]*)=(https://[^\s@]+)", entry)
        if match is None:
            raise ValueError(f"TREADLE_URLS: `{entry}` must be Label=https://host/path, without a user or a password")
        found[match[1]] = match[2]
    return found
