"""`treadle config`: shows the settings and the origin of each. Secrets are no settings and are not shown.

Exit codes: 0 · 3 treadle.toml or a variable is invalid.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from treadle.cli.frame.exits import OK
from treadle.cli.frame.options import OutputOption, StoreOption, configuration
from treadle.cli.screen.output import Out
from treadle.project.settings import SETTINGS

if TYPE_CHECKING:
    from treadle.cli.screen.tables import Gives

GIVES: tuple[Gives, ...] = (("wrap", "meaning"), ("wrap", "value"))
ORIGIN_GIVES: tuple[Gives, ...] = (("wrap", "value"), ("front", "origin"), ("leave", "variable"))

_USER = re.compile(r"(?<=//)[^/@]*@")


def masked(value: Any, inside: str = "") -> Any:
    """A value with its secret parts masked: variables, headers, and the user and password of an address."""
    if isinstance(value, dict):
        return {name: masked(part, inside if inside in ("env", "headers") else name) for name, part in value.items()}
    if isinstance(value, list):
        return [masked(part, inside) for part in value]
    if inside in ("env", "headers") and value is not None:
        return "***"
    return _USER.sub("***@", value) if isinstance(value, str) else value


def config(
    *,
    origin: Annotated[bool, Parameter(help="Show where each value comes from.", negative="")] = False,
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """Show the settings, and where each comes from."""
    settings = configuration(store, output)
    out = Out(settings["output"])
    rows = [
        {
            "setting": one.name,
            "value": str(settings.store) if one.name == "store" else masked(settings[one.name]),
            "origin": settings.values[one.name].origin,
            "variable": one.variable,
            "meaning": one.help,
        }
        for one in SETTINGS
    ]
    columns = ("setting", "value", "origin", "variable") if origin else ("setting", "value", "meaning")
    out.rows(columns, rows, "", ORIGIN_GIVES if origin else GIVES)
    return OK
