"""`treadle completion [SHELL]`: prints the script that makes a shell complete verbs and options.

    treadle completion bash > ~/.local/share/bash-completion/completions/treadle

Exit codes: 0 · 2 a shell nobody knows.
"""

from __future__ import annotations

import sys
from typing import Annotated, Literal

from cyclopts import Parameter

from treadle.cli.exits import OK


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="Which shell.")] = "bash",
    /,
    *,
    install: Annotated[bool, Parameter(help="Put it where the shell looks for it instead.", negative="")] = False,
) -> int:
    """Print the completion script of a shell."""
    from treadle.cli.emit import say
    from treadle.cli.main import app

    if install:
        say(f"written to {app.install_completion(shell=shell, add_to_startup=False)}; open a new shell")
    else:
        sys.stdout.write(app.generate_completion(shell=shell))
    return OK
