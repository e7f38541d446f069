"""Writes src/treadle/runtime/blocking_types.pyi: what `treadle.runtime.blocking` makes, for type checkers and editors.

    .venv/bin/python -m tools.blocking

Reads the source of the asynchronous classes, nothing is imported. tests/runtime/test_blocking.py fails while the file
is not what this writes.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

RUNTIME = Path(__file__).resolve().parents[1] / "src" / "treadle" / "runtime"
STUB = RUNTIME / "blocking_types.pyi"
CLASSES = (
    ("run", "Run"),
    ("service/entities", "Entities"),
    ("access/keys", "Keys"),
    ("access/secrets", "Secrets"),
    ("service/hooks", "Hooks"),
    ("service/subscriptions", "Subscriptions"),
    ("client", "Client"),
    ("engine", "Engine"),
)
PARTS = {
    "Run": (
        ("gate_commands", "GateCommands"),
        ("view/looking", "Looking"),
        ("undoing", "Undoing"),
        ("changing", "Changing"),
    ),
    "Client": (
        ("service_face", "ServiceFace"),
        ("people_face", "PeopleFace"),
        ("many_runs", "ManyRuns"),
        ("migrating", "Migrating"),
        ("workflow_face", "WorkflowFace"),
        ("schedule_face", "ScheduleFace"),
        ("run_queue_face", "RunQueueFace"),
    ),
}
"""Classes from which one of these has some of its methods."""
HEAD = '"""Written by tools/blocking.py: the blocking faces of engines and clients. Do not edit."""\n'
CONTEXT = {
    "Client": ["def __enter__(self) -> Self: ...", "def __exit__(self, *_exception: object) -> None: ...",
               "def close(self) -> None: ..."],
}  # fmt: skip


class Module:
    """One source file: where its names come from."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.tree = ast.parse((RUNTIME / f"{name}.py").read_text("utf-8"))
        self.homes: dict[str, str] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    shown = alias.name if alias.asname is None else f"{alias.name} as {alias.asname}"
                    self.homes[alias.asname or alias.name] = f"from {node.module} import {shown}"
        for node in self.tree.body:
            for name_ in _defined(node):
                self.homes[name_] = f"from treadle.runtime.{name.replace('/', '.')} import {name_}"

    def class_(self, name: str) -> ast.ClassDef:
        return next(node for node in self.tree.body if isinstance(node, ast.ClassDef) and node.name == name)


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def written() -> str:
    """The whole file, formatted."""
    imports = {"Self": "from typing import Self", "Iterator": "from collections.abc import Iterator"}
    own = {name for _module, name in CLASSES}
    parts: list[str] = []
    for file, name in CLASSES:
        module = Module(file)
        node = module.class_(name)
        homes = dict(module.homes)
        lines = _members(node)
        for part_file, part_name in PARTS.get(name, ()):
            other = Module(part_file)
            lines += [line for line in _members(other.class_(part_name))[1:] if line not in lines]
            homes = {**other.homes, **homes}
        lines += CONTEXT.get(name, [])
        above = "(Client)" if name == "Engine" else ""
        part = f"class {name}{above}:\n" + "\n".join(_indented(line) for line in lines) + "\n"
        part += "\n\n" + _open(node) if name == "Engine" else ""
        parts.append(part)
        used = {each.id for each in ast.walk(ast.parse(part)) if isinstance(each, ast.Name)}
        imports = {each: home for each, home in homes.items() if each in used - own} | imports
    return _formatted(HEAD + "\n" + "\n".join(sorted(imports.values())) + "\n\n" + "\n\n".join(parts))


def _members(node: ast.ClassDef) -> list[str]:
    found = [f'"""`treadle.runtime.{_module_of(node.name)}.{node.name}`, whose methods wait."""']
    for member in node.body:
        if isinstance(member, ast.AnnAssign):
            if not getattr(member.target, "id", "_").startswith("_"):
                found.append(ast.unparse(member))
        elif isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef) and not member.name.startswith("_"):
            found.append(_function(member, member.name))
    return found


def _function(member: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> str:
    decorators = "".join(f"@{ast.unparse(each)}\n" for each in member.decorator_list)
    returns = ast.unparse(member.returns) if member.returns is not None else "None"
    returns = returns.replace("AsyncIterator[", "Iterator[")
    head = f"{decorators}def {name}({ast.unparse(member.args)}) -> {returns}:"
    said = ast.get_docstring(member)
    return head + (f'\n    """{_indented(said).lstrip()}"""' if said else " ...")


def _open(engine: ast.ClassDef) -> str:
    """`open` takes what `Engine` takes."""
    init = next(each for each in engine.body if isinstance(each, ast.FunctionDef) and each.name == "__init__")
    init.args.args = init.args.args[1:]
    init.returns = ast.Name("Engine")
    init.body = [ast.Expr(ast.Constant("An open engine whose methods wait; `with` closes it."))]
    return _function(init, "open") + "\n"


def _module_of(name: str) -> str:
    every = (*CLASSES, *(part for parts in PARTS.values() for part in parts))
    return next(module.replace("/", ".") for module, each in every if each == name)


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" if line else "" for line in text.splitlines())


def _formatted(text: str) -> str:
    for command in (["check", "--select=I", "--fix", "-q"], ["format", "-q"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(STUB), "-"]
        text = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True).stdout
    return text


if __name__ == "__main__":
    STUB.write_text(written(), "utf-8")
