"""Reads what a model wrote: a reply in text, with the calls that stand in it.

Our own layout is `name(city="Lyon", n=3)` (`lm.prompt`); calls as other models and templates write
them are read as well. No text makes it fail: what is plainly meant as a call and cannot be read is
a malformed call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from toolshift.core.calls import (
    Call,
    MalformedCall,
    ToolCall,
    malformed_call,
    read_call,
)
from toolshift.core.message import Reply
from toolshift.lm.prompt import BARE, Layout
from toolshift.reading.harmony import for_the_user, messages_of
from toolshift.reading.text import without_thoughts

_DECODER = json.JSONDecoder(strict=False)
_LITERALS: dict[str, Any] = {"True": True, "False": False, "None": None}
_LITERAL = re.compile(r"(True|False|None)\b")
_SINGLE_QUOTED = re.compile(r"'((?:[^'\\\n]|\\.)*)'")
_FENCE = re.compile(r"^```[\w-]*\n(.*?)\n?```$", re.DOTALL)
_FENCED_JSON = re.compile(r"^```[\w-]*[ \t]*\n\s*([\[{].*?)\n?```", re.DOTALL | re.MULTILINE)
_NAMED = re.compile(r"\"name\"\s*:\s*\"([^\"\n]*)\"")
_GIVES = re.compile(r"\"(?:arguments|parameters)\"\s*:")
_OF_A_CALL = frozenset(("name", "id", "type", "arguments", "parameters"))
_TAGGED = re.compile(
    r"(?:<tool_call>|<function_calls?>|<\|tool_call\|>|\[TOOL_CALLS\]|<\|python_tag\|>|"
    r"\bfunctools(?=\[)|"
    r"<\|tool_calls_section_begin\|>|<\uff5ctool\u2581calls\u2581begin\uff5c>)"
    r"(.*?)(?:</tool_call>|</function_calls?>|<\|/tool_call\|>|(?=\[TOOL_CALLS\])|"
    r"<\|eo[mt]_id\|>|</s>|<\|end\|>|$)",
    re.DOTALL,
)
"""The marks by which templates (Qwen, Hermes, Mistral, Llama, Granite, Phi, Kimi, DeepSeek) and
Claude set calls apart."""
_FUNCTION_TAG = re.compile(r"<function=([\w.\-/:$]+)>\s*(\{.*?)(?:</function>|$)", re.DOTALL)
"""A call of Llama, with its arguments as JSON."""
_NAME_FIRST = re.compile(r"\A([\w.-]+)\[ARGS\](\{.*)", re.DOTALL)
"""A call of newer templates of Mistral."""
_OPENING = re.compile(r"(\w[\w.\-/:$]*)\((.*)", re.DOTALL)
_ACTION = re.compile(r"[*_ \t]*(?:action|tool|(?:tool |function )?call)[*_ \t]*:[*_ \t]*(.*)", re.I)
_ACTION_INPUT = re.compile(
    r"^[*_ \t]{0,9}action[*_ \t]{0,9}:[*_ \t]{0,9}`?([\w.\-/:$]{1,200})`?[*_ \t]{0,9}\n{1,3}"
    r"[*_ \t]{0,9}action input[*_ \t]{0,9}:[*_ \t]{0,9}(?:```(?:json)?\s{0,9})?(.*)",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
"""A call of ReAct, with its arguments as JSON."""
_OBSERVES = re.compile(r"^[*_ \t]*(?:observation|final answer)[*_ \t]*:", re.I | re.M)
_NO_RESULT_YET = re.compile(r"\n[*_ \t]*observation[*_ \t]*:\s*\Z", re.IGNORECASE)
_NAME_KEYS = ("name", "tool", "tool_name", "action")
_VALUE_KEYS = (
    "arguments", "parameters", "args", "input", "action_input", "tool_input", "tool_arguments",
    "params",
)  # fmt: skip
_AROUND = ("tool_calls", "function_call", "tool_call")
_BULLET = re.compile(r"(?:[-*\u2022]|\d{1,2}[.)])[ \t]+")


class _Malformed(ValueError):
    """The text does not follow the call syntax."""


def parse_reply(
    text: str, layout: Layout = "description-first", tools: Collection[str] = ()
) -> Reply:
    """Reads what a model wrote; no text makes it fail.

    Thoughts (`<think>...</think>`, and all but the channel `final` of Harmony) are left out. Read
    as calls, in this order: a text that is nothing but well-formed calls, in lines or in JSON;
    Harmony's messages to a tool; what stands in `<tool_call>` tags or
    behind another template's mark of calls, malformed or not; a JSON object, alone or in a fence,
    with a name and arguments; lines that are well-formed calls, the lines beside them being the
    text; where the name is that of a tool on offer, JSON under other keys, `Action: f(a="x")`,
    `Action: f` with `Action Input: {...}`, lines that are a list of calls `[f(a="x"), g()]`, and a
    message that is nothing but bullets of calls; one message that opens like a call but is
    malformed, which becomes a `MalformedCall`. Anything else is prose. With the layout
    `spaced-texts` the space before a text is taken off.
    """
    reply = _read(text, tools)
    if layout != "spaced-texts":
        return reply
    return Reply(text=reply.text, calls=tuple(map(_unspaced, reply.calls)))


def _unspaced(call: Call) -> Call:
    if isinstance(call, MalformedCall):
        return call
    return ToolCall(
        call.name,
        {k: v.removeprefix(" ") if isinstance(v, str) else v for k, v in call.arguments.items()},
    )


def has_marked_call(text: str) -> bool:
    """Whether a text has a call behind a template's mark, which a server should have read."""
    return any(one.to for one in messages_of(text)) or bool(_tagged_calls(without_thoughts(text)))


