"""Runs an agent's program in a process that has nothing but a pipe: no network, no files of ours.

The process has namespaces of its own (Linux, `unshare`). Its root is empty but for the system's
programs and libraries and this Python, which are there for reading only; it has no network, not
even the loopback; it sees no other process; its environment is empty; it has limits of CPU time,
memory and file size, and is killed with all that it has started when its time is over.

What it does not hold: it shares the kernel with everything else, so that a fault of the kernel
opens it; the programs and libraries of the system can be read; and it keeps a core busy until its
time is over. It is made for the programs that models write in an evaluation, and not for those of
an attacker who wants this machine.
"""

from __future__ import annotations

import errno
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from toolshift.connect.isolation import check_isolation
from toolshift.core.errors import UsageError

Answer = Callable[[str, Any], tuple[bool, Any]]
"""Carries out a call of a function: whether it succeeded, and what it brought."""
_PROGRAM = Path(__file__).with_name("sandbox_program.py")
_ALLOWED = ("/usr", "/bin", "/lib", "/lib64", "/lib32", "/etc/ld.so.cache", "/etc/alternatives")
"""What is there beside Python: what programs of the system need to start."""
_ENTER = (
    "unshare --user --map-root-user --mount --net --ipc --uts --pid --fork --mount-proc "
    "--kill-child --"
)
_ROOT = """
set -e
root=$1; shift; n=$1; shift
mount -t tmpfs -o size=1m,mode=755 none "$root"
while [ "$n" -gt 0 ]; do
    if [ -d "$1" ]; then mkdir -p "$root$1"; else mkdir -p "$root$(dirname "$1")"; : > "$root$1"; fi
    mount --rbind "$1" "$root$1"
    mount -o remount,bind,ro,nosuid,nodev "$root$1" 2>/dev/null \\
        || mount -o remount,bind,ro "$root$1"
    n=$((n-1)); shift
done
mkdir -p "$root/dev"; : > "$root/dev/null"; mount --bind /dev/null "$root/dev/null"
mount -o remount,ro "$root"
cd /
exec setpriv --no-new-privs -- chroot "$root" \\
    setpriv --bounding-set=-all --inh-caps=-all -- env -i "$@"
"""
MAX_LINE = 1 << 20
"""Bytes of one message of the program."""


@dataclass(frozen=True)
class Limits:
    """What one program may use.

    Attributes:
        seconds: of CPU time, and of time beside the calls that it waits for.
        memory: bytes of address space.
        output: characters of what it prints that are kept.
        calls: of functions.
    """

    seconds: int = 10
    memory: int = 512 * 2**20
    output: int = 20_000
    calls: int = 100


class Output(NamedTuple):
    """What a program has printed, and how it failed; "" where it did not.

    `missing` is the name that it used and that there is not.
    """

    text: str
    error: str
    missing: str = ""


@cache
def check_sandbox() -> None:
    """Checks that this system gives such a process, and that it has no network."""
    check_isolation()
    probe = "import socket\ntry: socket.create_connection(('127.0.0.1', 9), 1)\n"
    probe += "except OSError as fault: print(fault.errno)\n"
    told = run_program(probe, {}, lambda name, arguments: (False, ""))
    if told.error or told.text.strip() != str(errno.ENETUNREACH):
        why = told.error.strip().splitlines()[-1:] or ["the process did not start"]
        raise UsageError(
            f"code mode needs Linux namespaces, which this system does not allow ({why[0]}): run "
            "ToolShift in a container that allows them (--security-opt seccomp=unconfined)"
        )


