"""Wrap prose lines (docstrings and comments) that are longer than the house allows. Code is the formatter's business."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

LIMIT = 118


def reflow(path: Path, line_numbers: list[int]) -> None:
    lines = path.read_text().split("\n")
    for number in sorted(line_numbers, reverse=True):
        line = lines[number - 1]
        indent = line[: len(line) - len(line.lstrip())]
        if line.lstrip().startswith("#"):
            indent += "# "
        cut = line.rfind(" ", 0, LIMIT)
        if cut <= len(indent) or ('"""' not in line and not _in_docstring(lines, number - 1) and "#" not in line):
            continue
        lines[number - 1 : number] = [line[:cut], indent + line[cut + 1 :]]
    path.write_text("\n".join(lines))


def _in_docstring(lines: list[str], index: int) -> bool:
    return sum(line.count('"""') for line in lines[:index]) % 2 == 1


def main() -> None:
    targets = sys.argv[1:] or ["src", "tests", "bench", "tools"]
    out = subprocess.run(
        ["ruff", "check", "--select", "E501", "--output-format", "concise", *targets], capture_output=True, text=True
    ).stdout
    found: dict[str, list[int]] = {}
    for row in out.splitlines():
        parts = row.split(":")
        if len(parts) > 3 and parts[1].isdigit():
            found.setdefault(parts[0], []).append(int(parts[1]))
    for name, numbers in found.items():
        reflow(Path(name), numbers)


if __name__ == "__main__":
    main()
