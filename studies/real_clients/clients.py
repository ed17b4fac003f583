"""What the studies of real clients share: a scripted model, the proxy, and a graded run.

The model is no language model. In each conversation it first calls a tool of the client's own that
runs a command, and then does what the oracle did in that task. It knows the tools by what it is
shown, since names, parameters and results have moved, and tries again what has failed.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from connect.scripted_model import Reader, ScriptedModel, scripted_model  # noqa: E402
from strict_chat import StrictChat  # noqa: E402
from strict_messages import StrictMessages, serving  # noqa: E402

from toolshift.connect.callables import start_episode  # noqa: E402
from toolshift.dialects.anthropic import ANTHROPIC  # noqa: E402

Body = dict[str, Any]
TASKS = ("poi/listing/0", "poi/hours/0")
"""What `toolshift run --world poi --tasks 2` plays."""
SAY = {"command": "echo said-by-the-shell"}
NEEDED = ("find_place", "get_details", "get_hours")
SHIFTS = ("", "identity_erasure:3+format_drift:2", "parameter_rename:2+transient_error:2")
TOOLSHIFT = [sys.executable, "-m", "toolshift"]


Own = tuple[str, Body]
"""How the description of a tool of the client's own begins, and what it is called with."""


class Model:
    """Answers a request in the form of chat completions.

    Args:
        first: what is called before the task is begun, one a turn.
    """

    def __init__(self, first: Sequence[Own]) -> None:
        self._first = first
        self._readers = {start_episode(task).message: Reader(task) for task in TASKS}
        self.heard: list[str] = []

    def reply(self, request: Body) -> tuple[Body, list[str]]:
        """The next message, and nothing that it was shown otherwise: that is to be expected."""
        said = _without_failures(request["messages"])
        if not request.get("tools"):
            return {"role": "assistant", "content": "A conversation"}, []  # as for a title
        asked = "\n".join(_text(message) for message in said if message["role"] == "user")
        reader = next((r for text, r in self._readers.items() if text in asked), None)
        if reader is None:
            return {"role": "assistant", "content": "There is no task here."}, []
        begun = [n for n, message in enumerate(said) if message["role"] == "assistant"]
        if len(begun) < len(self._first):
            tools = [tool["function"] for tool in request["tools"]]
            return _call_own(tools, *self._first[len(begun)]), []
        if self._first:
            end = begun[len(self._first)] if len(begun) > len(self._first) else len(said)
            own = range(begun[0], end)
            self.heard += [_text(said[n]) for n in own if said[n]["role"] == "tool"]
            said = [message for n, message in enumerate(said) if n not in own]
        return reader.reply({**request, "messages": said})[0], []


def _call_own(tools: list[Body], starts: str, given: Body) -> Body:
    """A call of a tool of the client's own, by its first required parameters where they moved."""
    tool = next((t for t in tools if (t.get("description") or "").startswith(starts)), None)
    if tool is None:
        raise LookupError(f"no tool begins with {starts!r}")
    there = tool["parameters"]
    names = [name if name in there["properties"] else there["required"][0] for name in given]
    arguments = dict(zip(names, given.values(), strict=True))
    function = {"name": tool["name"], "arguments": json.dumps(arguments)}
    call = {"id": "call_own", "type": "function", "function": function}
    return {"role": "assistant", "content": "First this.", "tool_calls": [call]}


def _without_failures(messages: list[Body]) -> list[Body]:
    """The messages without the turns whose call has failed, so that it is made again."""
    kept = list[Body]()
    for message in messages:
        if message["role"] == "tool" and '"error"' in _text(message):
            kept.pop()
        else:
            kept.append(message)
    return kept


def _text(message: Body) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else " ".join(p.get("text") or "" for p in content)


# -- servers -----------------------------------------------------------------------------------


@contextlib.contextmanager
def messages(model: Model) -> Iterator[tuple[str, StrictMessages]]:
    """Serves the model by Anthropic's Messages, strictly: sealed thoughts must come back."""
    read = ANTHROPIC.read

    def script(body: Body) -> list[Body]:
        asked = read(body)
        request = {"messages": asked.messages, "tools": asked.tools}
        message = model.reply(request)[0]
        place = len(body["messages"])
        blocks: list[Body] = [
            {"type": "thinking", "thinking": f"At {place}.", "signature": f"sealed-{place}"}
        ]
        if message.get("content"):
            blocks.append({"type": "text", "text": message["content"]})
        for call in message.get("tool_calls") or ():
            function = call["function"]
            given = json.loads(function["arguments"])
            blocks.append({"type": "tool_use", "name": function["name"], "input": given})
        return blocks

    mind = StrictMessages(script)
    with serving(mind) as url:
        yield f"{url}/v1", mind


@contextlib.contextmanager
def completions(model: Model) -> Iterator[tuple[str, ScriptedModel]]:
    """Serves the model by chat completions, strictly: what was said must come back as it was."""
    strict = StrictChat()
    with scripted_model(model, strict) as server:  # type: ignore[arg-type]
        server.refused = strict.refused  # type: ignore[attr-defined]
        yield server.url, server


