"""Every event has one method, named after its stored type, and each argument ends up in the field of its name."""

from __future__ import annotations

import inspect
from typing import Any

import msgspec
import pytest

from treadle.kernel import recording, recording_groups, recording_tokens
from treadle.kernel.deciding import Deciding
from treadle.kernel.recording_runs import RunRecording
from treadle.kernel.state import RunState
from treadle.model import events as e
from treadle.model.ids import TokenId

EVENTS = sorted(e.Event.__subclasses__(), key=lambda kind: kind.__name__)
NEXT_ID = {
    "token_created": "token",
    "group_opened": "group",
    "join_arrived": "arrival",
    "timer_set": "timer",
    "signal_received": "signal",
    "compensation_recorded": "record",
}
"""Methods that take the next free number, and the field it is written to."""
FIXED = {
    "token_timed_out": {"timeout_at": 1_000},
    "join_failed": {"remembers": True},
    "join_dead": {"item": None},
    "context_updated": {"by": None, "reason": None},
}
"""Fields that methods fill in themselves."""
OTHER_NAMES = {"token_failed": {"retries": "retry_count"}, "run_forked": {"origin": "from_"}}


def method_of(kind: type[e.Event]) -> str:
    return str(kind.__struct_config__.tag).replace(".", "_")


def recorder(patch: pytest.MonkeyPatch) -> Deciding:
    """Records events without folding them: here their fields are looked at, not what they do."""
    patch.setattr(recording, "FOLDS", dict.fromkeys(EVENTS, lambda *_: None))
    for fold in ("created", "dispatched", "started", "waits", "completed"):
        patch.setattr(recording_tokens, fold, lambda *_: None)
    for fold in ("arrived", "updated"):
        patch.setattr(recording_groups, fold, lambda *_: None)
    still = Deciding(None, RunState(graph=None), 1_000, None, None)  # type: ignore[arg-type]
    still.state.seq = 6
    still.because = 5
    for counter in ("token", "group", "arrival", "timer", "signal", "record"):
        setattr(still.state, f"last_{counter}", 40)
    return still


@pytest.mark.interpreted
@pytest.mark.parametrize("kind", EVENTS, ids=method_of)
def test_a_method_writes_each_argument_into_the_field_of_its_name(
    kind: type[e.Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    still, name = recorder(monkeypatch), method_of(kind)
    method = getattr(still, name)
    given: dict[str, Any] = {}
    for parameter in inspect.signature(method).parameters.values():
        given[parameter.name] = [f"a value for {parameter.name}"] if parameter.name != "absorbed" else False
    returned = method(**given)
    (event,) = still.events
    assert type(event) is kind
    fields = msgspec.structs.asdict(event)
    renamed = OTHER_NAMES.get(name, {})
    wanted: dict[str, Any] = {"seq": 7, "at": 1_000, **FIXED.get(name, {})}  # type: ignore[dict-item]
    wanted |= {renamed.get(key, key): value for key, value in given.items()}
    if "because" in fields:
        wanted["because"] = 5
    if name in NEXT_ID:
        wanted[NEXT_ID[name]] = 41
        assert returned in (41, None)
    assert fields == wanted


def test_every_recording_method_belongs_to_an_event() -> None:
    families = [kind for kind in Deciding.__mro__ if kind.__module__.startswith(recording.__name__)]
    methods = {
        name for kind in families for name in vars(kind) if not name.startswith("_") and callable(vars(kind)[name])
    }
    assert methods == {method_of(kind) for kind in EVENTS} | {"context_edited"}, "by hand it is a context.updated, too"
    assert issubclass(Deciding, RunRecording)


@pytest.mark.interpreted
def test_an_absorbed_arrival_takes_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    still = recorder(monkeypatch)
    still.join_arrived(TokenId(1), "z", "t", "root", (), absorbed=True)
    assert msgspec.structs.asdict(still.events[0])["arrival"] == 0