def run_program(
    source: str,
    functions: Mapping[str, Sequence[str]],
    answer: Answer,
    limits: Limits | None = None,
) -> Output:
    """Runs a program whose functions are answered here; see the module."""
    limits = limits or Limits()
    root = "/mnt" if os.path.isdir("/mnt") else tempfile.gettempdir()  # only a place to mount on
    allowed = [path for path in (*_ALLOWED, sys.base_prefix) if os.path.exists(path)]
    python = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
    inside = [python, "-I", "-S", "-B", "-c", _PROGRAM.read_text(encoding="utf-8")]
    words = [*_ENTER.split(), "sh", "-c", _ROOT, "sh", root, str(len(allowed)), *allowed]
    process = subprocess.Popen(
        [*words, *inside],
        env={"PATH": "/usr/bin:/bin:/usr/sbin:/sbin"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        given = {"source": source, "functions": functions, "limits": asdict(limits)}
        return _Talk(process, limits).until_over(given, answer)
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        for pipe in (process.stdin, process.stdout, process.stderr):
            with suppress(OSError):
                pipe.close()  # type: ignore[union-attr]
        process.wait()


class _Talk:
    """The messages of one program. Whatever it writes is read as if it were made by an enemy."""

    def __init__(self, process: subprocess.Popen[bytes], limits: Limits) -> None:
        self.process, self.limits = process, limits
        assert process.stdout
        assert process.stdin
        self._out = process.stdout.fileno()
        self._left = float(limits.seconds) + 5.0  # to start
        self._read = b""
        self._look = selectors.DefaultSelector()
        self._look.register(self._out, selectors.EVENT_READ)
        self._in = process.stdin.fileno()
        os.set_blocking(self._in, False)
        self._write = selectors.DefaultSelector()
        self._write.register(self._in, selectors.EVENT_WRITE)

    def until_over(self, given: Any, answer: Answer) -> Output:
        """Answers calls until the program is over, or its time or its calls are used up."""
        calls = 0
        with suppress(BrokenPipeError):
            self._tell(given)
        while True:
            line = self._line()
            if isinstance(line, Output):
                return line
            message = _message(line)
            if "call" not in message:
                most = self.limits.output + 100
                told = (str(message.get(key, ""))[:most] for key in ("output", "error", "missing"))
                return Output(*told)
            calls += 1
            if calls > self.limits.calls:
                return Output("", f"the program was ended: more than {self.limits.calls} calls")
            name, arguments = message["call"]
            ok, value = answer(name, arguments)
            with suppress(BrokenPipeError):
                self._tell({"ok": ok, "value": value})

    def _tell(self, message: Any) -> None:
        """Writes a message; one that the program does not read costs its time, not ours."""
        left = memoryview(json.dumps(message).encode() + b"\n")
        while left and self._left > 0:
            begun = time.monotonic()
            if self._write.select(self._left):
                left = left[os.write(self._in, left) :]
            self._left -= time.monotonic() - begun

    def _line(self) -> bytes | Output:
        """The next line of the program, or how it ended without one."""
        while b"\n" not in self._read:
            begun = time.monotonic()
            ready = self._look.select(max(0.0, self._left))
            self._left -= time.monotonic() - begun
            if not ready:
                return Output("", f"the program was ended after {self.limits.seconds} seconds")
            got = os.read(self._out, 65536)
            if not got:
                return Output("", self._why_gone())
            self._read += got
            if len(self._read) > MAX_LINE:
                return Output("", "the program was ended: it said too much at once")
        line, _, self._read = self._read.partition(b"\n")
        return line

    def _why_gone(self) -> str:
        assert self.process.stderr
        told = self.process.stderr.read(2000).decode(errors="replace").strip()
        code = self.process.wait()
        if code in (-signal.SIGKILL, 128 + signal.SIGKILL, 128 + signal.SIGXCPU, -signal.SIGXCPU):
            return "the program was ended: it used too much time or memory"
        return f"the program ended with code {code}" + (f": {told}" if told else "")


def _message(line: bytes) -> dict[str, Any]:
    try:
        read = json.loads(line)
    except (ValueError, RecursionError):
        read = None
    if isinstance(read, dict):
        call = read.get("call")
        if call is None or (isinstance(call, list) and len(call) == 2 and isinstance(call[0], str)):
            return {key: value for key, value in read.items() if value is not None}
    return {"error": "the program wrote into the pipe of its calls"}
