"""An independent auditor: the definition, the committed history, the letters; never the kernel's own rules."""

from tests.simulator.audit.auditor import Auditor

__all__ = ["Auditor"]
