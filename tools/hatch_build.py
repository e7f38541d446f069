"""Build hook of the wheel: it holds the canvas, and with TREADLE_NATIVE=1 the compiled kernel, for one platform.

Owns: what is added to a wheel. The canvas is built where Node and an npm registry can be had, or was built before; a
wheel without it works, and its maker is told. An editable install is neither compiled nor built: who edits wants to see
the source, and `./dev` builds the canvas by itself.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).resolve().parent))
import native
import web

BUILT_WITH = ["msgspec>=0.22", "mypy>=2.4", "setuptools>=80"]


class CompiledKernel(BuildHookInterface):  # type: ignore[type-arg]
    def dependencies(self) -> list[str]:
        return BUILT_WITH if is_wanted() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "standard":
            return
        problem = web.ready()
        if problem is not None:
            self.app.display_warning(f"this wheel has no canvas, or an old one: {problem}")
        if not is_wanted():
            return
        place = native.build()
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        for built in place.rglob("*.so"):
            build_data["force_include"][str(built)] = str(built.relative_to(place))


def is_wanted() -> bool:
    return os.environ.get("TREADLE_NATIVE", "") not in ("", "0")
