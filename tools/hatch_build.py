"""Build hook of the wheel: with TREADLE_NATIVE=1 it holds the compiled kernel, and is for one platform.

Owns: what is added to a wheel. Without the variable nothing is, and the wheel is for every platform. An editable
install is never compiled: whoever edits wants to see it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).resolve().parent))
import native

BUILT_WITH = ["msgspec>=0.22", "mypy>=2.4", "setuptools>=80"]


class CompiledKernel(BuildHookInterface):  # type: ignore[type-arg]
    def dependencies(self) -> list[str]:
        return BUILT_WITH if is_wanted() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if not is_wanted() or version != "standard":
            return
        place = native.build()
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        for built in place.rglob("*.so"):
            build_data["force_include"][str(built)] = str(built.relative_to(place))


def is_wanted() -> bool:
    return os.environ.get("TREADLE_NATIVE", "") not in ("", "0")
