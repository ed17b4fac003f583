"""A real OpenAI-compatible HTTP server whose "model" is scripted: an agent's part in one scene.

The agent (the oracle, or one with a planted weakness) has played the scene beforehand; turn by
turn the server says what it said there, streamed or not, and notes where a client showed it
something else than the agent had seen (`surprises`). It is no language model.

    PYTHONPATH=tests python tests/connect/scripted_model.py oracle poi/booking/0 identity_erasure:2
"""

from __future__ import annotations

import argparse
import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from strict_chat import StrictChat

from toolshift.agents.catalog import make_agent
from toolshift.connect.serve.session import AgentSession
from toolshift.episode.episode import Episode, messages
from toolshift.episode.grade import grade
from toolshift.runs.cell import build
from toolshift.runs.suite import read_task

DONE = "Done."


class Part:
    """All that an agent says in a scene, and what it heard after each turn.

    With `prose`, a final answer is said in plain words instead of by the protocol's tool.
    """

    def __init__(
        self, agent: str, task: str, shifts: str = "", seed: int = 0, prose: bool = False
    ) -> None:
        episode = Episode(build(read_task(task, shifts, seed)))
        make_agent(agent).play(episode)  # type: ignore[union-attr]
        self.grade = grade(episode)
        said = messages(episode.scene, episode.steps)
        turns = [n for n, message in enumerate(said) if message["role"] == "assistant"]
        self.lines = [self._line(said[n], prose) for n in turns]
        self.heard = [
            [m["content"] for m in said[n + 1 : end] if m["role"] == "tool"]
            for n, end in zip(turns, [*turns[1:], len(said)], strict=True)
        ]

    def _line(self, message: dict[str, Any], prose: bool) -> dict[str, Any]:
        for call in message.get("tool_calls") or ():
            if prose and call["function"]["name"] == "final_answer":
                return {"content": json.loads(call["function"]["arguments"])["answer"]}
        return message

    def reply(self, request: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        """The next message of the agent, and what a client has shown otherwise than it was."""
        offered = [tool["function"]["name"] for tool in request.get("tools") or ()]
        if not offered:
            return {"role": "assistant", "content": DONE}, []  # as for a title of the conversation
        turn = sum(message["role"] == "assistant" for message in request["messages"])
        surprises = self._surprises(turn, request["messages"])
        if turn >= len(self.lines):
            return {"role": "assistant", "content": DONE}, surprises
        line = self.lines[turn]
        calls = []
        for number, call in enumerate(line.get("tool_calls") or ()):
            function = call["function"]
            name = _offered(function["name"], offered)
            if name is None:
                surprises.append(f"{function['name']} is not on offer: {', '.join(offered)}")
            spoken = {"name": name or function["name"], "arguments": function["arguments"]}
            calls.append({"id": f"call_{turn}_{number}", "type": "function", "function": spoken})
        message = {"role": "assistant", "content": line.get("content") or None}
        return (message | {"tool_calls": calls} if calls else message), surprises

    def _surprises(self, turn: int, said: list[dict[str, Any]]) -> list[str]:
        shown = "\n".join(_text(message) for message in said if message["role"] == "tool")
        expected = [text for heard in self.heard[:turn] for text in heard if text != "Delivered."]
        return [f"was not shown: {text}" for text in expected if text not in shown]


def _offered(name: str, offered: list[str]) -> str | None:
    """The name under which a client offers a tool; some put the server's name before it."""
    if name in offered:
        return name
    ends = [one for one in offered if one.endswith(name)]
    return ends[0] if len(ends) == 1 else None


def _text(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(part["text"] for part in content)


class Reader(Part):
    """A model that finds the oracle's tools again by name, description or likeness."""

    def __init__(self, task: str) -> None:
        super().__init__("oracle", task)
        tools = AgentSession(Episode(build(read_task(task)))).tools()
        self.known = {tool["function"]["name"]: tool["function"] for tool in tools}

    def reply(self, request: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        names = {tool["function"]["name"]: tool["function"] for tool in request.get("tools") or ()}
        if not names:
            return super().reply(request)
        kept, self.lines = self.lines, [self._again(line, names) for line in self.lines]
        try:
            return super().reply(request)[0], []
        finally:
            self.lines = kept

    def _again(self, line: dict[str, Any], shown: dict[str, Any]) -> dict[str, Any]:
        calls = []
        for call in line.get("tool_calls") or ():
            known = self.known[call["function"]["name"]]
            there = _alike(known, shown)
            arguments = json.loads(call["function"]["arguments"])
            names = alike_params(known, there)
            said = {names[name]: value for name, value in arguments.items()}
            function = {"name": there["name"], "arguments": json.dumps(said)}
            calls.append({**call, "function": function})
        return {**line, "tool_calls": calls}


def _alike(known: dict[str, Any], shown: dict[str, Any]) -> dict[str, Any]:
    if known["name"] in shown:
        return shown[known["name"]]
    told = known["description"].rstrip(".")
    found = [f for f in shown.values() if (f.get("description") or "").startswith(told)]
    if found:
        return found[0]
    words = known["name"].split("_")
    found = [f for f in shown.values() if all(word in f["name"].lower() for word in words)]
    assert found, f"no tool is like {known['name']}: {list(shown)}"
    return found[0]


def alike_params(known: dict[str, Any], there: dict[str, Any]) -> dict[str, str]:
    mine, theirs = known["parameters"]["properties"], there["parameters"]["properties"]
    by_text = {schema.get("description"): name for name, schema in theirs.items()}
    return {n: n if n in theirs else by_text[schema["description"]] for n, schema in mine.items()}


class ScriptedModel(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, part: Part, port: int = 0, strict: StrictChat | None = None) -> None:
        super().__init__(("127.0.0.1", port), _Exchange)
        self.part, self.strict = part, strict
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.surprises: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class _Exchange(BaseHTTPRequestHandler):
    server: ScriptedModel
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._send({"object": "list", "data": [{"id": "scripted", "object": "model"}]})

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.requests.append(request)
        self.server.headers.append({k.lower(): v for k, v in self.headers.items()})
        if not self.path.endswith("/chat/completions"):
            self._send({"error": {"message": f"no {self.path} here"}}, 404)
            return
        if self.server.strict is not None and (wrong := self.server.strict.wrong(request)):
            self._send({"error": {"message": wrong, "type": "invalid_request_error"}}, 400)
            return
        message, surprises = self.server.part.reply(request)
        self.server.surprises += surprises
        if self.server.strict is not None:
            thought = {"reasoning_content": f"Thought {len(self.server.requests)}.\u2028"}
            message = {**message, **thought}
            self.server.strict.said(message)
        reason = "tool_calls" if message.get("tool_calls") else "stop"
        head = {"id": "chatcmpl-1", "created": 0, "model": request.get("model", "scripted")}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        if not request.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": reason}
            body = head | {"object": "chat.completion", "choices": [choice], "usage": usage}
            self._send(body)
            return
        chunk = head | {"object": "chat.completion.chunk"}
        deltas = [*_deltas(message), {}]
        events = [{"index": 0, "delta": d, "finish_reason": None if d else reason} for d in deltas]
        chunks = [chunk | {"choices": [event]} for event in events]
        if (request.get("stream_options") or {}).get("include_usage"):
            chunks.append(chunk | {"choices": [], "usage": usage})
        self._stream(chunks)

    def _send(self, value: Any, status: int = 200) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, chunks: list[dict[str, Any]]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for chunk in chunks:
            self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
            self.wfile.flush()
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def log_message(self, *_: Any) -> None:
        pass


def _deltas(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A message in the pieces in which servers stream it: names whole, arguments in parts."""
    yield {"role": "assistant", "content": ""}
    if thought := message.get("reasoning_content"):
        yield {"reasoning_content": thought[:3]}
        yield {"reasoning_content": thought[3:]}
    text = message.get("content") or ""
    for place in range(0, len(text), 7):
        yield {"content": text[place : place + 7]}
    for index, call in enumerate(message.get("tool_calls") or ()):
        function = call["function"]
        opening = {"index": index, "id": call["id"], "type": "function"}
        yield {"tool_calls": [opening | {"function": {"name": function["name"], "arguments": ""}}]}
        for place in range(0, len(function["arguments"]), 5):
            piece = {"arguments": function["arguments"][place : place + 5]}
            yield {"tool_calls": [{"index": index, "function": piece}]}


@contextlib.contextmanager
def scripted_model(part: Part, strict: StrictChat | None = None) -> Iterator[ScriptedModel]:
    """Serves a part on a free port of this machine; with `strict`, as strictly as a provider."""
    server = ScriptedModel(part, strict=strict)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("agent")
    parser.add_argument("task")
    parser.add_argument("shifts", nargs="?", default="")
    parser.add_argument("--port", type=int, default=0)
    args = parser.parse_args()
    server = ScriptedModel(Part(args.agent, args.task, args.shifts), args.port)
    print(server.url, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
