"""What the model proxy does not shift is refused, or passed on and counted; never in silence.

The proxy is a process of its own. The model behind it notes every request, whatever its method.
"""

from __future__ import annotations

import gzip
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

CHAT = "/v1/chat/completions"
FUNCTION = {
    "name": "get_weather",
    "description": "Get the weather.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}
TOOL = {"type": "function", "function": FUNCTION}
USER = {"role": "user", "content": "Weather?"}
CALL = {
    "id": "c1",
    "type": "function",
    "function": {"name": "get_weather", "arguments": '{"city": "Vostrand"}'},
}
SAID = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "21 degrees"}
BODY: dict[str, Any] = {"model": "m", "messages": [USER], "tools": [TOOL]}


class Noting(ThreadingHTTPServer):
    """A model that answers every request by one word, and notes what it was sent."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Noted)
        self.seen: list[tuple[str, str, dict[str, str], bytes]] = []


class _Noted(BaseHTTPRequestHandler):
    server: Noting
    protocol_version = "HTTP/1.1"

    def __getattr__(self, name: str) -> Callable[[], None]:
        if not name.startswith("do_"):
            raise AttributeError(name)
        return self._answer

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.seen.append((self.command, self.path, headers, body))
        answer = b'{"choices": [{"message": {"role": "assistant", "content": "Fine."}}]}'
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def noting() -> Iterator[Noting]:
    with Noting() as model:
        thread = threading.Thread(target=model.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield model
        finally:
            model.shutdown()
            thread.join()


class Proxy:
    """`toolshift model-proxy` in a process of its own, before a model that notes."""

    def __init__(self, model: Noting, *words: str) -> None:
        self.model = model
        command = [sys.executable, "-m", "toolshift", "model-proxy", "--port", "0", *words]
        command += ["--upstream", f"http://127.0.0.1:{model.server_port}/v1"]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        self.port = int(line.partition("/v1")[0].rpartition(":")[2])

    def send(self, method: str, path: str, body: bytes, **headers: str) -> tuple[int, bytes]:
        link = HTTPConnection("127.0.0.1", self.port, timeout=30)
        with closing(link):
            link.request(method, path, body, {"content-type": "application/json", **headers})
            answer = link.getresponse()
            return answer.status, answer.read()

    def end(self, sign: int = signal.SIGINT) -> list[str]:
        """Stops it; what it has said at the end."""
        self.process.send_signal(sign)
        _, said = self.process.communicate(timeout=20)
        assert self.process.returncode == 128 + sign
        return said.splitlines()


@contextmanager
def standing(*words: str) -> Iterator[Proxy]:
    with noting() as model:
        proxy = Proxy(model, *words)
        try:
            yield proxy
        finally:
            proxy.process.kill()
            proxy.process.communicate()


@pytest.fixture(scope="module")
def strict() -> Iterator[Proxy]:
    with standing("--shift", "tool_name_noise:3") as proxy:
        yield proxy


def asked(**changed: Any) -> dict[str, Any]:
    return {**BODY, **changed}


def history(*said: Any, **changed: Any) -> dict[str, Any]:
    return asked(messages=[USER, *said], **changed)


def odd_call(**changed: Any) -> dict[str, Any]:
    return {**SAID, "tool_calls": [{**CALL, **changed}]}


PATHS = [
    ("POST", path)
    for path in (
        "/v1/messages", "/v1/threads?beta=true", "/v1/messages/count_tokens", "/v1/responses/r1",
        "/v1/responses/compact", "/v1/responses/",
        "/v1/completions", "/v1/embeddings", "/v1/batches", "/v1/threads/t1/runs", "/v1/assistants",
        "/v1/chat/completions/", "/v1//chat/completions", "//v1/chat/completions",
        "/v1/chat//completions", "/v1/./chat/completions", "/v1/x/../chat/completions",
        "/v1/chat%2Fcompletions", "/v1/chat/%63ompletions", "/%761/chat/completions",
        "/v1/%2e%2e/v1/chat/completions", "/V1/chat/completions", "/v1/chat/Completions",
        "/v1/chat/completions;x", "/v1/chat/completions%00", "/v1/chat/completions%3Fx",
        "/v1/chat/completions/c1", "/chat/completions", "/v2/chat/completions", "/", "/v1", "/v1/",
        "/openai/deployments/gpt/chat/completions?api-version=1", "/api/chat",
    )
]  # fmt: skip
METHODS = [
    *((method, CHAT) for method in ("GET", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "BREW")),
    *((method, "/v1/models") for method in ("GET", "HEAD", "DELETE")),
]
BODIES: dict[str, dict[str, Any]] = {
    # other kinds of tools
    "hosted tool": asked(tools=[TOOL, {"type": "web_search_preview"}]),
    "tool of MCP": asked(tools=[{"type": "mcp", "server_url": "https://x"}, TOOL]),
    "custom tool": asked(tools=[{"type": "custom", "custom": {"name": "shell"}}]),
    "hosted tool alone": asked(tools=[{"type": "code_interpreter"}]),
    "tool of Anthropic": asked(tools=[{"name": "get_weather", "input_schema": {}}]),
    "tool of Responses": asked(tools=[{"type": "function", "name": "get_weather"}]),
    "tools of Gemini": asked(tools=[{"function_declarations": [FUNCTION]}]),
    "hosted tool of Gemini": asked(tools=[TOOL, {"google_search": {}}]),
    "function with another field": asked(tools=[{"function": {**FUNCTION, "title": "weather"}}]),
    "function beside custom": asked(tools=[{**TOOL, "custom": {"name": "get_weather"}}]),
    "functions": asked(functions=[FUNCTION]),
    "functions alone": {"model": "m", "messages": [USER], "functions": [FUNCTION]},
    "function_call": asked(function_call={"name": "get_weather"}),
    # tools in other fields
    "web search": asked(web_search_options={}),
    "web search without tools": {"model": "m", "messages": [USER], "web_search_options": {}},
    "servers of MCP": asked(mcp_servers=[{"url": "https://x"}]),
    "plugins": asked(plugins=[{"id": "web"}]),
    "a switch": asked(enable_search=True),
    "a word": asked(toolset="all"),
    "tools within": asked(extra_body={"tools": [TOOL]}),
    "tools of another case": asked(Tools=[TOOL]),
    "tools in a setting": asked(chat_template_kwargs={"tools": [TOOL]}),
    "tools in metadata": asked(metadata={"more": {"tools": [TOOL]}}),
    "structural tag": asked(response_format={"type": "structural_tag", "structures": [FUNCTION]}),
    # choices
    "choice of a custom tool": asked(tool_choice={"type": "custom", "custom": {"name": "x"}}),
    "choice of Anthropic": asked(tool_choice={"type": "tool", "name": "get_weather"}),
    "choice by name": asked(tool_choice="get_weather"),
    "choice of hosted tools": asked(
        tool_choice={"type": "allowed_tools", "allowed_tools": {"tools": [{"type": "mcp"}]}}
    ),
    # histories
    "custom call": history({**SAID, "tool_calls": [{"id": "c1", "type": "custom", "custom": {}}]}),
    "call beside custom": history(odd_call(custom={"name": "get_weather"}), RESULT),
    "function call of old": history({"role": "assistant", "function_call": CALL["function"]}),
    "result of old": history({"role": "function", "name": "get_weather", "content": "21"}),
    "unknown role": history({"role": "ipython", "content": "21"}),
    "no role": history({"content": "21"}),
    "blocks of Anthropic": history(
        {"role": "assistant", "content": [{"type": "tool_use", "name": "get_weather"}]}
    ),
    "result as a block": history({"role": "user", "content": [{"type": "tool_result"}]}),
    "result with a picture": history(
        SAID, {**RESULT, "content": [{"type": "text", "text": "21"}, {"type": "image_url"}]}
    ),
    "result as an object": history(SAID, {**RESULT, "content": {"degrees": 21}}),
    "result without its call": history(RESULT),
    "result before its call": history(RESULT, SAID),
    "result of another call": history(SAID, {**RESULT, "tool_call_id": "c2"}),
    "calls in an unknown field": history({"role": "assistant", "server_calls": [CALL]}),
    "calls and no tools": {"model": "m", "messages": [USER, SAID, RESULT]},
    "calls and empty tools": history(SAID, RESULT, tools=[]),
    "a choice and no tools": {"model": "m", "messages": [USER], "tool_choice": TOOL},
    # forms of answers
    "several answers": asked(n=2),
    "several answers in a stream": asked(n=3, stream=True),
    "hosted tool in a stream": asked(tools=[TOOL, {"type": "web_search"}], stream=True),
}


def is_refused(proxy: Proxy, method: str, path: str, body: bytes, **headers: str) -> None:
    proxy.model.seen.clear()
    status, answer = proxy.send(method, path, body, **headers)
    assert not proxy.model.seen
    assert status == 501
    if method != "HEAD":
        said = json.loads(answer)
        assert said["type"] == "error"  # as clients of Anthropic read it
        assert "--pass-through" in said["error"]["message"]
        assert "\n" not in said["error"]["message"]


@pytest.mark.parametrize(("method", "path"), [*PATHS, *METHODS])
def test_other_paths_and_methods_are_refused(strict: Proxy, method: str, path: str) -> None:
    is_refused(strict, method, path, json.dumps(BODY).encode())


@pytest.mark.parametrize("kind", BODIES)
def test_other_kinds_of_tools_are_refused(strict: Proxy, kind: str) -> None:
    is_refused(strict, "POST", CHAT, json.dumps(BODIES[kind]).encode())


@pytest.mark.parametrize("encoding", ["gzip", "GZIP", "br", "identity, gzip", "x"])
def test_a_body_that_is_packed_is_refused(strict: Proxy, encoding: str) -> None:
    packed = gzip.compress(json.dumps(BODY).encode())
    is_refused(strict, "POST", CHAT, packed, **{"content-encoding": encoding})


def test_a_connection_is_not_turned_into_a_socket(strict: Proxy) -> None:
    headers = {"upgrade": "websocket", "connection": "Upgrade", "sec-websocket-version": "13"}
    is_refused(strict, "GET", "/v1/realtime", b"", **headers, **{"sec-websocket-key": "eA=="})


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff", b"tools=1", b"\x1f\x8b"])
def test_a_body_that_cannot_be_read_is_refused(strict: Proxy, body: bytes) -> None:
    assert strict.send("POST", CHAT, body)[0] == 400
    assert not strict.model.seen


SHIFTED: dict[str, dict[str, Any]] = {
    "plain": BODY,
    "a tool without a type": asked(tools=[{"function": FUNCTION}]),
    "strict": asked(tools=[{"type": "function", "function": {**FUNCTION, "strict": True}}]),
    "history": history(SAID, RESULT),
    "result in parts": history(SAID, {**RESULT, "content": [{"type": "text", "text": "21"}]}),
    "result with a name": history(SAID, {**RESULT, "name": "get_weather"}),
    "call that cannot be read": history(
        odd_call(function={"name": "get_weather", "arguments": "{"}), RESULT
    ),
    "as the client of OpenAI sends a message back": history(
        {
            **SAID,
            "refusal": None,
            "annotations": [],
            "audio": None,
            "function_call": None,
            "reasoning_content": "I look.",
        },
        RESULT,
    ),
    "choice": asked(tool_choice={"type": "function", "function": {"name": "get_weather"}}),
    "settings": asked(
        temperature=0.2,
        top_k=20,
        min_p=0.1,
        stop=["x"],
        stream_options={"include_usage": True},
        logit_bias={"50256": -100},
        metadata={"study": "a"},
        response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": {}}},
        chat_template_kwargs={"enable_thinking": False},
        reasoning_effort="low",
        functions=None,
        n=1,
    ),
    "pictures of the user": asked(
        messages=[{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]
    ),
}


@pytest.mark.parametrize("kind", SHIFTED)
def test_what_is_shifted_passes_and_names_no_tool_as_it_was(strict: Proxy, kind: str) -> None:
    status, _ = strict.send("POST", f"{CHAT}?api-version=1", json.dumps(SHIFTED[kind]).encode())
    ((method, path, _, sent),) = strict.model.seen
    strict.model.seen.clear()
    assert (status, method, path) == (200, "POST", f"{CHAT}?api-version=1")
    assert b"get_weather" not in sent


def test_of_a_field_that_is_there_twice_no_other_half_reaches_the_model(strict: Proxy) -> None:
    tools = json.dumps(BODY["tools"])
    raw = f'{{"model": "m", "messages": [], "tools": {tools}, "tools": []}}'
    assert strict.send("POST", CHAT, raw.encode())[0] == 200
    ((*_, sent),) = strict.model.seen
    strict.model.seen.clear()
    assert b"get_weather" not in sent


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_what_is_passed_on_is_as_it_came_and_counted_on_the_last_line(
    sign: int, tmp_path: Path
) -> None:
    trace = tmp_path / "trace.jsonl"
    words = ("--shift", "tool_name_noise:3", "--pass-through", "--trace", str(trace))
    packed = gzip.compress(json.dumps(BODY).encode())
    sending = [
        ("POST", "/v1/threads?beta=true", b'{"tools": [ {"name": "x"}]}', {}),
        ("POST", "/v1/threads", b"{}", {}),
        ("GET", "/v1/models", b"", {}),
        ("DELETE", "/v1/files/a%2Fb", b"", {}),
        ("POST", CHAT, json.dumps(BODIES["hosted tool"]).encode(), {}),
        ("POST", CHAT, packed, {"content-encoding": "gzip"}),
    ]
    with standing(*words) as proxy:
        for method, path, body, headers in sending:
            assert proxy.send(method, path, body, **headers)[0] == 200
            assert proxy.model.seen[-1][:2] == (method, path)
            assert proxy.model.seen[-1][3] == body
            assert proxy.model.seen[-1][2].get("content-encoding") == headers.get(
                "content-encoding"
            )
        assert proxy.send("POST", CHAT, json.dumps(BODY).encode())[0] == 200
        assert b"get_weather" not in proxy.model.seen[-1][3]
        assert proxy.send("POST", "/chat/completions", b"{}")[0] == 404
        assert proxy.send("POST", "/v1/%2e%2e/x", b"{}")[0] == 404
        assert len(proxy.model.seen) == 7
        last = proxy.end(sign)[-1]
    assert last.startswith("toolshift: requests passed on unshifted: 8 (")
    for count in ("/v1/threads 2", f"{CHAT} 2", "/v1/models 1", "/v1/files/a%2Fb 1"):
        assert count in last
    records = [json.loads(line) for line in trace.read_text().splitlines()]
    why = [record["why"] for record in records if "unshifted" in record]
    assert why[0] == "POST /v1/threads"
    assert "web_search_preview" in why[4]


def test_what_is_refused_is_counted_too_and_so_are_requests_without_tools() -> None:
    with standing("--shift", "tool_name_noise:3") as proxy:
        for number in range(60):
            proxy.send("POST", f"/v1/{number}", b"{}")
        proxy.send("POST", CHAT, json.dumps({"messages": [USER]}).encode())
        *_, toolless, last = proxy.end()
    assert "requests without tools, in which nothing was shifted: 1" in toolless
    assert "requests refused, for they are not shifted: 60 (" in last
    assert "other paths 10" in last


def test_nothing_passed_on_is_said_too() -> None:
    with standing("--shift", "tool_name_noise:3", "--pass-through") as proxy:
        assert proxy.end()[-1] == "toolshift: requests passed on unshifted: 0"


def test_without_shifts_all_passes_as_it_is() -> None:
    with standing() as proxy:
        for method, path in (("POST", "/v1/messages"), ("PUT", "/v1/x"), ("GET", "/v1/models")):
            assert proxy.send(method, path, b'{"tools": 1 }')[0] == 200
            assert proxy.model.seen[-1][:2] == (method, path)
            assert proxy.model.seen[-1][3] == b'{"tools": 1 }'
        assert proxy.end() == ["Stopped."]