@contextlib.contextmanager
def proxy(upstream: str, shifts: str, prefix: str, trace: Path, ending: list[str]) -> Iterator[str]:
    """`toolshift model-proxy` on a free port: its address without `/v1`.

    `prefix` is what the client puts before the names of an MCP server's tools; `ending` gets the
    proxy's last words.
    """
    command = [*TOOLSHIFT, "model-proxy", "--upstream", upstream, "--port", "0"]
    command += ["--trace", str(trace), *(["--shift", shifts] if shifts else [])]
    command += [word for name in NEEDED if shifts for word in ("--needs", f"{prefix}{name}")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    lines = list[str]()
    try:
        for line in process.stdout:
            lines.append(line)
            if "http://127.0.0.1" in line:
                break
        else:
            raise SystemExit(f"the proxy did not start: {''.join(lines)}")
        yield f"http://127.0.0.1{line.partition('http://127.0.0.1')[2].partition('/')[0]}".strip()
    finally:
        process.terminate()
        ending += [line.strip() for line in process.stdout if "toolshift" in line]
        process.wait()


# -- one session -------------------------------------------------------------------------------


def play(
    command: Callable[[str, Path], tuple[str, Mapping[str, str]]],
    serve: Callable[[Model], contextlib.AbstractContextManager[tuple[str, Any]]],
    first: Sequence[Own],
    prefix: str,
    shifts: str,
    keep: Path | None = None,
) -> Body:
    """Plays the tasks by one client under shifts of the proxy; what was seen.

    Args:
        command: from the proxy's address and a folder, the client's command line for
            `--agent-command`, and its environment.
        serve: serves the model in the client's dialect.
        first: the calls of the client's own tools, before the task is begun.
        prefix: what the client puts before the names of an MCP server's tools.
        shifts: of the proxy; "" for none.
        keep: a folder for all requests that the model saw.
    """
    model, ending = Model(first), list[str]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        trace = folder / "proxy.jsonl"
        with (
            serve(model) as (upstream, server),
            proxy(upstream, shifts, prefix, trace, ending) as url,
        ):
            words, environment = command(url, folder)
            run = [*TOOLSHIFT, "run", "--agent-command", words, "--world", "poi"]
            run += ["--shift", "clean", "--no-placebo", "--tasks", str(len(TASKS))]
            run += ["--out", str(folder / "run"), "--timeout", "150"]
            kept = {key: os.environ[key] for key in ("PATH", "PYTHONPATH") if key in os.environ}
            told = subprocess.run(
                run, cwd=folder, env={**kept, "HOME": name, "LANG": "C.UTF-8", **environment},
                stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=900, check=False,
            )  # fmt: skip
        requests = server.requests
        if keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            (keep / f"{shifts or 'none'}.json").write_text(json.dumps(requests))
        episodes = folder / "run" / "episodes.jsonl"
        if told.returncode or not episodes.exists():
            raise SystemExit(f"the run ended with {told.returncode}:\n{told.stdout}\n{told.stderr}")
        graded = [json.loads(line) for line in episodes.read_text().splitlines()]
        records = [json.loads(line) for line in trace.read_text().splitlines()] if shifts else []
    return {
        "shifts": shifts or "none",
        "requests at the model": len(requests),
        "refused by the strict server": getattr(server, "refused", []),
        "not shifted": [f"{r['unshifted']}: {r['why']}" for r in records if "unshifted" in r],
        "fields of a request": sorted({key for request in requests for key in request}),
        "fields of a tool": sorted(
            {key for request in requests for tool in request.get("tools") or () for key in tool}
        ),
        "blocks": _blocks(requests),
        "betas": sorted(getattr(server, "betas", ())),
        "tools": max((len(request.get("tools") or ()) for request in requests), default=0),
        "what the client's own tools answered": sorted({heard[:200] for heard in model.heard}),
        "calls": [_call(record) for record in records if record["spoken"]],
        "results shown otherwise": list(
            {json.dumps(one): one for r in records for one in r.get("results", ())}.values()
        ),
        "the proxy's last words": ending,
        "episodes": [
            {
                "passed": one["grade"]["passed"],
                "end": one["end"],
                "cause": one["grade"]["cause"],
                "calls": [step["name"] for step in one["steps"] if step["kind"] == "call"],
            }
            for one in graded
        ],
    }


def _blocks(requests: list[Body]) -> list[str]:
    """The roles of messages, and the kinds of their blocks."""
    found = set[str]()
    for request in requests:
        for message in request["messages"]:
            content = message.get("content")
            blocks = content if isinstance(content, list) else [{"type": type(content).__name__}]
            found |= {f"{message['role']}: {block.get('type')}" for block in blocks}
    return sorted(found)


def _call(record: Body) -> Body:
    """What the model said, round by round, and what the client was asked to do."""
    spoken = [f"{c['name']}({c['arguments']})" for calls in record["spoken"] for c in calls]
    carried = [f"{call['name']}({call['arguments']})" for call in record["carried"]]
    return {"spoken": spoken, "carried": carried}


def study(
    name: str,
    versions: Mapping[str, str],
    sessions: list[Body],
) -> None:
    """Writes a study beside this file, and says it."""
    own = {"toolshift": version("toolshift"), "python": sys.version.split()[0]}
    found = {"versions": {**versions, **own}, "tasks": list(TASKS), "sessions": sessions}
    (Path(__file__).parent / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n")
    for session in sessions:
        passed = sum(one["passed"] for one in session["episodes"])
        print(f"{session['shifts']}: {passed} of {len(session['episodes'])} passed")
