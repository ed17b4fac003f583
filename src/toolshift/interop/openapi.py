"""Tools from an OpenAPI 3 document: an operation is a tool, called over HTTP."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from toolshift.core.errors import UsageError
from toolshift.core.tool import Result, error
from toolshift.interop.schema import inlined, look_up
from toolshift.worlds.own.file import WorldFile
from toolshift.worlds.own.sources import headers_of, result_of

METHODS = ("get", "put", "post", "delete", "patch")
BODY = "body"
CODES = {400: "invalid_arguments", 404: "not_found", 410: "not_found", 422: "invalid_arguments"}
TIMEOUT = 30.0


@dataclass(frozen=True)
class Operation:
    """How a tool is called: `places` says for each argument whether it is path, query, header,
    a property of the body ("body") or the whole of it ("whole"), and its name there.
    """

    method: str
    path: str
    places: Mapping[str, tuple[str, str]]
    shown: dict[str, Any]


def read_openapi(document: Any) -> list[Operation]:
    """The operations of an OpenAPI 3 document, each with the tool as an MCP server would list it.

    Raises:
        UsageError: where it is none.
    """
    if not isinstance(document, Mapping) or not isinstance(document.get("paths"), Mapping):
        raise UsageError("it is no OpenAPI 3 document: it has no `paths`")
    if not str(document.get("openapi", "")).startswith("3."):
        raise UsageError("it is no OpenAPI 3 document: `openapi` is not 3.x")
    found = list(_operations(document))
    if not found:
        raise UsageError("the OpenAPI document has no operation")
    return found


def _operations(document: Mapping[str, Any]) -> Iterator[Operation]:
    for path, item in document["paths"].items():
        methods = _resolved(item, document)
        for method in METHODS:
            if isinstance(methods.get(method), Mapping):
                yield _operation(path, method, methods, document)


def _resolved(node: Any, document: Any) -> Mapping[str, Any]:
    for _ in range(8):
        if not isinstance(node, Mapping) or "$ref" not in node:
            break
        node = look_up(document, node["$ref"])
    return node if isinstance(node, Mapping) else {}


def _operation(
    path: str, method: str, item: Mapping[str, Any], document: Mapping[str, Any]
) -> Operation:
    said = item[method]
    name = said.get("operationId") or f"{method}_{path}"
    name = re.sub(r"\W+", "_", str(name)).strip("_")
    places: dict[str, tuple[str, str]] = {}
    properties: dict[str, Any] = {}
    required: list[str] = []

    def add(key: str, place: str, schema: Any, told: Any, needed: bool) -> None:
        own = key if key not in properties else f"{place}_{key}"
        schema = dict(inlined(schema or {}, document))
        properties[own] = {**schema, "description": told} if told else schema
        places[own] = (place, key)
        if needed:
            required.append(own)

    raws = (*item.get("parameters", ()), *said.get("parameters", ()))
    params = [_resolved(raw, document) for raw in raws]
    # A parameter of the operation stands in place of the path's of the same name.
    for param in {(each.get("in"), each.get("name")): each for each in params}.values():
        if param.get("in") in ("path", "query", "header"):
            needed = bool(param.get("required")) or param["in"] == "path"
            add(param["name"], param["in"], param.get("schema"), param.get("description"), needed)
    body = _resolved(said.get("requestBody"), document)
    schema = _json_schema(body)
    if schema is not None:
        whole = inlined(schema, document)
        needs = whole.get("required") or ()
        for key, inner in (whole.get("properties") or {}).items():
            add(key, BODY, inner, None, key in needs)
        if not whole.get("properties"):
            add(BODY, "whole", schema, None, bool(body.get("required")))
    told = "\n".join(filter(None, [said.get("summary"), said.get("description")]))
    shown: dict[str, Any] = {
        "name": name,
        "description": told,
        "inputSchema": {"type": "object", "properties": properties, "required": required},
        "annotations": {"readOnlyHint": method == "get"},
    }
    outputs = _outputs(said.get("responses") or {}, document)
    return Operation(method, path, places, {**shown, "outputSchema": outputs} if outputs else shown)


def _json_schema(body: Mapping[str, Any]) -> Any:
    content = body.get("content")
    for kind, media in content.items() if isinstance(content, Mapping) else ():
        if "json" in kind and isinstance(media, Mapping):
            return media.get("schema") or {}
    return None


def _outputs(responses: Mapping[Any, Any], document: Any) -> dict[str, Any] | None:
    """The schema of a good answer that is a record, or a list of records."""
    good = next((r for code, r in responses.items() if str(code).startswith("2")), None)
    schema = _json_schema(_resolved(good, document))
    if schema is None:
        return None
    written = inlined(schema, document)
    if written.get("properties"):
        return {**written, "type": "object"}
    items = written.get("items")
    if isinstance(items, Mapping) and items.get("properties"):
        return {"type": "object", "properties": {"result": written}}
    return None


class OpenAPISource:
    """The operations of a real server."""

    def __init__(self, file: WorldFile) -> None:
        import yaml

        self.file = file
        path = file.path.parent / str(file.tools["openapi"])
        place = ("tools", "openapi")
        try:
            document = yaml.safe_load(path.read_text())
            self.operations = {each.shown["name"]: each for each in read_openapi(document)}
        except OSError as fault:
            raise file.near(place, f"cannot read {path.name} ({fault.strerror})") from None
        except (yaml.YAMLError, UnicodeDecodeError):
            raise file.near(place, f"{path.name} is neither JSON nor YAML") from None
        except UsageError as wrong:
            raise file.near(place, f"{path.name}: {wrong}") from None
        self.listed = [each.shown for each in self.operations.values()]
        servers = document.get("servers") or [{}]
        self.base = str(file.tools.get("base_url") or servers[0].get("url") or "")
        if not self.base.startswith(("http://", "https://")):
            raise file.near(("tools",), "say where the server is: base_url: http://...")
        self.headers = headers_of(file)
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
        import httpx

        client = httpx.Client(base_url=self.base, headers=self.headers, timeout=TIMEOUT)
        tools = HttpTools(client, self.operations, self.base)
        if self.reset:
            answer = tools.send(*self.reset.split(" ", 1))
            if answer.is_error:
                why = f"{self.reset} answered {answer.status_code}"
                raise self.file.near(("tools", "reset"), why)
        return tools


class HttpTools:
    """A client of the server, for one episode."""

    def __init__(self, client: Any, operations: Mapping[str, Operation], base: str) -> None:
        self.client, self.operations, self.base = client, operations, base
        self.state = self._ask

    def call(self, name: str, arguments: dict[str, Any]) -> Result:
        """Makes the request; an answer of 400 and above is the tool's failure."""
        operation = self.operations[name]
        path = operation.path
        sent: dict[str, dict[str, Any]] = {"query": {}, "header": {}, BODY: {}, "whole": {}}
        for key, value in arguments.items():
            place, own = operation.places[key]
            if place == "path":
                path = path.replace("{" + own + "}", quote(str(value), safe=""))
            else:
                sent[place][own] = value
        has_body = BODY in {place for place, _ in operation.places.values()}
        body = sent["whole"].get(BODY, sent[BODY] if has_body else None)
        answer = self.send(
            operation.method.upper(),
            path,
            params=sent["query"],
            headers={key: str(value) for key, value in sent["header"].items()},
            **({"json": body} if body is not None else {}),
        )
        data = _content(answer)
        if answer.is_error:
            return error(CODES.get(answer.status_code, "tool_error"), _said(data, answer))
        return result_of(name, data)

    def send(self, method: str, path: str, **how: Any) -> Any:
        """Sends a request.

        Raises:
            UsageError: where the server cannot be reached.
        """
        import httpx

        try:
            return self.client.request(method, path, **how)
        except httpx.HTTPError as fault:
            said = str(fault) or type(fault).__name__
            raise UsageError(f"the server at {self.base} cannot be reached: {said}") from None

    def _ask(self, name: str, **arguments: Any) -> Any:
        """What a state check calls tools with."""
        return self.call(name, arguments).data

    def close(self) -> None:
        """Closes the client."""
        self.client.close()


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
