"""`python -m treadle.cli.nodes.demo`: shows the engine at work on a real file. `./dev run` starts it.

Seven judges read a draft. One fails and is retried, one fails for good; five votes make a quorum. Then a person
decides, and a letter is written. This program plays the person, unless --interactive. It ends by itself, with or
without a terminal. Exit codes: those of `treadle run`.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from treadle.cli.frame.exits import OK
from treadle.cli.frame.options import StoreOption
from treadle.cli.screen.output import Out, say
from treadle.store.places import StoreLocation

if TYPE_CHECKING:
    from treadle.runtime.engine import Engine
    from treadle.runtime.run import Run

WORKFLOW = """\
workflow: panel
description: Seven judges read one draft; five answers make a proposal, a person decides.
input_schema: {type: object, required: [draft]}
start: brief
output: {letter: $.state.letter, votes: $.state.proposal.counts, editor: $.state.word}

nodes:
  brief:
    action: {kind: set, values: {judges: [strict, mild, strict, moody, mild, strict, mild]}}
    output_mapping: {state.judges: $.judges}
  judge:
    input_mapping: {judge: $.judge, index: $._branch.index}
    retry: {max_attempts: 3, backoff: linear, initial_delay_ms: 700}
    steps:
      - {ref: read, action: {kind: mock, output: {}, after_ms: 1100}}
      - {ref: stumble, action: {kind: python, function: demo.stumble}}
      - {ref: temper, action: {kind: assert, condition: "input.judge != 'moody'", message: this judge walks out}}
      - ref: vote
        action: {kind: set, values: {vote: {cel: "input.judge == 'strict' ? 'revise' : 'publish'"}}}
        output_mapping: {output.vote: $.vote}
    output_mapping: {state.vote: $.vote}
  proposal: {}
  editor:
    action:
      kind: human
      title: The judges have spoken. Publish it?
      form: {type: object, required: [publish], properties: {publish: {type: boolean}, word: {type: string}}}
    input_mapping: {proposal: $.state.proposal}
    output_mapping: {state.decision: $, state.word: $.word}
  rest:
    action: {kind: wait, ms: 1200}
  publish:
    action: {kind: template, template: "Published: {{ draft }}"}
    input_mapping: {draft: $.input.draft}
    output_mapping: {state.letter: $.text}
  revise:
    action: {kind: template, template: "Please revise: {{ draft }}"}
    input_mapping: {draft: $.input.draft}
    output_mapping: {state.letter: $.text}

transitions:
  - {id: panel, from: brief, to: judge, foreach: {collection: state.judges, item_var: judge, max_in_flight: 4}}
  - from: judge
    to: proposal
    synchronization:
      sibling_group: panel
      strategy: {m_of_n: 5}
      on_early_complete: cancel
      merge: {source: _branch.output.vote, target: state.proposal, strategy: vote}
  - {from: proposal, to: editor}
  - {from: editor, to: rest}
  - {from: rest, to: publish, condition: "state.decision.publish"}
  - {from: rest, to: revise, priority: 2}
"""
INPUT = {"draft": "On the treadle loom"}
ANSWER = {"publish": True, "word": "mild judges were right"}
THINKS_S = 1.5
"""How long the person in the demonstration thinks."""

app = App(name="demo", help=__doc__, help_format="plaintext")
_stumbled: set[int] = set()


def stumble(input: dict[str, Any]) -> dict[str, Any]:
    """Fails the first attempt of the second judge."""
    if input["index"] == 1 and 1 not in _stumbled:
        _stumbled.add(1)
        raise ConnectionError("the second judge has dropped the manuscript")
    return {}


@app.default
def demo(
    *,
    interactive: Annotated[bool, Parameter(help="You are the editor.", negative="")] = False,
    store: StoreOption = None,
) -> int:
    """Show the engine at work."""
    from treadle.cli.frame.opening import drive

    with tempfile.TemporaryDirectory(prefix="treadle-demo-") as folder:
        return drive(_play(StoreLocation(store or Path(folder, "treadle.db")), interactive))


async def _play(place: StoreLocation, interactive: bool) -> int:
    from treadle.cli.watch.follow import watch
    from treadle.language import load_text
    from treadle.runtime.engine import Engine
    from treadle.runtime.surroundings.logs import log_to_stderr

    log_to_stderr()
    out = Out("text")
    say(f"an engine on {place}: fan-out, retry, quorum, a person, merge")
    async with Engine(place, functions={"demo.stumble": stumble}) as engine:
        run = await engine.start(load_text(WORKFLOW, "demo").require(), INPUT, tags=["demo"])
        answering = asyncio.create_task(_answer(engine, run, interactive, place))
        code = await watch(engine, run, out)
        answering.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await answering
        report = await engine.fsck()
        say(f"{report.events} events on disk; fsck: " + ("everything agrees" if report.ok else f"{report.findings}"))
    return code if report.ok else max(code, 1)


async def _answer(engine: Engine, run: Run, interactive: bool, place: StoreLocation) -> None:
    """Waits for the gate and answers it; with --interactive, prints the command with which the user answers."""
    from treadle.model.events import GateOpened

    async for event in run.events():
        if isinstance(event, GateOpened):
            if interactive:
                say(f"\nin another terminal: treadle gates complete {run.id} '{{\"publish\": true}}' --store {place}\n")
            else:
                await asyncio.sleep(THINKS_S)
                await engine.complete_gate(run.id, event.token, ANSWER, by="the editor")
            return


if __name__ == "__main__":
    sys.exit(app(result_action="return_value") or OK)
