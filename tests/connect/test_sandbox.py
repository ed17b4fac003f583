"""An agent's program has a pipe and nothing else, whatever it tries; and it is over in time."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from toolshift.connect.sandbox import Limits, Output, check_sandbox, run_program
from toolshift.core.errors import UsageError

try:
    check_sandbox()
except UsageError as why:
    pytest.skip(str(why), allow_module_level=True)

SHORT = Limits(seconds=2, calls=5, output=2000)


def ran(source: str, limits: Limits = SHORT) -> tuple[Output, list[tuple[str, Any]]]:
    heard: list[tuple[str, Any]] = []

    def answer(name: str, arguments: Any) -> tuple[bool, Any]:
        heard.append((name, arguments))
        return name != "fails", arguments

    return run_program(source, {"echo": ["a", "b"], "fails": []}, answer, limits), heard


def test_calls_go_over_the_pipe_by_place_and_by_name() -> None:
    output, heard = ran("print(echo(1, b=[2])['b'])\necho()")
    assert output == Output("[2]\n", "")
    assert heard == [("echo", {"a": 1, "b": [2]}), ("echo", {})]


def test_a_call_that_fails_raises_what_a_program_can_catch() -> None:
    output, _ = ran("try: fails()\nexcept ToolError as fault: print('caught', fault)\nfails()")
    assert output.text == "caught {}\n"
    assert "ToolError" in output.error


def test_a_name_that_there_is_not_is_said() -> None:
    assert ran("find(1)")[0].missing == "find"


HOSTILE = {
    "a file of ours": f"print(open({str(Path(__file__).resolve())!r}).read())",
    "the home": "import os; print(os.listdir(os.path.expanduser('~') or '/home'))",
    "another process": "import os; print([p for p in os.listdir('/proc') if p.isdigit()])",
    "a write": "open('/usr/x', 'w')",
    "a write to the root": "open('/x', 'w')",
    "the network": "import socket; socket.create_connection(('127.0.0.1', 22), 1); print('there')",
    "a name server": "import socket; print(socket.gethostbyname('localhost.localdomain.example'))",
    "the environment": "import os; print(os.environ['HOME'])",
    "a mount": "import ctypes; print('there' if not ctypes.CDLL(None).mount(b'none', b'/usr', "
    "b'tmpfs', 0, 0) else 1/0)",
    "too much memory": "x = 'a' * 10**10",
    "an early end": "import os; os._exit(3)",
    "nonsense in the pipe": "import os; os.write(1, b'nonsense\\n'); os.write(3, b'x\\n' * 9); "
    "os.write(4, b'x\\n' * 9)",
    "an endless line": "import sys, os\nwhile True: os.write(1, b'x' * 65536)",
    "no reading": 'import os\nwhile True: os.write(1, b\'{"call": ["echo", {}]}\\n\')',
    "many calls": "while True: echo()",
    "a deep call": "x = []\nfor _ in range(100000): x = [x]\necho(x)",
}


@pytest.mark.parametrize("what", HOSTILE)
def test_what_a_program_may_not_have_it_has_not(what: str) -> None:
    begun = time.monotonic()
    output, heard = ran(HOSTILE[what])
    assert output.error, output
    assert "there" not in output.text
    assert len(heard) <= SHORT.calls
    assert time.monotonic() - begun < 30


def test_it_is_over_in_time_with_all_that_it_started() -> None:
    output, _ = ran("import os\nwhile True:\n    os.fork() if False else None")
    assert "ended" in output.error
    output, _ = ran("import os, time\nif not os.fork():\n    time.sleep(600)\nprint('done')")
    assert output.text == "done\n"


def test_output_is_cut_and_says_so() -> None:
    text = ran("print('y' * 10**6)")[0].text
    assert text.endswith("[output cut]")
    assert len(text) < 2100


def test_nothing_of_our_environment_gets_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    output, _ = ran("import os; print(dict(os.environ))")
    assert "secret" not in output.text
    assert os.environ["OPENAI_API_KEY"] == "secret"
