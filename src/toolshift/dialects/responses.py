"""OpenAI's Responses: one list of items in, one list of items out.

Tools in a namespace are read under one name (`namespace__name`), as models without namespaces are
shown them. A tool that keeps this beginning goes back into its namespace; one that a shift renames
otherwise stands beside it. A custom tool, which takes a free text, is read as a function with one
parameter, and is a function for the model where a shift changes that parameter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from toolshift.core.message import Usage
from toolshift.dialects.form import (
    WIRE,
    Answer,
    Body,
    Message,
    Reason,
    Request,
    Variables,
    number,
)
from toolshift.dialects.responses_items import (
    NAME,
    Place,
    joined,
    places_of,
    prefix_of,
    read_items,
    read_spoken,
    write_items,
    write_spoken,
)
from toolshift.dialects.responses_scope import is_function, unshifted
from toolshift.dialects.responses_stream import ResponsesStream, as_asked
from toolshift.dialects.sse import frame

REASONS: Mapping[Any, Reason] = {
    "max_output_tokens": "length",
    "content_filter": "content_filter",
}
SEALED_THOUGHTS = "reasoning.encrypted_content"
"""What a stateless agent asks for, to send the thoughts back with the next request."""


# -- the parts that are read; what stands beside them may have any form ------------------------


class _Item(msgspec.Struct):
    type: str = "message"
    role: str | None = None
    name: str | None = None
    namespace: str | None = None
    call_id: str | None = None


class _ShownTool(msgspec.Struct):
    type: str
    name: str | None = None
    description: str | None = None
    parameters: dict[str, Any] | None = None


class _Request(msgspec.Struct):
    input: str | list[_Item] = ""
    tools: list[_ShownTool] | None = None
    instructions: Any = None
    previous_response_id: str | None = None


class _Details(msgspec.Struct):
    reason: str | None = None


class _Response(msgspec.Struct):
    output: list[_Item]
    id: str | None = None
    status: str | None = None
    incomplete_details: _Details | None = None


class Responses:
    """The codec of Responses."""

    name = NAME
    answers = "response"
    path = "/responses"
    home = "https://api.openai.com/v1"
    variables: Variables = (("OPENAI_BASE_URL",), ("OPENAI_API_KEY",))
    temperature: float | None = None  # models that reason take none

    def takes(self, method: str, path: str) -> bool:
        """Whether a request to a path is of it."""
        return (method, path) == ("POST", "/v1" + self.path)

    def unshifted(self, body: Body, path: str) -> str:
        """The first thing in a request that is not shifted, in words."""
        return unshifted(body)

    def read(self, body: Body, path: str = "") -> Request:
        """Reads a request."""
        msgspec.convert(body, _Request)
        given = body.get("input") or ""
        items = [{"role": "user", "content": given}] if isinstance(given, str) else given
        told = body.get("instructions")
        first = [_instructions(told)] if isinstance(told, str) else []
        return Request(
            first + (read_items(items) if given else []),
            _read_tools(body.get("tools") or ()),
            _read_choice(body.get("tool_choice")),
            bool(body.get("stream")),
            str(body.get("previous_response_id") or ""),
        )

    def write(self, body: Body, request: Request) -> Body:
        """A request as `body`, with other messages, tools and choice."""
        was = self.read(body)
        out = dict(body)
        if request.tools and request.tools != was.tools:
            out["tools"] = _write_tools(request.tools)
        if request.choice is not None and request.choice != was.choice:
            out["tool_choice"] = _write_choice(request.choice, places_of(out.get("tools")))
        if request.follows:
            out["previous_response_id"] = request.follows
        known, new = request.messages[: request.known], request.messages[request.known :]
        if new != was.messages:
            out |= _write_messages(known, new, places_of(out.get("tools")), body)
        return out

    def error(self, status: int, why: str) -> Body:
        """An error in the form in which clients of OpenAI read one."""
        return {"error": {"message": why, "type": "toolshift", "code": str(status), "param": None}}

    def error_frame(self, error: object) -> bytes:
        """An error in a stream that has begun: the event that told of it, or one of our own."""
        told = error if isinstance(error, dict) else {"message": str(error)}
        kind = told.get("type")
        if kind in ("response.failed", "error"):
            return frame(told, kind)
        head = {"type": "error", "code": "server_error", "param": None, "sequence_number": 0}
        return frame({**head, "message": str(told.get("message") or told)}, "error")

    def recognises(self, body: Body) -> bool:
        """Whether a JSON object is a response."""
        return isinstance(body.get("output"), list)

    def read_answer(self, body: Body) -> Answer | None:
        """Reads a response; None where it is an error that came with HTTP 200."""
        if body.get("status") in ("failed", "cancelled") or (
            body.get("error") and not body.get("output")
        ):
            return None
        read = msgspec.convert(body, _Response)
        if read.status in ("queued", "in_progress"):
            raise ValueError(f"its status is {read.status!r}: it has no answer yet")
        why = read.incomplete_details.reason if read.incomplete_details else None
        reason = REASONS.get(why, "length") if read.status == "incomplete" else ""
        output = [_as_served(item) for item in body["output"]]
        return Answer(read_spoken(output), body.get("usage"), reason, read.id or "")

    def write_answer(
        self, body: Body, message: Message, usage: Any, cut: bool, asked: Body
    ) -> Body:
        """A response as `body`, with another message and record of tokens."""
        out = as_asked(body, asked)
        out["output"] = write_spoken(message, places_of(asked.get("tools")))
        if cut:
            details = {"reason": "max_output_tokens"}
            out |= {"status": "incomplete", "incomplete_details": details}
        return {**out, "usage": usage} if usage else out

    def stream(self, asked: Body) -> ResponsesStream:
        """What takes the events of a response in."""
        return ResponsesStream(asked)

    def address(self, base_url: str, model: str) -> str:
        """Where an agent sends its requests."""
        return base_url.rstrip("/").removesuffix(self.path) + self.path

    def settings(self, model: str, temperature: float | None, max_tokens: int) -> Body:
        """A request for these settings; the server keeps nothing, so that thoughts go along."""
        heat = {} if temperature is None else {"temperature": temperature}
        kept = {"store": False, "include": [SEALED_THOUGHTS]}
        return {"model": model, **heat, "max_output_tokens": max_tokens, **kept}

    def instead_of(self, field: str) -> Sequence[str]:
        """There is one name for each setting."""
        return ()

    def headers(self, key: str) -> Mapping[str, str]:
        """A key is a bearer's token."""
        return {"authorization": f"Bearer {key}"} if key else {}

    def tokens(self, usage: Any) -> Usage:
        """A record of tokens, read."""
        return Usage(
            number(usage, "input_tokens"),
            number(usage, "output_tokens"),
            cached_tokens=number(usage, "input_tokens_details", "cached_tokens"),
            reasoning_tokens=number(usage, "output_tokens_details", "reasoning_tokens"),
        )


