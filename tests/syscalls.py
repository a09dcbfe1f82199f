"""Run something in a child process and meddle with the system calls by which it writes (Linux, ptrace).

Everything that reaches the kernel is seen, whether Python, NumPy's C code or the compiled core asks for it.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from terminal import take_signals

_TRACEME, _PEEKUSER, _POKEUSER, _SYSCALL, _SETOPTIONS, _SYSCALL_INFO = 0, 3, 6, 24, 0x4200, 0x420E
_TRACESYSGOOD, _EXITKILL, _WALL = 1, 1 << 20, 0x40000000
_ENTRY, _EXIT = 1, 2
_AT_FDCWD = -100
# Offsets of registers in the user area of x86-64.
_RAX, _RDX, _ORIG_RAX = 80, 96, 120
# By the numbers of x86-64.
_NAME_OF = {
    1: "write", 2: "open", 18: "pwrite64", 20: "writev", 74: "fsync", 75: "fdatasync", 77: "ftruncate",
    82: "rename", 83: "mkdir", 84: "rmdir", 85: "creat", 86: "link", 87: "unlink", 88: "symlink",
    90: "chmod", 91: "fchmod", 257: "openat", 258: "mkdirat", 263: "unlinkat", 264: "renameat",
    268: "fchmodat", 316: "renameat2", 326: "copy_file_range",
}  # fmt: skip
_WRITES = ("write", "pwrite64", "writev")
_CREATING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


class _Info(ctypes.Structure):
    _fields_ = (
        ("op", ctypes.c_uint8),
        ("pad", ctypes.c_uint8 * 3),
        ("arch", ctypes.c_uint32),
        ("instruction", ctypes.c_uint64),
        ("stack", ctypes.c_uint64),
        ("number", ctypes.c_uint64),
        ("args", ctypes.c_uint64 * 6),
    )


@dataclass(frozen=True)
class Call:
    """A system call that writes: its name, and the path of its descriptor or of its first name."""

    name: str
    path: str


@dataclass
class Outcome:
    """How a run went: calls seen, how it ended, and what it raised."""

    calls: list[Call] = field(default_factory=list)
    killed: bool = False
    error: str = ""

    @property
    def n_calls(self) -> int:
        return len(self.calls)


def traced(
    action: Callable[[], object],
    under: Path,
    *,
    kill_at: int = 0,
    tear: bool = False,
    fail_at: int = 0,
    code: int = 0,
    interrupt_at: int = 0,
) -> Outcome:
    """Run `action` in a forked child that is killed, fails, or is interrupted at its k-th call (from 1).

    Parameters
    ----------
    action : callable
        What it returns is dropped.
    under : path
        Only calls on paths below it count.
    kill_at : int
        SIGKILL before that call is made; with `tear` a write is half made before.
    fail_at, code : int
        That call is not made, but gives the error `code`.
    interrupt_at : int
        SIGINT arrives while that call is made.
    """
    needs_tracing()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _run_child(action, writer, follow=True)
    os.close(writer)
    outcome = Outcome()
    try:
        _follow(child, outcome, str(under.resolve()), kill_at, tear, fail_at, code, interrupt_at)
    finally:
        with os.fdopen(reader, encoding="utf-8") as f:
            outcome.error = f.read()
    return outcome


class Child:
    """A forked child that runs an action."""

    def __init__(self, action: Callable[[], object]) -> None:
        reader, writer = os.pipe()
        self.reader, self.status = os.fdopen(reader, encoding="utf-8"), None
        self.pid = os.fork()
        if self.pid == 0:
            _run_child(action, writer, follow=False)
        os.close(writer)

    def is_running(self) -> bool:
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.status = status if pid else None
        return self.status is None

    def error(self) -> str:
        """What it raised, when it has ended."""
        with self.reader:
            text = self.reader.read()
        if self.status is None:
            self.status = os.waitpid(self.pid, 0)[1]
        return text if self.status in (0, 256) else f"{text} ended with status {self.status}"


def in_child(action: Callable[[], object]) -> Child:
    """Run an action in a forked child."""
    return Child(action)


def needs_tracing() -> None:
    """Skip the test where children cannot be followed."""
    if not sys.platform.startswith("linux") or platform.machine() != "x86_64":
        pytest.skip("system calls are followed on Linux for x86-64 only")


def _run_child(action: Callable[[], object], writer: int, *, follow: bool) -> None:
    status = 0
    try:
        take_signals()
        if follow:
            _ptrace(_TRACEME, 0, 0, 0)
            os.kill(os.getpid(), signal.SIGSTOP)
        try:
            action()
        except BaseException as error:
            text = "".join(traceback.format_exception_only(error)).strip()
            os.write(writer, text.encode())
            status = 1
    finally:
        os._exit(status)


def _follow(
    child: int,
    outcome: Outcome,
    under: str,
    kill_at: int,
    tear: bool,
    fail_at: int,
    code: int,
    interrupt_at: int,
) -> None:
    os.waitpid(child, _WALL)
    _ptrace(_SETOPTIONS, child, 0, _TRACESYSGOOD | _EXITKILL)
    info, deliver, at_exit = _Info(), 0, ""
    while True:
        with suppress(ProcessLookupError):  # where it has just been killed
            _ptrace(_SYSCALL, child, 0, deliver)
        deliver = 0
        _, status = os.waitpid(child, _WALL)
        if os.WIFSIGNALED(status) or os.WIFEXITED(status):
            outcome.killed = os.WIFSIGNALED(status)
            return
        stopped_by = os.WSTOPSIG(status)
        if stopped_by != signal.SIGTRAP | 0x80:
            deliver = stopped_by
            continue
        _ptrace(_SYSCALL_INFO, child, ctypes.sizeof(info), ctypes.addressof(info))
        if info.op == _EXIT and at_exit:
            if at_exit == "kill":
                os.kill(child, signal.SIGKILL)
            elif at_exit == "fail":
                _ptrace(_POKEUSER, child, _RAX, -code & (2**64 - 1))
            else:
                deliver = signal.SIGINT
            at_exit = ""
        if info.op != _ENTRY:
            continue
        name = _NAME_OF.get(info.number)
        if name is None or (name == "openat" and not info.args[2] & _CREATING):
            continue
        if name == "open" and not info.args[1] & _CREATING:
            continue
        path = _path_of(child, name, info.args)
        if not path.startswith(under):
            continue
        outcome.calls.append(Call(name, path))
        k = len(outcome.calls)
        if k == kill_at:
            if tear and name in _WRITES[:2]:
                _ptrace(_POKEUSER, child, _RDX, int(info.args[2]) // 2)
                at_exit = "kill"
            else:
                os.kill(child, signal.SIGKILL)
        elif k == fail_at:
            _ptrace(_POKEUSER, child, _ORIG_RAX, 2**64 - 1)
            at_exit = "fail"
        elif k == interrupt_at:
            at_exit = "interrupt"


def _path_of(child: int, name: str, args: ctypes.Array) -> str:
    """The path a call is about, absolute."""
    if name in (*_WRITES, "fsync", "fdatasync", "ftruncate", "fchmod", "copy_file_range"):
        return _target_of(f"/proc/{child}/fd/{args[0]}")
    at = name.endswith("at") or name == "renameat2"
    path = _text_at(child, args[1] if at else args[0])
    if path.startswith("/"):
        return path
    folder = ctypes.c_int32(args[0] & 0xFFFFFFFF).value if at else _AT_FDCWD
    base = f"/proc/{child}/cwd" if folder == _AT_FDCWD else f"/proc/{child}/fd/{folder}"
    return os.path.join(_target_of(base), path)


def _target_of(link: str) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""


def _text_at(child: int, address: int) -> str:
    with open(f"/proc/{child}/mem", "rb", buffering=0) as memory:
        memory.seek(address)
        return memory.read(4096).split(b"\0", 1)[0].decode(errors="replace")


def _ptrace(request: int, pid: int, address: int, data: int) -> None:
    if _libc().ptrace(request, pid, address, data) < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"ptrace request {request:#x}: {os.strerror(code)}")


def _libc() -> ctypes.CDLL:
    if _libc.loaded is None:
        _libc.loaded = ctypes.CDLL(None, use_errno=True)
        _libc.loaded.ptrace.restype = ctypes.c_long
        _libc.loaded.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
    return _libc.loaded


_libc.loaded = None
