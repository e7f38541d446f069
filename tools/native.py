"""The kernel as machine code: `./dev native`.

Owns: which modules are compiled, what has to become of their source first, and where the result lies. Promises: the
Python in `src` stays the only source, and is not touched; what is compiled passes the same tests; a build that is up to
date costs one hash. Must not: be needed by anything. Decision 0006 says what it gains, and why only the kernel.

mypyc (it comes with mypy) turns annotated Python into C. It reaches the fields of its own classes directly and those of
a Struct by name, so the kernel's Structs become classes of its own here: the same fields, the same `__init__`, the same
equality. Interpreted, such classes would be the slower ones: a Struct is made in C.
"""

from __future__ import annotations

import ast
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
PLACE = ROOT / ".dev" / "native"
"""For PYTHONPATH: a copy of the package with compiled modules beside the others."""
COMPILE = "--compile"
"""The argument of the process that does it: it has to stand in the copy, and `setup` ends it."""
PLAIN = {"__init__.py", "invariants.py"}
"""Of the kernel's modules those that stay as they are: nothing in them is hot."""
FRESH = {"[]": "list", "{}": "dict", "set()": "set"}
"""Defaults that a Struct makes anew for every object."""


def compiled_modules(place: Path = SOURCE) -> list[Path]:
    """The kernel, and the graph it reads."""
    kernel = sorted((place / "treadle" / "kernel").rglob("*.py"))
    return [*(path for path in kernel if path.name not in PLAIN), place / "treadle" / "graph" / "execution_graph.py"]


def obstacle() -> str | None:
    """Why nothing can be compiled on this machine; None if it can."""
    compilers = [*os.environ.get("CC", "").split()[:1], "cc", "gcc", "clang"]
    if not any(map(shutil.which, compilers)):
        return "there is no C compiler (Debian: apt install gcc)"
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        return "Python's headers are missing (Debian: apt install python3-dev)"
    return None


def build(place: Path = PLACE) -> Path:
    """A package tree with compiled modules, made anew if it is not of this source and interpreter."""
    stamp = place / "stamp"
    wanted = _ingredients()
    if stamp.exists() and stamp.read_text("utf-8") == wanted:
        return place
    if (missing := obstacle()) is not None:
        raise NotCompiled(f"the kernel cannot be compiled here: {missing}")
    print("dev: compiling the kernel, some two minutes, once", file=sys.stderr, flush=True)
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(SOURCE / "treadle", place / "treadle", ignore=shutil.ignore_patterns("__pycache__"))
    modules = compiled_modules(place)
    for module in modules:
        module.write_text(with_classes(module.read_text("utf-8")), "utf-8")
    names = [str(module.relative_to(place)) for module in modules]
    command = [sys.executable, str(Path(__file__).resolve()), COMPILE, *names]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True)
    if done.returncode:
        raise NotCompiled(f"the kernel could not be compiled:\n{(done.stdout + done.stderr)[-4_000:]}")
    shutil.rmtree(place / "build")
    stamp.write_text(wanted, "utf-8")
    return place


class NotCompiled(Exception):
    """The message holds the last of what the compilers said."""


def _ingredients() -> str:
    found = hashlib.sha256(sys.version.encode())
    for path in [Path(__file__), *sorted((SOURCE / "treadle").rglob("*"))]:
        if path.is_file() and "__pycache__" not in path.parts:
            found.update(str(path).encode() + path.read_bytes())
    return found.hexdigest()


def with_classes(source: str) -> str:
    """The same module, its Structs written out as classes."""
    tree = ast.parse(source)
    structs = [node for node in tree.body if isinstance(node, ast.ClassDef) and _is_struct(node)]
    for struct in structs:
        fields = [node for node in struct.body if isinstance(node, ast.AnnAssign)]
        struct.bases, struct.keywords = [], []
        struct.body += [_parsed(text) for text in _methods(struct.name, fields)]
        for field in fields:
            field.value = None
    return ast.unparse(tree) if structs else source


def _is_struct(node: ast.ClassDef) -> bool:
    return any(isinstance(kind, ast.Name) and kind.id == "Struct" for kind in node.bases)


def _parsed(text: str) -> ast.stmt:
    (statement,) = ast.parse(text).body
    return statement


def _methods(name: str, fields: list[ast.AnnAssign]) -> Iterator[str]:
    names = [ast.unparse(field.target) for field in fields]
    given = ", ".join(map(_parameter, fields))
    kept = "\n".join(f"    self.{ast.unparse(field.target)} = {_value(field)}" for field in fields)
    yield f"def __init__(self, {given}) -> None:\n{kept}"
    same = " and ".join(f"self.{each} == other.{each}" for each in names)
    yield f"def __eq__(self, other: object) -> bool:\n    return isinstance(other, {name}) and {same}"
    shown = ", ".join(f"{each}={{self.{each}!r}}" for each in names)
    yield f'def __repr__(self) -> str:\n    return f"{name}({shown})"'


def _parameter(field: ast.AnnAssign) -> str:
    typed = f"{ast.unparse(field.target)}: {ast.unparse(field.annotation)}"
    if field.value is None:
        return typed
    default = ast.unparse(field.value)
    return f"{typed} | None = None" if default in FRESH else f"{typed} = {default}"


def _value(field: ast.AnnAssign) -> str:
    name = ast.unparse(field.target)
    fresh = FRESH.get(ast.unparse(field.value)) if field.value is not None else None
    return name if fresh is None else f"{name} if {name} is not None else {fresh}()"


def _compile(names: list[str]) -> None:
    """In the copy of the package: each module beside its source."""
    from mypyc.build import mypycify
    from setuptools import setup  # type: ignore[import-untyped]

    # Whether types are right is asked by `./dev check`, with all libraries there; who builds a wheel has few of them.
    options = ["--ignore-missing-imports", "--follow-imports=silent"]
    sys.argv = ["setup.py", "build_ext", "--inplace"]
    setup(name="treadle", packages=[], ext_modules=mypycify([*options, *names], opt_level="2", debug_level="0"))


def main(arguments: list[str]) -> int:
    if arguments[:1] == [COMPILE]:
        _compile(arguments[1:])
        return 0
    try:
        build()
    except NotCompiled as problem:
        print(f"dev: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