RESPONSES = Responses()


def _as_served(item: dict[str, Any]) -> dict[str, Any]:
    """An item without what the official client adds to those that it reads from a stream.

    The server does not take it back.
    """
    parts = item.get("content")
    held = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    if not any(_PARSED & each.keys() for each in (item, *held)):
        return item
    own = {key: value for key, value in item.items() if key not in _PARSED}
    if held:
        own["content"] = [{k: v for k, v in part.items() if k not in _PARSED} for part in held]
    return own


_PARSED = frozenset(("parsed", "parsed_arguments"))


# -- messages ----------------------------------------------------------------------------------


def _instructions(text: str) -> Message:
    return {"role": "system", "content": text, WIRE: {"dialect": NAME, "instructions": True}}


def _are_instructions(message: Message, first: bool, body: Body) -> bool:
    """Those that a request had apart; and the system's first words, where they were in none yet."""
    wire = message.get(WIRE)
    if isinstance(wire, dict) and wire.get("dialect") == NAME:
        return bool(wire.get("instructions"))
    return first and message.get("role") == "system" and "input" not in body


def _write_messages(
    known: Sequence[Message], new: Sequence[Message], places: Mapping[str, Place], body: Body
) -> Body:
    told = [m for n, m in enumerate(new) if _are_instructions(m, not n, body)]
    items = write_items([m for m in new if not any(m is one for one in told)], places, known)
    out: Body = {"instructions": told[0].get("content")} if told else {}
    given = body.get("input")
    if isinstance(given, str) and items == [{"role": "user", "content": given}]:
        return out
    return {**out, "input": items}


# -- tools -------------------------------------------------------------------------------------


