"""Functions of workers in processes of their own: what they do is decided by the test that listens at their door."""

from __future__ import annotations

import os
import socket

from treadle import task


@task
def knock(door: str) -> str:
    """Says who it is, and returns what it is told."""
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(door)
        line.sendall(f"{os.getpid()}\n".encode())
        return line.makefile().readline().strip()
