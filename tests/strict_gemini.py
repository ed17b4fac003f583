"""A server of Gemini's `generateContent` with a scripted model, as strict as the provider.

It answers HTTP 400 to a field that it does not know, to a content without parts, to a call that has
not its results right after it, and to a part of the model's that is not what it has said: thoughts,
signatures, order and ids have to come back as they went. It is no language model.
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from toolshift.dialects.gemini_scope import camel

Part = dict[str, Any]
Script = Callable[[dict[str, Any]], list[Part]]
"""What the model says to a request: its parts, without ids."""

FIELDS = {"contents", "systemInstruction", "tools", "toolConfig", "generationConfig",
          "safetySettings"}  # fmt: skip
OF_SETTINGS = {"temperature", "maxOutputTokens", "topP", "topK", "seed", "thinkingConfig"}
OF_A_FUNCTION = {"name", "description", "parameters", "parametersJsonSchema"}
OF_A_PART = {"text", "thought", "thoughtSignature", "functionCall", "functionResponse",
             "inlineData"}  # fmt: skip


class StrictGemini:
    """The server's mind: what it was asked, what it has said, what it refuses.

    Args:
        script: what the model says.
        ids: whether its calls have ids.
        reason: why its answers end.
    """

    def __init__(self, script: Script, ids: bool = True, reason: str = "STOP") -> None:
        self.script, self.ids, self.reason = script, ids, reason
        self.requests: list[dict[str, Any]] = []
        self.refused: list[str] = []
        self._said: list[str] = []
        self._lock = threading.Lock()

    def answer(self, headers: Any, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """The status and the body of the answer to a request."""
        with self._lock:
            self.requests.append(body)
            wrong = self._wrong(headers, body)
            if wrong:
                self.refused.append(wrong)
                told = {"code": 400, "message": wrong, "status": "INVALID_ARGUMENT"}
                return 400, {"error": told}
            parts = [dict(part) for part in self.script(body)]
            for place, part in enumerate(parts):
                if "functionCall" in part and self.ids:
                    own = f"fc{len(self._said)}_{place}"
                    part["functionCall"] = {"id": own, **part["functionCall"]}
            self._said += [json.dumps(_bare(part), sort_keys=True) for part in parts]
            said: dict[str, Any] = {"content": {"role": "model", "parts": parts}}
            if parts and "unreadable" in parts[0]:
                said = {"finishMessage": f"Malformed function call: {parts[0]['unreadable']}"}
            reason = self.reason if "content" in said else "MALFORMED_FUNCTION_CALL"
            return 200, {
                "candidates": [{**said, "finishReason": reason, "index": 0}],
                "usageMetadata": {
                    "promptTokenCount": 1000, "cachedContentTokenCount": 50,
                    "candidatesTokenCount": 7, "thoughtsTokenCount": 3, "totalTokenCount": 1010,
                },
                "modelVersion": "gemini-scripted",
                "responseId": f"r{len(self.requests)}",
            }  # fmt: skip

    def _wrong(self, headers: Any, body: dict[str, Any]) -> str:
        if not headers.get("x-goog-api-key"):
            return "Method doesn't allow unregistered callers"
        for holder, known, where in (
            (body, FIELDS, ""),
            (body.get("generationConfig") or {}, OF_SETTINGS, " at 'generation_config'"),
            *((f, OF_A_FUNCTION, " at 'tools'") for tool in body.get("tools") or ()
              for f in tool["functionDeclarations"]),
        ):  # fmt: skip
            if odd := {name for name in holder if camel(name) not in known}:
                return f'Invalid JSON payload received. Unknown name "{sorted(odd)[0]}"{where}'
        names = {
            f["name"] for tool in body.get("tools") or () for f in tool["functionDeclarations"]
        }
        return self._wrong_history(body["contents"], names)

    def _wrong_history(self, contents: list[Any], names: set[str]) -> str:
        waiting: list[Part] = []
        for place, content in enumerate(contents):
            parts = content.get("parts")
            if not parts or content.get("role") not in ("user", "model"):
                return "contents.parts must not be empty, and a role is user or model"
            if any(part.keys() - OF_A_PART for part in parts):
                return f"Unknown name in contents[{place}].parts"
            if content["role"] == "model":
                if waiting and contents[place - 1]["role"] == "user":
                    return "a function response turn must come after a function call turn"
                for part in parts:
                    if part.get("thoughtSignature") == "skip_thought_signature_validator":
                        continue
                    if json.dumps(_bare(part), sort_keys=True) not in self._said:
                        return f"Function call is missing a thought_signature, or changed: {part}"
                waiting += [part["functionCall"] for part in parts if "functionCall" in part]
                continue
            told = [part["functionResponse"] for part in parts if "functionResponse" in part]
            if len(told) != len(waiting):
                return "the number of function response parts is not that of function call parts"
            if [one.get("id") for one in told] != [one.get("id") for one in waiting]:
                return "ids of function responses are not those of their calls"
            if [one["name"] for one in told] != [one["name"] for one in waiting]:
                return "names of function responses are not those of their calls"
            waiting = []
        return ""


def _bare(part: Part) -> Part:
    """A part, its signature as bytes: clients write them in another alphabet."""
    signature = part.get("thoughtSignature")
    if signature is None:
        return part
    raw = base64.urlsafe_b64decode(signature.replace("+", "-").replace("/", "_"))
    return {**part, "thoughtSignature": raw.hex()}


def as_chunks(answer: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """An answer as the provider streams it: each part in a piece; the end comes with the last."""
    (candidate,) = answer["candidates"]
    parts = candidate["content"]["parts"]
    for place, part in enumerate(parts):
        one = {**candidate, "content": {"role": "model", "parts": [part]}}
        if place < len(parts) - 1:
            del one["finishReason"]
        yield {**answer, "candidates": [one]}


@contextlib.contextmanager
def serving(mind: StrictGemini) -> Iterator[str]:
    """Serves on a free port; gives the address before the version."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            path, _, query = self.path.partition("?")
            known = re.fullmatch(r"/v1(beta)?/models/[^/:]+:(generate|streamGenerate)Content", path)
            if known:
                status, said = mind.answer(self.headers, body)
            else:
                status, said = 404, {"error": {"code": 404, "message": path, "status": "NOT_FOUND"}}
            streamed = status == 200 and "stream" in path
            kind = "text/event-stream" if streamed else "application/json"
            self.send_response(status)
            self.send_header("content-type", kind)
            self.end_headers()
            if not streamed:
                self.wfile.write(json.dumps(said).encode())
                return
            assert "alt=sse" in query
            for chunk in as_chunks(said):
                line = json.dumps(chunk, ensure_ascii=False)
                self.wfile.write(f"data: {line}\r\n\r\n".encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
