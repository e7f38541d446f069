"""The gate and the person that a verb about gates means: as the command line names them, or as a service knows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from treadle.cli.frame.exits import REFUSED, USAGE, VerbFailed

if TYPE_CHECKING:
    from treadle.runtime.client import Client
    from treadle.runtime.run import Run


def acting(run: Run, by: str | None) -> str:
    """The person who acts: as named, or as a service knows them."""
    person = by or run.caller
    if person is None:
        raise VerbFailed(USAGE, "say who does it: --by NAME")
    return person


async def find_gate(client: Client, text: str) -> tuple[str, int]:
    """The run and visit of a gate that is named RUN/VISIT, or RUN if it has one open gate. Raises VerbFailed."""
    name, slash, visit = text.rpartition("/")
    if slash and not await client.gates(text, 1):  # else it is a run whose id contains a slash
        if not visit.isdigit():
            raise VerbFailed(USAGE, f"{text}: expected RUN/VISIT, as `treadle gates list` shows it")
        return (await client.find_run(name)).id, int(visit)
    run = (await client.find_run(text)).id
    gates = await client.gates(run)
    if len(gates) != 1:
        some = ", ".join(f"{run}/{gate.token}" for gate in gates[:5])
        raise VerbFailed(
            REFUSED, f"run {run} has {len(gates) or 'no'} open gates" + (f": name one of {some}" if some else "")
        )
    return run, gates[0].token
