"""A corpus of attempts to escape from the sandbox of `shell`, each from inside it. Harmless by construction: a file of
the machine is opened for writing and never written to, a limit is met by the probe's own data.

Every probe prints `escaped` when it got through; nothing else counts. The last test proves that the probes can see: the
same ones get through without a sandbox."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.outside.programs import BOXED, OPEN, needs_bubblewrap, shell
from treadle.actions.protocol import Done

pytestmark = needs_bubblewrap

PYTHON = "/usr/bin/python3"
"""The system's: the one that runs the tests may lie where a sandbox sees nothing."""
needs_python = pytest.mark.skipif(not Path(PYTHON).exists(), reason="the probes are written in Python")

OPENED = """
import os
try:
    os.close(os.open({path!r}, os.O_WRONLY | os.O_APPEND))
    print("escaped")
except OSError as problem:
    print(problem)
"""
KERNEL = (
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/modprobe",
    "/proc/sys/kernel/hostname",
    "/proc/sys/vm/overcommit_memory",
    "/proc/sys/net/ipv4/ip_forward",
    "/proc/sys/user/max_user_namespaces",
    "/proc/sysrq-trigger",
    "/proc/self/oom_score_adj",
    "/proc/self/uid_map",
)
MACHINE = ("/usr/bin/env", "/etc/ld.so.cache", "/lib", "/dev/mem", "/dev/kmsg", "/dev/sda", "/sys/kernel/uevent_helper")
CALLS = {
    "a user namespace": "libc.unshare(0x10000000)",
    "a mount namespace": "libc.unshare(0x00020000)",
    "a network namespace": "libc.unshare(0x40000000)",
    "a mount": "libc.mount(b'none', b'/tmp', b'tmpfs', 0, None)",
    "a writable /proc": "libc.mount(None, b'/proc', None, 32 | 4096, None)",
    "a fresh /proc": "libc.mount(b'proc', b'/tmp', b'proc', 0, None)",
    "a root elsewhere": "libc.chroot(b'/usr')",
    "a device": "libc.mknod(b'/tmp/null', 0o020666, (1 << 8) | 3)",
    "another user": "libc.setuid(1)",
    "the host's name": "libc.sethostname(b'sandbox', 7)",
    "a raw socket": "libc.socket(2, 3, 1)",
}
CALL = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
print("escaped" if {call} >= 0 else "refused")
"""
SIGNAL = (
    "import os\ntry:\n    os.kill({pid}, 0)\n    print('escaped')\nexcept OSError as problem:\n    print(problem)\n"
)
CGROUPS = (
    "import os\nprint('escaped' if os.path.isdir('/sys/fs/cgroup') and os.listdir('/sys/fs/cgroup') else 'none')\n"
)
SETUID = "import os\nprint('escaped' if os.geteuid() == 0 else os.geteuid())\n"


def said(code: str, *, boxed: bool = True) -> str:
    """What a probe prints."""
    reply = shell({"argv": [PYTHON if boxed else sys.executable, "-c", code]}, policy=BOXED if boxed else OPEN)
    assert isinstance(reply, Done), reply
    text = reply.output["stdout"].strip()
    assert text, reply.output["stderr"]
    return str(text)


@needs_python
@pytest.mark.parametrize("path", [*KERNEL, *MACHINE])
def test_nothing_of_the_kernel_or_the_machine_can_be_opened_for_writing(path: str) -> None:
    assert said(OPENED.format(path=path)) != "escaped"


@needs_python
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_no_system_call_gives_more_rights(call: str) -> None:
    assert said(CALL.format(call=call)) == "refused"


@needs_python
def test_the_engine_cannot_be_signalled_nor_seen() -> None:
    assert "No such process" in said(SIGNAL.format(pid=os.getpid()))
    assert said("import os\nprint(len([n for n in os.listdir('/proc') if n.isdigit()]) < 6)") == "True"


@needs_python
def test_there_are_no_cgroups_no_root_and_no_capability_inside() -> None:
    assert said(CGROUPS) == "none"
    assert said(SETUID) != "escaped"
    assert said("print(''.join(l for l in open('/proc/self/status') if l.startswith('Cap')).count('0' * 16))") == "5"


@needs_python
def test_no_socket_of_the_machine_answers() -> None:
    with socket.socket(socket.AF_UNIX) as abstract, socket.create_server(("127.0.0.1", 0)) as server:
        abstract.bind(f"\0treadle-test-{os.getpid()}")
        abstract.listen()
        for family, address in (("AF_UNIX", f"\0treadle-test-{os.getpid()}"), ("AF_INET", server.getsockname())):
            code = f"import socket\nprint(socket.socket(socket.{family}).connect_ex({address!r}) or 'escaped')"
            assert said(code) != "escaped"


@needs_python
@pytest.mark.parametrize(
    ("code", "ended"),
    [
        ("b = bytearray(300 << 20)", "MemoryError"),
        ("open('/tmp/x', 'wb').write(bytes(30 << 20))", "File too large"),
        ("[open(f'/tmp/{n}', 'wb').write(bytes(9 << 20)) for n in range(9)]", "No space left"),
        ("[open(f'/dev/shm/{n}', 'wb').write(bytes(9 << 20)) for n in range(9)]", "No space left"),
        ("open('/x', 'w').write('')", "Read-only file system"),
        (
            "import os\nfor _ in range(30):\n    if os.fork() == 0: __import__('signal').pause()",
            "temporarily unavailable",
        ),
    ],
)
def test_processes_memory_files_and_disk_are_limited(code: str, ended: str) -> None:
    small = replace(BOXED, processes_max=20, memory_max=200 << 20, file_max=10 << 20, disk_max=20 << 20)
    code = f"import signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n{code}"
    reply = shell({"argv": [PYTHON, "-c", code]}, policy=small)
    assert not isinstance(reply, Done)
    assert ended in reply.error.message


def test_a_fresh_directory_is_writable_and_gone_afterwards() -> None:
    reply = shell({"argv": ["sh", "-c", "pwd; echo x > left; cat left"]}, policy=BOXED)
    assert isinstance(reply, Done)
    assert reply.output["stdout"] == "/tmp/work\nx\n"
    assert not Path("/tmp/work/left").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root could be root")
def test_an_engine_that_is_root_starts_programs_as_another_user() -> None:
    with tempfile.TemporaryDirectory(prefix="treadle-test-") as folder:
        os.chown(folder, 12345, 12345)
        policy = replace(BOXED, cwd=folder, user=12345)
        assert isinstance(shell({"argv": ["touch", "made"]}, policy=policy), Done)
        assert (Path(folder) / "made").stat().st_uid == 12345
        refused = shell({"argv": ["true"]}, policy=replace(BOXED, user=0))
        assert not isinstance(refused, Done)
        assert "does not run programs as root" in refused.error.message


def test_the_probes_see_what_is_there_without_a_sandbox(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_text("")
    assert said(OPENED.format(path=str(mine)), boxed=False) == "escaped"
    assert said(SIGNAL.format(pid=os.getpid()), boxed=False) == "escaped"
    assert said(CALL.format(call="libc.socket(2, 1, 0)"), boxed=False) == "escaped"
