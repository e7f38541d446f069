"""`treadle`: the entry of the command line. It names every verb and imports a verb's file only when the verb is used.

To add a verb: write `cli/<room>/<verb>.py` with a function of that name that returns an exit code, and add one line to
VERBS. `./dev python tools/cli_docs.py` writes its section of docs/reference/cli.md. A group of verbs is an `App`.
"""

from __future__ import annotations

import os
import sys

from cyclopts import App, CycloptsError, Group

from treadle.cli.frame.exits import BROKEN_PIPE, INTERRUPTED, OK, USAGE, VerbFailed, conclude
from treadle.cli.frame.options import GIVEN, NOT_OVER_HTTP, not_over_http

DEBUG = "--debug"


def _version() -> str:
    from importlib.metadata import version  # slow to import, and rarely needed

    return version("treadle")


app = App(
    name="treadle",
    help="A durable, token-based workflow engine.",
    help_format="plaintext",  # Markdown would cost every --help a sixth of a second.
    help_epilogue="--server URL, anywhere: ask a service instead of a store (TREADLE_SERVER, TREADLE_KEY). --debug, "
    "anywhere: the traceback of an error. Exit codes: docs/reference/cli.md\n",
    version=_version,
)

WRITE = Group("Write and test", sort_key=1)
RUN = Group("Run", sort_key=2)
LOOK = Group("Look and answer", sort_key=3)
KEEP = Group("Keep", sort_key=4)

VERBS = (
    ("init", "definitions.init:init", WRITE, "Make a small project: a workflow, its scenario, treadle.toml."),
    (
        "validate",
        "definitions.validate:validate",
        WRITE,
        "Check definitions and report every problem. Functions are looked up by `deploy` and `run`, not here.",
    ),
    ("test", "definitions.test:test", WRITE, "Play scenarios on a virtual clock."),
    ("replay", "definitions.replay:replay", WRITE, "Play recorded runs against a new definition."),
    ("graph", "definitions.graph:graph", WRITE, "Draw a workflow: text, mermaid, svg or json."),
    ("schema", "definitions.schema:schema", WRITE, "Print the JSON Schema of the definition language."),
    ("run", "runs.run:run", RUN, "Run a workflow and watch it."),
    ("dev", "nodes.dev:dev", RUN, "Coordinate, execute, and redeploy workflow files as they change."),
    ("serve", "service.serve:serve", RUN, "Serve the API and the canvas; coordinate and execute."),
    ("engine", "nodes.engine:engine", RUN, "Coordinate and execute until stopped."),
    ("worker", "nodes.worker:worker", RUN, "Execute work of queues for the engines on a shared store."),
    ("deploy", "definitions.deploy:deploy", RUN, "Store new versions of workflows."),
    ("migrate", "runs.migrate:migrate", RUN, "Let runs go on under another version of their workflow."),
    ("runs", "runs.runs:app", LOOK, None),
    ("nodes", "nodes.nodes:nodes", LOOK, "Show engines and workers, the shards of each, and how far behind it is."),
    ("gates", "runs.gates:app", LOOK, None),
    ("entities", "runs.entities:app", LOOK, None),
    ("schedules", "nodes.schedules:app", LOOK, None),
    ("queue", "runs.queue:queue", LOOK, "Show the runs of a workflow that wait for their start."),
    ("queues", "nodes.queues:app", LOOK, None),
    ("artifacts", "runs.artifacts:app", LOOK, None),
    ("requests", "runs.requests:app", LOOK, None),
    ("dead", "runs.dead:app", LOOK, None),
    ("keys", "service.keys:app", KEEP, None),
    ("backup", "upkeep.backup:backup", KEEP, "Copy the store while it is in use."),
    ("db", "upkeep.db:app", KEEP, None),
    ("fsck", "upkeep.fsck:fsck", KEEP, "Check every checksum, and every history against the rows beside it."),
    ("doctor", "upkeep.doctor:doctor", KEEP, "Check the surroundings: versions, disk, owner, clock."),
    ("config", "upkeep.config:config", KEEP, "Show the settings, and where each comes from."),
    ("completion", "completion:completion", KEEP, "Print the completion script of a shell."),
)
HELP_OF_GROUPS = {
    "runs": "Runs: list, show, history, watch, diff, cancel, pause, resume, abort, retry, fork, edit, skip, jump, "
    "set-input, budget, export, compensations, groups, signal.",
    "gates": "Gates, questions to people: list, show, complete, claim, release, delegate.",
    "entities": "Entities: list, show, create, update, delete, journey, move, positions, conversion.",
    "schedules": "Schedules: list, add, remove, pause, resume, next.",
    "keys": "Keys of the service: create, list, revoke.",
    "queues": "Queues of workers: list, set.",
    "artifacts": "Artifacts that runs have kept: list, get.",
    "db": "A store as a whole: move, undo.",
    "requests": "Requests kept while no engine ran: list, show.",
    "dead": "Dead letters, messages that could not be delivered: list, requeue.",
}
for _name, _place, _group, _help in VERBS:
    app.command(f"treadle.cli.{_place}", name=_name, group=_group, help=_help or HELP_OF_GROUPS[_name])


def main(arguments: list[str] | None = None) -> None:
    """Runs one verb and exits the process with the verb's code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = DEBUG in words or bool(os.environ.get("TREADLE_DEBUG"))
    sys.exit(run_verb([word for word in words if word != DEBUG], debug=debug))


def take_server(words: list[str]) -> list[str]:
    """The words without `--server URL`, which is kept for the verb. Raises VerbFailed."""
    GIVEN.pop("server", None)
    left: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--":
            return [*left, word, *rest]
        if word != "--server" and not word.startswith("--server="):
            left.append(word)
            continue
        url = word.partition("=")[2] if "=" in word else next(rest, "")
        if not url:
            raise VerbFailed(USAGE, "--server needs an address: https://HOST")
        GIVEN["server"] = url
    verb = next((word for word in left if not word.startswith("-")), "")
    if "server" in GIVEN and verb in NOT_OVER_HTTP:
        raise not_over_http(verb)
    return left


def run_verb(words: list[str], *, debug: bool) -> int:
    """Runs one verb and returns its exit code. An exception becomes one line on stderr."""
    try:
        words = take_server(words)
        code = app(words, exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()
    except CycloptsError as misuse:
        from treadle.cli.misuse import sentence

        return conclude(VerbFailed(USAGE, sentence(misuse)), debug=debug)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has closed the pipe (`treadle … | head`). Python must not complain about it at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except Exception as problem:
        return conclude(problem, debug=debug)
    return code if isinstance(code, int) else OK


if __name__ == "__main__":
    main()
