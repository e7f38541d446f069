"""What is stored is never renamed: old histories must stay readable."""

from __future__ import annotations

from tests.arch import freeze, source


def test_no_stored_string_was_renamed_or_removed() -> None:
    vanished = sorted(set(freeze.frozen()) - set(freeze.current()))
    assert not vanished, source.report(
        "stored strings that are gone from the code:",
        vanished,
        "bring them back: stores contain them. A better name can be added beside the old one, not instead",
    )


def test_every_stored_string_is_frozen() -> None:
    new = sorted(set(freeze.current()) - set(freeze.frozen()))
    assert not new, source.report(
        "stored strings that are not frozen yet:",
        new,
        "read them once more, they are for ever; then run: ./dev python -m tests.arch.freeze",
    )


def test_the_spec_s_event_types_are_among_them() -> None:
    """A guard for the introspection itself: it would be easy to freeze an empty list."""
    tags = {line.rpartition(" = ")[2] for line in freeze.current() if line.startswith("events ") and " . " not in line}
    assert {"run.started", "token.created", "join.fired", "timer.set"} <= tags
