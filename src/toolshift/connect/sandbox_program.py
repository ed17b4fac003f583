"""What runs inside of the sandbox: an agent's program, whose functions are calls over a pipe.

Given to Python as text (`-c`), for inside of the sandbox there is no file of ours. It reads one
line of JSON, {"source", "functions", "limits"}, and writes lines of JSON: {"call": [name,
arguments]}, each answered with {"ok", "value"}; at the end {"output", "error", "missing"}.
"""

from __future__ import annotations

import io
import json
import os
import resource
import sys
import traceback
from collections.abc import Callable
from typing import Any


class ToolError(Exception):
    """A tool has failed; the text is what it said."""


class Output(io.TextIOBase):
    """What is printed, as far as it is kept."""

    def __init__(self, most: int) -> None:
        self.parts: list[str] = []
        self.left, self.cut = most, False

    def write(self, text: str) -> int:
        """Keeps the beginning."""
        self.parts.append(text[: self.left])
        self.cut |= len(text) > self.left
        self.left = max(0, self.left - len(text))
        return len(text)


class Pipe:
    """The way to the episode; standard input and output are the program's no more."""

    def __init__(self) -> None:
        self.read, self.write = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")

    def send(self, message: dict[str, Any]) -> None:
        """Sends one message."""
        self.write.write(json.dumps(message) + "\n")
        self.write.flush()

    def function(self, name: str, names: list[str]) -> Callable[..., Any]:
        """A function of the program: a call of the episode."""

        def call(*values: Any, **named: Any) -> Any:
            if len(values) > len(names):
                raise TypeError(f"{name}() takes {len(names)} arguments, not {len(values)}")
            placed = dict(zip(names, values, strict=False))
            if twice := placed.keys() & named.keys():
                raise TypeError(f"{name}() got {', '.join(twice)} twice")
            self.send({"call": [name, {**placed, **named}]})
            answer = json.loads(self.read.readline() or "{}")
            if "ok" not in answer:
                raise SystemExit
            if not answer["ok"]:
                raise ToolError(answer["value"])
            return answer["value"]

        call.__name__ = name
        return call


def limit(seconds: int, memory: int) -> None:
    """Sets what the process may use; no part of it can be raised again."""
    for what, most in (
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, 32),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(what, (most, most))


def main() -> None:
    """Reads a program, runs it, and says how it ended."""
    pipe = Pipe()
    given = json.loads(pipe.read.readline())
    limits = given["limits"]
    limit(limits["seconds"], limits["memory"])
    os.close(0)
    shown = Output(limits["output"])
    sys.stdout = sys.stderr = shown
    own: dict[str, Any] = {"__name__": "__main__", "ToolError": ToolError}
    own |= {name: pipe.function(name, names) for name, names in given["functions"].items()}
    error = missing = ""
    try:
        exec(compile(given["source"], "program", "exec"), own)  # noqa: S102  what the sandbox is for
    except SystemExit:
        pass
    except BaseException as fault:
        missing = str(fault.name or "") if isinstance(fault, NameError) else ""
        ours = fault.__traceback__.tb_next if fault.__traceback__ else None
        error = "".join(traceback.format_exception(type(fault), fault, ours))[-limits["output"] :]
    note = "\n[output cut]" if shown.cut else ""
    pipe.send({"output": "".join(shown.parts) + note, "error": error, "missing": missing})


if __name__ == "__main__":
    main()
