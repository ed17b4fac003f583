"""Tools of a real HTTP server, as its OpenAPI document lists them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from toolshift.core.documents import read_yaml
from toolshift.core.errors import ConnectionDropped, UsageError
from toolshift.core.importing import load
from toolshift.core.installation import extra
from toolshift.core.tool import Result, error
from toolshift.core.values import as_text
from toolshift.interop.logins import Login, read_login
from toolshift.interop.media import BODY, FORM, PARTS, TEXT
from toolshift.interop.openapi import Operation, read_openapi
from toolshift.interop.parameter_styles import Style, in_one, pairs
from toolshift.worlds.own.file import WorldFile
from toolshift.worlds.own.sources import result_of, texts_of

CODES = {400: "invalid_arguments", 404: "not_found", 410: "not_found", 422: "invalid_arguments"}
TIMEOUT = 30.0


class OpenAPISource:
    """The operations of a real server."""

    def __init__(self, file: WorldFile) -> None:
        self.file = file
        path = file.path.parent / str(file.tools["openapi"])
        place = ("tools", "openapi")
        try:
            document = read_yaml(path.read_bytes(), path.name)
            self.operations = {each.shown["name"]: each for each in read_openapi(document, path)}
        except OSError as fault:
            raise file.near(place, f"cannot read {path.name} ({fault.strerror})") from None
        except UsageError as wrong:
            said = str(wrong).removeprefix(f"{path.name}: ")
            named = said if said.startswith(path.name) else f"{path.name}: {said}"
            raise file.near(place, named) from None
        self.listed = [each.shown for each in self.operations.values()]
        self.base = str(file.tools.get("base_url") or server_in(document))
        if not self.base.startswith(("http://", "https://")):
            raise file.near(("tools",), "say where the server is: base_url: http://...")
        self.headers = texts_of(file, "headers")
        self.reset = str(file.tools.get("reset") or "")
        if self.reset and not re.fullmatch(r"[A-Z]+ /\S*", self.reset):
            raise file.near(("tools", "reset"), f"{self.reset!r} is not like POST /reset")
        self.shared = (
            "episodes share the server, which `reset` puts right before each: run one at a time"
            if self.reset
            else "the server runs on without a `reset`: what one episode changes another may see"
        )

    def open(self) -> HttpTools:
        """A client of its own, after the reset if there is one."""
        from toolshift.core.http import httpx  # noqa: PLC0415 - takes longer to load than all of ToolShift

        client = httpx.Client(base_url=self.base, headers=self.headers, timeout=TIMEOUT)
        given = any(name.lower() == "authorization" for name in self.headers)
        login = None if given else read_login(self.base)
        tools = HttpTools(client, self.operations, self.base, login)
        if self.reset:
            answer = tools.send(*self.reset.split(" ", 1))
            if answer.is_error:
                why = f"{self.reset} answered {answer.status_code}"
                raise self.file.near(("tools", "reset"), why)
        return tools


def server_in(document: Mapping[str, Any]) -> str:
    """The address of the first server that a document names; "" where it names none."""
    servers = document.get("servers")
    first = servers[0] if isinstance(servers, list) and servers else {}
    return str(first.get("url") or "") if isinstance(first, Mapping) else ""


class HttpTools:
    """A client of the server, for one episode."""

    def __init__(
        self,
        client: Any,
        operations: Mapping[str, Operation],
        base: str,
        login: Login | None = None,
    ) -> None:
        self.client, self.operations, self.base = client, operations, base
        self._login = login
        self._sign()
        self.state = self._ask

    def call(self, name: str, arguments: dict[str, Any]) -> Result:
        """Makes the request; an answer of 400 and above is the tool's failure."""
        operation = self.operations[name]
        path = operation.path
        sent: dict[str, dict[str, Any]] = {
            place: {} for place in ("header", BODY, "whole", PARTS, TEXT)
        }
        written: dict[str, list[tuple[str, str]]] = {"query": [], FORM: []}
        for key, value in arguments.items():
            place, own = operation.places[key]
            style = operation.styles.get(key, Style())
            if place == "path":
                path = path.replace("{" + own + "}", in_one(style, own, value))
            elif place == "header":
                sent[place][own] = in_one(style, own, value, encode=False)
            elif place in written:
                written[place] += pairs(style, own, value)
            else:
                sent[place][own] = value
        if sent[TEXT]:
            why = f"a body of {operation.media} with members cannot be written here"
            return error("tool_error", why)
        has_body = BODY in {place for place, _ in operation.places.values()}
        body = sent["whole"].get(BODY, sent[BODY] if has_body else None)
        if operation.media and body is not None:
            sent["header"]["Content-Type"] = operation.media
        answer = self.send(
            operation.method.upper(),
            path,
            params=written["query"],
            headers=sent["header"],
            **_whole(body, operation.media),
            **({"data": _fields(written[FORM])} if written[FORM] else {}),
            **({"files": _parts(sent[PARTS])} if sent[PARTS] else {}),
        )
        data = _content(answer)
        if answer.is_error:
            return error(CODES.get(answer.status_code, "tool_error"), _said(data, answer))
        return result_of(name, data)

    def _sign(self) -> None:
        """Takes the token of the login that is kept."""
        token = self._login.tokens.get("access_token") if self._login else None
        if token:
            self.client.headers["Authorization"] = f"Bearer {token}"

    def _asked_again(self, method: str, path: str, **how: Any) -> Any:
        """The answer to a request that was refused, with renewed tokens."""
        try:
            ask_again = load("toolshift.interop.mcp_auth:ask_again")
        except ImportError:
            raise UsageError(f"a login needs an extra: {extra('connect')}") from None
        answer = ask_again(self.base, method, path, **how)
        self._login = read_login(self.base)
        self._sign()
        return answer

    def send(self, method: str, path: str, **how: Any) -> Any:
        """Sends a request."""
        from toolshift.core.http import httpx  # noqa: PLC0415 - takes longer to load than all of ToolShift
        from toolshift.core.http_limits import fetch  # noqa: PLC0415 - it loads httpx

        try:
            answer = fetch(self.client, method, path, **how)
            if answer.status_code == httpx.codes.UNAUTHORIZED and self._login is not None:
                answer = self._asked_again(method, path, **how)
            return answer
        except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError) as fault:
            said = str(fault) or type(fault).__name__
            raise ConnectionDropped(
                f"the server at {self.base} broke off the connection in {method} {path}: {said}"
            ) from None
        except httpx.HTTPError as fault:
            said = str(fault) or type(fault).__name__
            raise UsageError(f"the server at {self.base} cannot be reached: {said}") from None

    def _ask(self, name: str, **arguments: Any) -> Any:
        """What a state check calls tools with."""
        return self.call(name, arguments).data

    def close(self) -> None:
        """Closes the client."""
        self.client.close()


