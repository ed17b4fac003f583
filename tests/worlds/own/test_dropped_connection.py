"""A server that breaks off one call makes one episode void, which says so; the run goes on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from json import dumps
from pathlib import Path

import pytest

import toolshift
from toolshift.core.calls import ToolCall
from toolshift.core.message import Reply, Turn

ITEM = {
    "openapi": "3.1.0",
    "info": {"title": "Shop", "version": "1"},
    "paths": {
        "/items/{item}": {
            "get": {
                "operationId": "getItem",
                "summary": "Get an item",
                "parameters": [
                    {"name": "item", "in": "path", "required": True, "schema": {"type": "string"}}
                ],
                "responses": {
                    "200": {
                        "description": "It",
                        "content": {"application/json": {"schema": {"type": "object"}}},
                    }
                },
            }
        }
    },
}


class _Site(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path.endswith("broken"):
            self.close_connection = True
            self.connection.close()
            return
        body = dumps({"shelf": "S-41" if self.path.endswith("kettle") else "S-77"}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *said: object) -> None:
        pass


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Site)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    (tmp_path / "api.json").write_text(dumps(ITEM))
    file = tmp_path / "tasks.yaml"
    tasks = "".join(
        f'  - {{id: {item}, ask: "On which shelf is the {item}?",\n'
        f"     calls: [{{name: getItem, arguments: {{item: {item}}}}}],\n"
        f"     check: {{answer: {shelf}}}}}\n"
        for item, shelf in (("kettle", "S-41"), ("lamp", "S-77"))
    )
    address = f"http://127.0.0.1:{server.server_port}"
    file.write_text(
        f"world: dropped_shop\ntools: {{openapi: api.json, base_url: {address}}}\ntasks:\n{tasks}"
    )
    yield file
    server.shutdown()
    server.server_close()


class Clumsy:
    """Asks for a broken item where the request is about the kettle."""

    name = "clumsy"

    def reply(self, turn: Turn) -> Reply:
        request, last = turn.messages[1]["content"], turn.messages[-1]
        if last["role"] == "tool":
            return Reply(calls=(ToolCall("final_answer", {"answer": str(last["content"])}),))
        item = "broken" if "kettle" in request else "lamp"
        return Reply(calls=(ToolCall("getItem", {"item": item}),))


def test_one_dropped_connection_is_one_void_episode_that_is_named(file: Path) -> None:
    report = toolshift.evaluate(
        Clumsy(), worlds=str(file), shifts=["clean"], placebo=False, out=file.parent / "r"
    )
    (agent,) = report.agents
    assert agent.everything.episodes == 2
    assert agent.everything.void_kinds == {"dropped_connection": 1}
    assert agent.clean.stated.estimate == 0.5  # void, and not excused: a bad call may do that
    run = toolshift.read_run(file.parent / "r")
    (void,) = [one for one in run.episodes if one.grade.void]
    said = void.steps[-1].said
    for part in ("getItem", "GET /items/broken", "broke off"):
        assert part in said
