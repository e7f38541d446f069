"""Where tests that draw at random begin.

`./dev test` sets TREADLE_TEST_SEED out of the hash of the commit: every commit is tried with draws of its own, and a
commit that has passed passes again. Without the variable every run draws anew.
"""

from __future__ import annotations

import os

_given = os.environ.get("TREADLE_TEST_SEED")
SEED = int(_given) if _given else None