def _whole(body: Any, media: str) -> dict[str, Any]:
    """A body that is JSON, or a text of another media type, as httpx takes it."""
    if body is None:
        return {}
    return {"content": as_text(body).encode()} if media else {"json": body}


def _fields(written: list[tuple[str, str]]) -> dict[str, list[str]]:
    """The fields of a form, as httpx takes them."""
    fields: dict[str, list[str]] = {}
    for name, value in written:
        fields.setdefault(name, []).append(value)
    return fields


def _parts(fields: Mapping[str, Any]) -> dict[str, tuple[None, str]]:
    """The fields of a multipart form, as httpx takes them: none of them is a file."""
    texts = {k: as_text(v) for k, v in fields.items()}
    return {key: (None, text) for key, text in texts.items()}


def _content(answer: Any) -> Any:
    if "json" not in answer.headers.get("content-type", ""):
        return str(answer.text)
    try:
        return answer.json()
    except ValueError:
        return str(answer.text)


def _said(data: Any, answer: Any) -> str:
    """What a failed answer says, in one line."""
    if isinstance(data, Mapping):
        for key in ("detail", "message", "error"):
            if isinstance(data.get(key), str):
                return str(data[key])
        return str(dict(data))[:500]
    return str(data)[:500] or f"HTTP {answer.status_code}"
