"""What becomes of a Struct before it is compiled: a class that does the same."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Struct

from tools.native import compiled_modules, with_classes

SOURCE = '''
from __future__ import annotations
from msgspec import Struct

class Token(Struct, gc=False):
    """A live visit."""
    id: int
    node: str = "a"
    """Where."""
    seen: list[int] = []
    held: dict[str, int] = {}
    names: set[str] = set()

    def twice(self) -> int:
        return 2 * self.id
'''


def made_of(source: str) -> Any:
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    return namespace["Token"]


@pytest.fixture
def token() -> Any:
    return made_of(with_classes(SOURCE))


def test_it_is_no_struct_and_is_made_and_read_like_one(token: Any) -> None:
    assert not issubclass(token, Struct) and issubclass(made_of(SOURCE), Struct)
    for kind in (token, made_of(SOURCE)):
        one = kind(3, seen=[1])
        assert (one.id, one.node, one.seen, one.held, one.names, one.twice()) == (3, "a", [1], {}, set(), 6)
        assert repr(one) == "Token(id=3, node='a', seen=[1], held={}, names=set())"
        with pytest.raises(TypeError):
            kind()


def test_defaults_are_made_anew_and_equality_is_that_of_the_fields(token: Any) -> None:
    one, other = token(1), token(1)
    assert one == other and one != token(2) and one != 1
    one.seen.append(7)
    one.held["a"] = 1
    one.names.add("b")
    assert (other.seen, other.held, other.names) == ([], {}, set()) and one != other


def test_a_module_without_structs_is_left_alone() -> None:
    text = "x = 1  # kept\n"
    assert with_classes(text) is text


def test_the_kernel_and_what_it_reads_is_compiled() -> None:
    names = {path.stem for path in compiled_modules()}
    assert {"decide", "evolve", "state", "group_state", "execution_graph"} <= names and "invariants" not in names
