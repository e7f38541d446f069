"""Schemathesis over the description of a service: what the service answers is what its description says.

Two passes over a real service. In the first, requests break the description in every way that it allows to break: each
must be refused as described. In the second, requests keep to it and are led to things that exist, one after the other
along the links of the description. Nothing may answer 5xx, or anything that is not described (status, media type,
schema, headers).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.fuzz.world import furnish
from tests.server.client import Served

ROOT = Path(__file__).parents[2]
SEED = 20_260
NOT_CHECKED = ("positive_data_acceptance",)
"""A request that keeps to the description may still be refused: the description does not say which runs there are."""
STREAMS = "stream$"
"""Paths that answer without end; `inputs.py` and tests/server/test_streams.py speak to them."""


class Finding(AssertionError):
    """The service has answered something that is not described. Carries what Schemathesis says about it."""


def broken_requests(service: Served, seed: int = SEED) -> str:
    """The first pass: every parameter and field at its limits and beyond them. Gives the report."""
    return _run(service, {}, "--phases", "coverage", "--seed", str(seed))


def led_requests(service: Served, seed: int = SEED, *, examples: int = 5, seconds: int | None = None) -> str:
    """The second pass: requests that keep to the description, and walks along its links. Gives the report."""
    known = {"TREADLE_FUZZ_KNOWN": json.dumps(furnish(service))}
    size = ["--max-time", str(seconds)] if seconds is not None else []
    size += ["--max-examples", str(examples)]
    return _run(service, known, "--phases", "fuzzing,stateful", "--mode", "positive", "--seed", str(seed), *size)


def _run(service: Served, settings: dict[str, str], *options: str) -> str:
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{service.url}/api/v1/openapi.json"]
    command += ["--header", f"Authorization: Bearer {service.keys['admin']}", "--exclude-path-regex", STREAMS]
    command += ["--exclude-checks", ",".join(NOT_CHECKED), "--request-timeout", "20", "--continue-on-failure"]
    command += ["--generation-database", "none", "--warnings", "off", "--no-color", *options]
    environment = {**os.environ, **settings, "SCHEMATHESIS_HOOKS": "tests.fuzz.leading", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, cwd=service.folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Finding(f"{done.stdout}\n{done.stderr}\nthe service has said:\n{service.said()[-10_000:]}")
    return done.stdout
