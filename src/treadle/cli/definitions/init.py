"""`treadle init [DIR]`: makes a small project to begin with: a workflow, its scenario, treadle.toml.

Overwrites nothing. Exit codes: 0 made · 4 one of the files exists already.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from treadle.cli.frame.exits import OK, REFUSED, VerbFailed
from treadle.cli.screen.output import say

WORKFLOW = """\
# Three readers look at a draft; when all have spoken, somebody decides.
#   treadle validate workflows            every problem at once
#   treadle test workflows                the scenario beside this file, in milliseconds
#   treadle run workflows/review.yaml --input '{"draft": "Hello"}'
#   treadle gates list                    … and from another terminal:
#   treadle gates complete RUN '{"publish": true}'
workflow: review
input_schema: {type: object, required: [draft], properties: {draft: {type: string}}}
output: {published: $.state.decision.publish, remarks: $.state.remarks}

nodes:
  begin: {}
  read:
    action: {kind: template, template: "reader {{ reader }} has read {{ draft }}"}
    input_mapping: {reader: $._branch.index, draft: $.input.draft}
    output_mapping: {state.remark: $.text}
    retry: {max_attempts: 3, backoff: exponential, initial_delay_ms: 500}
  decide:
    action:
      kind: human
      title: Publish it?
      form: {type: object, required: [publish], properties: {publish: {type: boolean}}}
    input_mapping: {remarks: $.state.remarks}
    output_mapping: {state.decision: $}

transitions:
  - {id: readers, from: begin, to: read, spawn_count: 3}
  - from: read
    to: decide
    synchronization:
      sibling_group: readers
      min_success_count: 1
      merge: {source: _branch.output.remark, target: state.remarks, strategy: append}
"""

SCENARIO = """\
scenario: what three readers say is put before somebody, who publishes it
definitions: [{file: review.yaml}]
start: {input: {draft: Hello}}
steps:
  - expect: {status: running, visits: {begin: 1, read: 3, decide: 1}}
  - gate: decide
    data: {publish: true}
expect:
  status: completed
  output:
    published: true
    remarks: [reader 0 has read Hello, reader 1 has read Hello, reader 2 has read Hello]
"""

SETTINGS = """\
# Flags and TREADLE_… variables win over this file; `treadle config --origin` shows which.
store = "treadle.db"
workflows = "workflows"

[engine]
grace_ms = 5000

# [net]
# allow = ["127.0.0.1:*"]    # addresses that are not public and may be reached nevertheless

# [shell]
# enabled = true             # `shell` actions are off unless you say so
"""

IGNORE = "treadle.db*\n"

FILES = {
    "workflows/review.yaml": WORKFLOW,
    "workflows/review.scenario.yaml": SCENARIO,
    "treadle.toml": SETTINGS,
    ".gitignore": IGNORE,
}


def init(
    directory: Annotated[Path, Parameter(help="The folder; it is made if it does not exist.")] = Path(),
    /,
) -> int:
    """Make a small project: a workflow, its scenario, treadle.toml."""
    there = [name for name in FILES if (directory / name).exists() and name != ".gitignore"]
    if there:
        raise VerbFailed(REFUSED, f"{directory / there[0]} exists already; nothing was written")
    for name, content in FILES.items():
        file = directory / name
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content, "utf-8")
            say(f"  {file}")
    where = "" if directory == Path() else f"cd {directory} && "
    say(f"next: {where}treadle test workflows && treadle dev")
    return OK
