"""An engine starts without what it may never need: a node that was killed goes on within two seconds."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["aiohttp", "openai", "anthropic", "mcp", "starlette"])
def test_the_engine_is_imported_without_libraries_that_few_runs_need(module: str) -> None:
    code = f"import sys, treadle.runtime.engine; sys.exit({module!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=120).returncode == 0
