"""`treadle completion [SHELL]`: prints the script that makes a shell complete verbs and options.

    treadle completion bash > ~/.local/share/bash-completion/completions/treadle

Exit codes: 0 · 2 an unknown shell.
"""

from __future__ import annotations

import sys
from typing import Annotated, Literal

from cyclopts import Parameter

from treadle.cli.frame.exits import OK


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="The shell.")] = "bash",
    /,
    *,
    install: Annotated[
        bool, Parameter(help="Write it into the shell's folder of completions instead.", negative="")
    ] = False,
) -> int:
    """Print the completion script of a shell."""
    from treadle.cli.main import app
    from treadle.cli.screen.output import say

    if install:
        place = app.install_completion(shell=shell, add_to_startup=False)
        place.write_text(_with_files(place.read_text("utf-8")), "utf-8")
        say(f"written to {place}; open a new shell")
    else:
        sys.stdout.write(_with_files(app.generate_completion(shell=shell)))
    return OK


def _with_files(script: str) -> str:
    """Lets bash complete file names where the script has no word of its own: most verbs take a file."""
    return script.replace("complete -F _treadle treadle", "complete -o bashdefault -o default -F _treadle treadle")