def _read_tools(listed: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The tools that can be shifted, as chat completions have them."""
    found = []
    for tool in filter(is_function, listed):
        if tool["type"] != "namespace":
            found.append(_read_tool(tool, {}))
            continue
        space = {key: value for key, value in tool.items() if key != "tools"}
        found += [_read_tool(inner, space) for inner in tool.get("tools") or ()]
    return found


def _read_tool(tool: dict[str, Any], space: dict[str, Any]) -> dict[str, Any]:
    said: dict[str, Any] = {"name": joined(space.get("name"), tool["name"])}
    if isinstance(tool.get("description"), str):
        said["description"] = tool["description"]
    if tool["type"] == "custom":
        said["parameters"] = _of_a_text(tool.get("format"))
    elif isinstance(tool.get("parameters"), dict):
        said["parameters"] = tool["parameters"]
    wire = {"dialect": NAME, "tool": tool, **({"namespace": space} if space else {})}
    return {"type": "function", "function": said, WIRE: wire}


def _of_a_text(form: Any) -> dict[str, Any]:
    """The parameters of a custom tool: one text, with the grammar that it must have."""
    grammar = form.get("definition") if isinstance(form, dict) else None
    told = f"Text in this {form.get('syntax')} grammar:\n{grammar}" if grammar else "Free text."
    properties = {"input": {"type": "string", "description": told}}
    return {"type": "object", "properties": properties, "required": ["input"]}


def _write_tools(tools: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    raws = (_wire_of(tool).get("tool") for tool in tools)
    like = next((raw for raw in raws if raw and raw["type"] == "function"), None)
    spaces: dict[str, dict[str, Any]] = {}
    for tool in tools:
        wire = _wire_of(tool)
        space, name = wire.get("namespace") or {}, str(tool["function"].get("name"))
        before = prefix_of(space["name"]) if space else ""
        inside = bool(space) and name.startswith(before) and name != before
        own = name.removeprefix(before) if inside else name
        written = _write_tool(tool, wire, own) if wire else _new_tool(tool, own, like)
        if not inside:
            found.append(written)
            continue
        if space["name"] not in spaces:
            spaces[space["name"]] = {**space, "tools": []}
            found.append(spaces[space["name"]])
        spaces[space["name"]]["tools"].append(written)
    return found


def _wire_of(tool: Mapping[str, Any]) -> dict[str, Any]:
    wire = tool.get(WIRE)
    return wire if isinstance(wire, dict) and wire.get("dialect") == NAME else {}


def _new_tool(tool: dict[str, Any], name: str, like: Mapping[str, Any] | None) -> dict[str, Any]:
    """A tool that was not in the request, written as the others are, which must not tell it."""
    function = tool["function"]
    said: dict[str, Any] = {"type": "function", "name": name}
    said |= {"description": function["description"]} if "description" in function else {}
    said["parameters"] = function.get("parameters") or {"type": "object", "properties": {}}
    if like is None:
        return {**said, "strict": False}
    said |= {"strict": like["strict"]} if "strict" in like else {}
    order = [key for key in like if key in said]
    return _lenient({**{key: said[key] for key in order}, **said})


def _write_tool(tool: dict[str, Any], wire: Mapping[str, Any], name: str) -> dict[str, Any]:
    raw, function = wire["tool"], tool["function"]
    was = _read_tool(raw, wire.get("namespace") or {})["function"]
    out = {**raw, "name": name}
    if function.get("description") != was.get("description"):
        out["description"] = function.get("description")
    schema = function.get("parameters")
    if schema == was.get("parameters"):
        return out
    if raw["type"] == "custom":
        out = {key: value for key, value in out.items() if key != "format"}
        return {**out, "type": "function", "parameters": schema, "strict": False}
    return _lenient({**out, "parameters": schema})


def _lenient(tool: dict[str, Any]) -> dict[str, Any]:
    """Strict schemas require every parameter; one with new optional ones is strict no more."""
    schema = tool.get("parameters") or {}
    named, required = schema.get("properties") or {}, schema.get("required") or []
    whole = isinstance(named, dict) and isinstance(required, list)
    if not tool.get("strict") or (whole and all(name in required for name in named)):
        return tool
    return {**tool, "strict": False}


# -- the choice of a tool ----------------------------------------------------------------------


def _read_choice(choice: Any) -> Any:
    """A choice in the form of chat completions; one of another kind stays as it is."""
    if not isinstance(choice, dict):
        return choice
    if choice.get("type") == "allowed_tools" and isinstance(choice.get("tools"), list):
        inner = {**choice, "tools": [_read_choice(tool) for tool in choice["tools"]]}
        return {"type": "allowed_tools", "allowed_tools": _without(inner, "type")}
    if choice.get("type") in ("function", "custom") and isinstance(choice.get("name"), str):
        return {"type": "function", "function": _without(choice, "type")}
    return choice


def _write_choice(choice: Any, places: Mapping[str, Place]) -> Any:
    if not isinstance(choice, dict):
        return choice
    allowed, function = choice.get("allowed_tools"), choice.get("function")
    if isinstance(allowed, dict):
        tools = [_write_choice(tool, places) for tool in allowed.get("tools") or ()]
        return {"type": "allowed_tools", **allowed, "tools": tools}
    if not isinstance(function, dict):
        return choice
    name = str(function.get("name"))
    custom = name in places and places[name].custom
    return {"type": "custom" if custom else "function", **function}


def _without(holder: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in holder.items() if name != key}
