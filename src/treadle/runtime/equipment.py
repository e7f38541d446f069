"""Equips a registry beyond functions: access to the outside, language models and MCP servers, as the operator has set.

Owns the choice of action kinds. An engine and a worker are equipped alike.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from treadle.actions.llm.kind import install_llm
from treadle.actions.llm.profiles import LlmSettings
from treadle.actions.mcp.kind import install_mcp
from treadle.actions.mcp.servers import McpSettings
from treadle.actions.outside import Outside, OutsideSettings, install_outside
from treadle.actions.registry import Registry
from treadle.runtime.base.ports import Clock, Report
from treadle.runtime.execute.executor import LocalExecutor
from treadle.runtime.execute.workshop import Workshop

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


def workshop(registry: Registry, clock: Clock, settings: EngineSettings, name: str) -> Workshop:
    """The one workshop of a process, with the limits of the settings."""
    limits = {"threads_max": settings.threads_max, "processes_max": settings.processes_max}
    given = {limit: value for limit, value in limits.items() if value is not None}
    return Workshop(
        registry, clock, name=name, attempts_max=settings.attempts_max, tracebacks=settings.tracebacks, **given
    )


def executing(shop: Workshop, settings: EngineSettings, name: str) -> Callable[[Report], LocalExecutor]:
    """Makes executors of that workshop, each for one receiver of reports."""
    return lambda report: LocalExecutor(shop, report, name=name, queues=settings.queues)
