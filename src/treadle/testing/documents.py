"""Scenario text → plain JSON values that know their lines.

Owns the reading of YAML for scenarios. Promises YAML 1.2 core semantics (`on`, `yes`, `off` are strings, keys
are strings, dates are strings, a key stands once) and a line for every path. Must not know what a scenario
is.

libyaml finds the structure twenty times faster than a pure-Python scanner: 0.3 ms against 7 ms for a small
scenario, and a suite has hundreds. It is a 1.1 parser, but only its *resolver* differs for what people write,
and that part is ours. Text it refuses is read again by ruamel.yaml, which has the last word on syntax.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import Any

from yaml import YAMLError

from treadle.errors import ScenarioError
from treadle.language.source import Marks, Source, Spot

try:
    from yaml.cyaml import CParser
except ImportError:  # a PyYAML that was built without libyaml: everything is read the careful way, only slower
    CParser = None

Json = Any
Path = tuple[str | int, ...]

VALUES_MAX = 1_000_000
"""Values of one document after aliases are expanded: bounds an alias bomb; the largest real scenario has
2,000."""

_STRING = "tag:yaml.org,2002:str"
_CORE_TAGS = {f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "map", "seq", "merge")}
_CONSTANTS: dict[str, Json] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_JSON = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_NUMERIC_START = frozenset("+-.0123456789")


class Document:
    """One document of a file: its value, and where everything in it stands."""

    __slots__ = ("_root", "file", "value")

    def __init__(self, file: str, root: Any) -> None:
        self.file = file
        self._root = root
        self.value: Json = _Constructor(file).construct(root)

    @property
    def line(self) -> int:
        """Where the document begins."""
        return int(self._root.start_mark.line) + 1

    @property
    def title(self) -> str:
        """What the document calls itself, whatever else is wrong with it."""
        title = self.value.get("scenario") if isinstance(self.value, dict) else None
        return title if isinstance(title, str) else ""

    def spot(self, path: Path, *, key: bool = False) -> Spot:
        """Line and column of a path, or of what is nearest around it; `key`: of the key itself."""
        node = self._root
        for depth, step in enumerate(path):
            found = _child(node, step)
            if found is None:
                break
            key_node, node = found
            if key and depth == len(path) - 1 and key_node is not None:
                node = key_node
        return _spot(node)

    def source(self, *path: str | int) -> Source:
        """What stands at `path`, as the definition loader likes it: with all its positions."""
        node, value = self._root, self.value
        for step in path:
            found = _child(node, step)
            assert found is not None, "a part that was read exists"
            node, value = found[1], value[step]
        return Source(value, self.file, _marks(node), ())


def read_file(path: str | FilePath) -> list[Document]:
    """Every document of a file; one that cannot be read is refused like one that makes no sense."""
    try:
        text = FilePath(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise ScenarioError(f"{path}: cannot be read: {problem}") from None
    return read_documents(text, str(path))


def read_documents(text: str, file: str) -> list[Document]:
    """Every document of a file; empty ones do not count. Raises `ScenarioError` on text that is not YAML."""
    try:
        roots = list(_compose_fast(text))
    except (YAMLError, ValueError):
        roots = list(_compose_carefully(text, file))
    documents = [Document(file, root) for root in roots]
    return [document for document in documents if document.value is not None]


class _Unresolved:
    """A resolver that leaves every scalar to us."""

    def descend_resolver(self, _node: Any, _index: Any) -> None:
        pass

    def ascend_resolver(self) -> None:
        pass

    def resolve(self, _kind: Any, _value: Any, _implicit: Any) -> str:
        return ""


_Structure: Any = type("_Structure", (_Unresolved, CParser), {}) if CParser else None


def _compose_fast(text: str) -> Iterator[Any]:
    if _Structure is None:
        raise YAMLError("no libyaml here")
    structure = _Structure(text)
    try:
        while structure.check_node():
            yield structure.get_node()
    finally:
        structure.dispose()


def _compose_carefully(text: str, file: str) -> Iterator[Any]:
    # Imported here: a suite whose files libyaml likes never needs it.
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError
    from ruamel.yaml.error import YAMLError as Unreadable

    reader = YAML(typ="safe", pure=True)
    try:
        constructor, parser = reader.get_constructor_parser(text)
        while constructor.composer.check_node():
            yield constructor.composer.get_node()
        parser.dispose()
    except MarkedYAMLError as problem:
        mark = problem.problem_mark
        place = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        raise ScenarioError(f"{file}{place}: not YAML: {problem.problem or problem.context}") from None
    except Unreadable as problem:
        raise ScenarioError(f"{file}: not YAML: {problem}") from None


class _Constructor:
    """Nodes → values. An alias gives the same object again; nobody changes what was read."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._done: dict[int, tuple[Json, int]] = {}

    def construct(self, node: Any) -> Json:
        value, size = self._measured(node)
        if size > VALUES_MAX:
            raise self._refuse(node, f"more than {VALUES_MAX:,} values once its aliases are expanded")
        return value

    def _measured(self, node: Any) -> tuple[Json, int]:
        known = self._done.get(id(node))
        if known is None:
            known = self._done[id(node)] = self._make(node)
        return known

    def _make(self, node: Any) -> tuple[Json, int]:
        kind = node.id
        if node.tag and node.tag not in _CORE_TAGS and not node.tag.endswith(":timestamp"):
            raise self._refuse(node, f"tags such as {node.tag} have no meaning in a scenario")
        if kind == "scalar":
            return self._scalar(node), 1
        self._done[id(node)] = (None, VALUES_MAX)  # an alias to what encloses it is infinitely large
        if kind == "sequence":
            parts = [self._measured(part) for part in node.value]
            return [value for value, _size in parts], 1 + sum(size for _value, size in parts)
        return self._mapping(node)

    def _mapping(self, node: Any) -> tuple[dict[str, Json], int]:
        merged: dict[str, Json] = {}
        own: dict[str, Json] = {}
        total = 1
        for key_node, value_node in node.value:
            value, size = self._measured(value_node)
            total += size
            key = self._key(key_node)
            if key == "<<" and not key_node.style:
                merged = {**self._merge(value_node, value), **merged}
            elif key in own:
                raise self._refuse(key_node, f"the key {key!r} stands twice")
            else:
                own[key] = value
        return {**merged, **own} if merged else own, total

    def _merge(self, node: Any, value: Json) -> dict[str, Json]:
        sources = value if isinstance(value, list) else [value]
        if not all(isinstance(source, dict) for source in sources):
            raise self._refuse(node, "`<<` merges maps only")
        return {key: part for source in reversed(sources) for key, part in source.items()}

    def _key(self, node: Any) -> str:
        if node.id != "scalar":
            raise self._refuse(node, "a key must be a plain word")
        return str(node.value)

    def _scalar(self, node: Any) -> Json:
        text: str = node.value
        if node.style or node.tag == _STRING:
            return text
        if text in _CONSTANTS:
            return _CONSTANTS[text]
        if text[0] not in _NUMERIC_START:
            return text
        if _INT.fullmatch(text):
            return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
        if _FLOAT.fullmatch(text):
            return float(text)
        if _NOT_JSON.fullmatch(text):
            raise self._refuse(node, f"{text} is not a JSON number")
        return text

    def _refuse(self, node: Any, message: str) -> ScenarioError:
        spot = _spot(node)
        return ScenarioError(f"{self._file}:{spot.line}:{spot.column}: {message}")


def _spot(node: Any) -> Spot:
    return Spot(int(node.start_mark.line) + 1, int(node.start_mark.column) + 1)


def _child(node: Any, step: str | int) -> tuple[Any | None, Any] | None:
    """(key node, value node) of one step down, if it exists there."""
    if node.id == "sequence" and isinstance(step, int) and step < len(node.value):
        return None, node.value[step]
    if node.id == "mapping":
        for key_node, value_node in node.value:
            if key_node.value == step:
                return key_node, value_node
    return None


def _marks(node: Any) -> Marks:
    marks = Marks(_spot(node))
    if node.id == "sequence":
        marks.parts = {index: _marks(part) for index, part in enumerate(node.value)}
    elif node.id == "mapping":
        for key_node, value_node in node.value:
            marks.keys[key_node.value] = _spot(key_node)
            marks.parts[key_node.value] = _marks(value_node)
    return marks
