"""The exceptions: one tree, drawn as it is."""

from __future__ import annotations

import inspect
import re

import treadle.errors as errors


def test_the_tree_in_the_docstring_is_the_tree_in_the_code() -> None:
    classes = {
        name for name, value in inspect.getmembers(errors, inspect.isclass) if value.__module__ == errors.__name__
    }
    drawn = set(re.findall(r"^ {4}(?:[│ ]*[├└]── )?(\w+)", errors.__doc__ or "", re.MULTILINE))
    assert drawn == classes


def test_everything_we_raise_is_a_treadle_error() -> None:
    for _, value in inspect.getmembers(errors, inspect.isclass):
        assert issubclass(value, errors.TreadleError) or value.__module__ != errors.__name__


def test_a_definition_error_carries_all_its_problems() -> None:
    error = errors.DefinitionError(["UNKNOWN_NODE at nodes.a", "CYCLE at transitions[0]"])
    assert error.problems == ("UNKNOWN_NODE at nodes.a", "CYCLE at transitions[0]")
    assert str(error) == "UNKNOWN_NODE at nodes.a\nCYCLE at transitions[0]"


def test_an_invalid_transition_names_both_states() -> None:
    error = errors.InvalidTransition("completed", "pending")
    assert (error.from_, error.to) == ("completed", "pending")
    assert "INVALID_TRANSITION: completed → pending" in str(error)
