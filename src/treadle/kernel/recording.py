"""Recording events: the one place where the kernel makes them, and the only way a decision changes the run's state.

Theory of operation. Every event has one method, named after its stored type: `token.waiting` is `d.token_waiting(…)`.
The rules call these methods and never make an event themselves. A method takes what the event is about by position and
everything optional by keyword; it adds what needs no saying (the sequence number, the time, the next free id, the
failure that is being carried out) and folds the event into the state at once, so that the next rule sees it.

The methods fill five modules, one for each module of folds, in one line of inheritance that ends at
`deciding.Deciding`:

    Recording ◄ TokenRecording ◄ GroupRecording ◄ WaitRecording ◄ RunRecording ◄ ChangeRecording ◄ Deciding
                evolve_tokens    evolve_groups    evolve_waits    evolve_runs    evolve_changes

Promises
 1. A method records exactly one event and decides nothing.
 2. Sequence numbers have no gap; ids of tokens, groups, arrivals, timers, signals and records count upwards.
 3. These modules alone make events by position (tests/arch holds it): by keyword a `TokenCreated` takes 1.1 µs instead
    of 0.3, and a visit makes five to seven events.

Those five to seven (`token_created`, `token_dispatched`, `token_started`, `token_waiting`, `token_completed`,
`join_arrived`, `context_updated`) are the kernel's hottest code. Each of them does the work of `_record` itself, calls
its fold directly, and lets optional arguments come by position too. By way of `_record` a visit of a chain would take
6 % more instructions (92,800 instead of 87,600).
"""

from __future__ import annotations

from treadle.kernel.evolve import FOLDS
from treadle.kernel.state import RunState
from treadle.model.events import Event


class Recording:
    """The fields every recording method needs. `Deciding` sets them: `super().__init__` would take
    0.2 to 0.5 µs of every decision."""

    __slots__ = ("because", "events", "now", "state")

    state: RunState
    now: int
    events: list[Event]
    because: int
    """The failure that takes down everything cancelled now (6.2): the sequence number of its event, or -1 for the run's
    own. 0: no failure does. Events of cancelling carry it."""

    @property
    def seq(self) -> int:
        """The sequence number of the next event."""
        return self.state.seq + 1

    def _record(self, event: Event) -> None:
        """Fold an event into the state and keep it for the decision: `evolve` without its check for gaps, because the
        number was taken here."""
        state = self.state
        FOLDS[type(event)](state, event)
        state.seq = event.seq
        self.events.append(event)
