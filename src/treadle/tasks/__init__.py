"""Plain typed functions as tasks: `@task`, how a function is found by name, and what its signature takes."""

from treadle.tasks.decorator import TaskOptions, name_of, options_of, task
from treadle.tasks.find import UnknownFunction, find_function
from treadle.tasks.signature import Signature, signature_of

__all__ = [
    "Signature",
    "TaskOptions",
    "UnknownFunction",
    "find_function",
    "name_of",
    "options_of",
    "signature_of",
    "task",
]
