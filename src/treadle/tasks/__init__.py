"""Plain typed functions as tasks: `@task`, how a function is found by name, and what its signature takes."""

from treadle.tasks.decorator import TaskOptions, name_of, options_of, task
from treadle.tasks.find import UnknownFunction, UntrustedFunction, find_function
from treadle.tasks.signature import Signature, signature_of
from treadle.tasks.trust import Trust

__all__ = [
    "Signature",
    "TaskOptions",
    "Trust",
    "UnknownFunction",
    "UntrustedFunction",
    "find_function",
    "name_of",
    "options_of",
    "signature_of",
    "task",
]