def names_of(tools: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    """The names of tools in the OpenAI format."""
    return frozenset(str(tool.get("function", tool).get("name")) for tool in tools)


def _read(text: str, tools: Collection[str]) -> Reply:
    stripped = text.strip()
    calls = _nothing_but_calls(stripped)
    if calls:
        return Reply(calls=calls)
    sent = [one for one in messages_of(stripped) if one.to]
    if sent:
        return Reply(calls=tuple(read_call(one.to, one.text, text=one.text) for one in sent))
    body = without_thoughts(for_the_user(stripped)).strip()
    fenced = _FENCE.match(body)
    body = fenced.group(1).strip() if fenced else body
    calls = _tagged_calls(body) or _json_calls(body)
    if calls:
        return Reply(calls=calls)
    lines = [(line, _well_formed(line.strip())) for line in body.split("\n")]
    calls = tuple(call for _, call in lines if call)
    if calls:
        prose = "\n".join(line for line, call in lines if not call)
        return Reply(text=prose.strip(), calls=calls)
    reply = _offered_calls(body, tools) if tools else None
    over_lines = _well_formed(body)
    if over_lines and not reply:
        return Reply(calls=(over_lines,))
    malformed = None if reply else _malformed(body)
    return reply or (Reply(calls=(malformed,)) if malformed else Reply(text=stripped))


def _nothing_but_calls(text: str) -> tuple[Call, ...]:
    """The calls of a text that has nothing else: what stands in their values is no mark of any."""
    if text.startswith(("{", "[")):
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            return ()
        return _json_calls(text)
    calls: list[Call] = []
    for line in filter(None, map(str.strip, text.split("\n"))):
        call = _well_formed(line)
        if not call:
            return ()
        calls.append(call)
    return tuple(calls)


def _offered_calls(body: str, tools: Collection[str]) -> Reply | None:
    """Calls that only the names on offer tell from prose; None for a text with results beside."""
    body = _NO_RESULT_YET.sub("", body)
    if _OBSERVES.search(body):  # it has made up what came of its calls, or recounts them
        return None
    action = _ACTION_INPUT.search(body)
    if action and action[1] in tools:
        call = _with_input(action[1], action[2])
        return Reply(text=body[: action.start()].strip(), calls=(call,))
    calls = _offered_json(body, tools)
    if calls:
        return Reply(calls=calls)
    lines = body.split("\n")
    found = [(line, _calls_of_line(line.strip(), tools)) for line in lines]
    calls = tuple(call for _, several in found for call in several)
    if calls:
        prose = "\n".join(line for line, several in found if not several)
        return Reply(text=prose.strip(), calls=calls)
    items = [_BULLET.sub("", line.strip(), count=1).strip("`*; ") for line in lines if line.strip()]
    bullets = [call for call in map(_well_formed, items) if call and call.name in tools]
    return Reply(calls=tuple(bullets)) if bullets and len(bullets) == len(items) else None


def _offered_json(body: str, tools: Collection[str]) -> tuple[Call, ...]:
    """Calls in JSON under other keys, alone or in a fence among prose."""
    pieces = [body] if body.startswith(("{", "[")) else _FENCED_JSON.findall(body)
    calls: list[Call] = []
    for piece in pieces:
        try:
            data = json.loads(piece)
        except (ValueError, RecursionError):
            continue
        data = next((data[key] for key in _AROUND if key in data), data)
        listed = data if isinstance(data, list) else [data]
        read = [_under_other_keys(one, tools) for one in listed]
        calls += [call for call in read if call] if all(read) else []
    return tuple(calls)


def _under_other_keys(item: Any, tools: Collection[str]) -> Call | None:
    """A call of a tool on offer: `{"tool": "f", "args": {...}}`, `{"f": {...}}`; else None."""
    item = item.get("function", item) if isinstance(item, dict) else None
    if not isinstance(item, dict):
        return None
    name = next((item[key] for key in _NAME_KEYS if isinstance(item.get(key), str)), "")
    given = next((item[key] for key in _VALUE_KEYS if key in item), None)
    if len(item) == 1 and not name:
        ((name, given),) = item.items()
    if name not in tools or not isinstance(given, dict | str):
        return None
    return read_call(name, given, text=given if isinstance(given, str) else "")


def _with_input(name: str, given: str) -> Call:
    """A call of ReAct; its arguments end where the JSON does."""
    try:
        value, _ = _DECODER.raw_decode(given)
    except (ValueError, RecursionError):
        return malformed_call(name, given)
    return read_call(name, value, text=given)


def _calls_of_line(line: str, tools: Collection[str]) -> list[Call]:
    """The calls of a line that is marked as an action, or is a list of calls."""
    action = _ACTION.fullmatch(line)
    piece = action[1].strip("`* ") if action else line
    one = (_well_formed(piece) or _malformed(piece)) if action else None
    calls = [one] if one else _listed_calls(piece)
    return calls if all(call.name in tools for call in calls) else []


def _listed_calls(line: str) -> list[Call]:
    """The calls of a list as Python has it: `[f(a="x"), g()]`."""
    calls: list[Call] = []
    position = 1
    if not (line.startswith("[") and line.endswith(")]")):
        return []
    try:
        while position < len(line):
            name, start = _read_label(line, _skip(line, position))
            arguments, end = _read_arguments(line, _expect(line, start, "("))
            calls.append(read_call(name, arguments, text=line[start + 1 : end - 1]))
            end = _skip(line, end)
            if line[end:] == "]":
                return calls
            position = _expect(line, end, ",")
    except _Malformed:
        pass
    return []


def _tagged_calls(body: str) -> tuple[Call, ...]:
    """What stands behind a mark of calls and has a bracket, so that it is no mere word."""
    calls: list[Call] = []
    for said in map(str.strip, _TAGGED.findall(body)):
        piece = _NAME_FIRST.sub(r'{"name": "\1", "arguments": \2}', said)
        line = _well_formed(piece)
        if line or re.search(r"[{(<]", piece):
            named = _NAMED.search(piece)
            broken = malformed_call(named[1] if named else "", piece)
            calls += [line] if line else _calls_of(piece) or [broken]
    if not calls:
        calls += [read_call(name, text, text=text) for name, text in _FUNCTION_TAG.findall(body)]
    return tuple(calls)


def _json_calls(body: str) -> tuple[Call, ...]:
    """Calls spelled as JSON objects, a habit of many chat models; in fences too, among prose."""
    if body.startswith(("{", "[")):
        lines = [line for line in body.split("\n") if line.strip()]
        each = [_calls_of(line) for line in lines] if all(map(_GIVES.search, lines)) else []
        if len(each) > 1 and all(each):  # one a line
            return tuple(call for calls in each for call in calls)
        return tuple(_calls_of(body))
    fenced = (piece for piece in _FENCED_JSON.findall(body) if _GIVES.search(piece))
    return tuple(call for piece in fenced for call in _calls_of(piece))


def _calls_of(piece: str) -> list[Call]:
    """The calls of a piece of JSON; none where any of it is no call, such as a record."""
    try:
        value = json.loads(piece)
    except (ValueError, RecursionError):
        return []
    calls: list[Call] = []
    for item in value if isinstance(value, list) else [value]:
        function = item.get("function", item) if isinstance(item, dict) else None
        name = function.get("name") if isinstance(function, dict) else None
        if not isinstance(function, dict) or not isinstance(name, str):
            return []
        raw = function.get("arguments", function.get("parameters"))
        if raw is None and function.keys() - _OF_A_CALL:
            return []
        if raw is not None and not isinstance(raw, str | dict):
            return []
        calls.append(read_call(name, raw, text=raw if isinstance(raw, str) else piece))
    return calls


def _well_formed(line: str) -> Call | None:
    try:
        name, start = _read_label(line, 0)
        arguments, end = _read_arguments(line, _expect(line, start, "("))
    except _Malformed:
        return None
    return read_call(name, arguments, text=line[start + 1 : -1]) if end == len(line) else None


def _malformed(body: str) -> MalformedCall | None:
    """A call that cannot be read: an opening `name(`, then an argument or the end of a call."""
    opening = _OPENING.match(body)
    if opening is None:
        return None
    name, rest = opening.groups()
    if rest.rstrip().endswith(")"):
        return malformed_call(name, rest.rstrip()[:-1])
    # Without the closing bracket (the reply was cut off) only an argument tells it from prose.
    return malformed_call(name, rest) if re.match(r"\s*[\w\"'.\-]+=", rest) else None


def _read_arguments(line: str, position: int) -> tuple[dict[str, Any], int]:
    """Reads `key=value, ...)`; returns the arguments and the position after the bracket."""
    arguments: dict[str, Any] = {}
    position = _skip(line, position)
    if line[position : position + 1] == ")":
        return arguments, position + 1
    while True:
        key, position = _read_label(line, _skip(line, position))
        position = _skip(line, _expect(line, _skip(line, position), "="))
        arguments[key], position = _read_value(line, position)
        position = _skip(line, position)
        if line[position : position + 1] == ")":
            return arguments, position + 1
        position = _expect(line, position, ",")


def _read_label(line: str, position: int) -> tuple[str, int]:
    bare = BARE.match(line, position)
    if bare:
        return bare.group(), bare.end()
    if line[position : position + 1] != '"':
        raise _Malformed
    value, end = _read_value(line, position)
    return str(value), end


def _read_value(line: str, position: int) -> tuple[Any, int]:
    """Reads JSON, or Python's spelling of a literal, which chat models mix in."""
    literal = _LITERAL.match(line, position)
    if literal:
        return _LITERALS[literal.group()], literal.end()
    quoted = _SINGLE_QUOTED.match(line, position)
    if quoted:
        return re.sub(r"\\(.)", r"\1", quoted.group(1)), quoted.end()
    try:
        return _DECODER.raw_decode(line, position)
    except (ValueError, RecursionError) as error:
        raise _Malformed from error


def _expect(line: str, position: int, mark: str) -> int:
    if line[position : position + 1] != mark:
        raise _Malformed
    return position + 1


def _skip(line: str, position: int) -> int:
    while line[position : position + 1] in (" ", "\n", "\t"):
        position += 1
    return position
