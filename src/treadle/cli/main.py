"""`treadle`: the frame of the command line. Verbs are named here and imported only when they are used.

To add a verb: write `cli/<verb>.py` with a function of that name that returns an exit code, and one line below.
"""

from __future__ import annotations

import os
import sys

from cyclopts import App, CycloptsError

USAGE, BROKEN_PIPE, INTERRUPTED = 2, 120, 130


def _version() -> str:
    from importlib.metadata import version  # slow to import, and rarely asked for

    return version("treadle")


app = App(
    name="treadle",
    help="A durable, token-based workflow engine.",
    help_format="plaintext",  # Markdown would cost every --help a sixth of a second.
    version=_version,
)
app.command("treadle.cli.validate:validate", name="validate", help="Check definitions and say all that is wrong.")
app.command("treadle.cli.test:test", name="test", help="Play scenarios on a virtual clock.")
app.command("treadle.cli.schema:schema", name="schema", help="Print the JSON Schema of the definition language.")


def main(arguments: list[str] | None = None) -> None:
    """Runs a verb and exits with its code."""
    try:
        code = app(arguments, exit_on_error=False, result_action="return_value")
        sys.stdout.flush()
    except CycloptsError:
        code = USAGE
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:
        # The reader has seen enough (`treadle … | head`); nothing may complain about it at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = BROKEN_PIPE
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
