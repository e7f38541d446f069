"""Plain typed functions as tasks: the decorator `@task`, finding a function by its name, and its signature."""

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
