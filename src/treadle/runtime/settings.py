"""The settings of an engine or a worker, which an operator decides.

Owns their names, defaults and bounds; `treadle.toml` and the environment have the same under the same names
(`cli/configuration.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from treadle.actions.llm.profiles import LlmSettings
from treadle.actions.mcp.servers import McpSettings
from treadle.actions.outside import OutsideSettings
from treadle.expression.view import CEL_BYTES_MAX
from treadle.runtime.cluster.membership import TTL_MS
from treadle.runtime.operate.retention_setting import Keep

GRACE_MS = 5_000
"""How long work in hand may go on when an engine closes."""
LEASE_MIN_MS = 1_000
"""A sign of life comes every quarter or third of a lease: a busy machine must be able to keep that up, and each is a
transaction."""


class EngineSettings(Struct, frozen=True, kw_only=True):
    """What an operator decides; everything has a default. The three limits hold for the whole process: for runs it owns
    and queue work it claims together."""

    attempts_max: int = 1_000
    threads_max: int | None = None
    processes_max: int | None = None
    queues: Mapping[str, int] | None = None
    """Queues this engine works for, with how many attempts of each at once; None: all of them."""
    outside: OutsideSettings | None = None
    llm: LlmSettings | None = None
    """Profiles of language models; needs the extra `llm`."""
    mcp: McpSettings | None = None
    """MCP servers; needs the extra `mcp`."""
    functions_allow: tuple[str, ...] = (".",)
    """Modules whose functions workflows may name, and folders of such modules; `.` is the project's (`tasks/trust.py`).
    Functions that are registered, or that a `Flow` brings, need none of it."""
    payload_max: int = 64 * 1024
    """Larger values move out of the history into content-addressed blobs."""
    cel_bytes_max: int = CEL_BYTES_MAX
    """Bytes of data that one CEL expression may read; more fails its token."""
    secrets_key_file: str | None = None
    """A file with the key that seals stored secrets; None: the store's own secret does."""
    tracebacks: bool = True
    """Whether the traceback of a function that raises is kept with the failed attempt."""
    traces: bool = False
    """Whether runs are traced by OpenTelemetry; needs the extra `otel`. Where spans go and how many are sampled, the
    variables `OTEL_…` of the environment say."""
    grace_ms: int = GRACE_MS
    lease_ms: int = TTL_MS
    """On a shared store: how long others wait for a sign of life before they take over what this engine owned."""
    claim_ms: int = 15_000
    """On a shared store: how long queue work is waited for after a worker's last sign of life."""
    open_wait_ms: int = 60_000
    """How long opening waits for a store that does not answer, or whose disk is full: longer than a database takes to
    restart or to be replaced by its standby."""
    keep: Keep = Keep()
    """How long finished runs are kept: for ever, unless it says otherwise."""
    keep_of: Mapping[str, Keep] = {}
    """Workflows with a rule of their own, instead of `keep`."""
    spare_collector: bool = False
    """Lets Python's garbage collector of the whole process look less often (`runtime/garbage.py`): steps cost a quarter
    less. The command line does that; a library asks first."""

    def __post_init__(self) -> None:
        for name, value in (("lease_ms", self.lease_ms), ("claim_ms", self.claim_ms)):
            if value < LEASE_MIN_MS:
                raise ValueError(f"{name} must be at least {LEASE_MIN_MS} (milliseconds), not {value}")
