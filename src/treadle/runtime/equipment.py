"""Equips a registry beyond functions: access to the outside, language models and MCP servers, as the operator has set.

Owns the choice of action kinds. An engine and a worker are equipped alike.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from treadle.actions.llm.kind import install_llm
from treadle.actions.llm.profiles import LlmSettings
from treadle.actions.mcp.kind import install_mcp
from treadle.actions.mcp.servers import McpSettings
from treadle.actions.outside import Outside, OutsideSettings, install_outside
from treadle.actions.registry import Registry
from treadle.runtime.access.root import root_secret
from treadle.runtime.access.sealing import Sealing, sealing_with
from treadle.runtime.access.secrets import Secrets, SecretsInOrder
from treadle.runtime.execute.executor import LocalExecutor
from treadle.runtime.execute.workshop import Workshop
from treadle.runtime.surroundings.ports import Clock, Report
from treadle.runtime.traces.tracing import entering
from treadle.store.port import Store

if TYPE_CHECKING:
    from treadle.runtime.settings import EngineSettings


def equip(
    registry: Registry, outside: OutsideSettings | None, llm: LlmSettings | None, mcp: McpSettings | None
) -> Outside:
    """Kinds that reach outside; `registry.close` undoes it."""
    made = install_outside(registry, outside)
    if llm is not None:
        install_llm(registry, llm, made.settings.secrets)
    if mcp is not None:
        install_mcp(registry, mcp, made.settings.secrets)
    return made


async def equip_on_store(registry: Registry, settings: EngineSettings, store: Store, clock: Clock) -> Outside:
    """As `equip`, with secrets of the store first and those of the operator's own place second. Raises SettingsInvalid
    if the key file of secrets cannot be used."""
    sealing = sealing_with(await root_secret(store), settings.secrets_key_file)

    async def unseal() -> Sealing:
        return sealing

    given = settings.outside or OutsideSettings()
    secrets = SecretsInOrder(Secrets(store, clock, unseal), clock, given.secrets)
    return equip(registry, replace(given, secrets=secrets), settings.llm, settings.mcp)


def workshop(registry: Registry, clock: Clock, settings: EngineSettings, name: str) -> Workshop:
    """The one workshop of a process, with the limits of the settings."""
    limits = {"threads_max": settings.threads_max, "processes_max": settings.processes_max}
    given = {limit: value for limit, value in limits.items() if value is not None}
    shop = Workshop(
        registry, clock, name=name, attempts_max=settings.attempts_max, tracebacks=settings.tracebacks, **given
    )
    shop.enter_trace = entering(settings.traces)
    return shop


def executing(shop: Workshop, settings: EngineSettings, name: str) -> Callable[[Report], LocalExecutor]:
    """Makes executors of that workshop, each for one receiver of reports."""
    return lambda report: LocalExecutor(shop, report, name=name, queues=settings.queues)
