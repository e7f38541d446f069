"""Settings of the engines that are measured: those of `treadle engine`, which has its process to itself."""

from __future__ import annotations

from treadle.runtime.engine import EngineSettings

AS_SERVED = EngineSettings(spare_collector=True)
