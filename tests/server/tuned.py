"""`python -m tests.server.tuned SETTINGS serve …`: the command line, with settings of the service that no operator has.

SETTINGS is a JSON object of fields of `ServerSettings`: a test of intervals need not wait for the real ones.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from msgspec.structs import replace

from treadle.cli.frame import serving
from treadle.cli.main import main


def tune(fields: dict[str, Any]) -> None:
    """The service begins with these fields beside its usual settings."""
    usual = serving.server_settings
    serving.server_settings = lambda config, at: replace(usual(config, at), **fields)


if __name__ == "__main__":
    tune(json.loads(sys.argv.pop(1)))
    main()
