"""Reads what a model wrote: a reply in text, with the calls that stand in it.

Our own layout is `name(city="Lyon", n=3)` (`lm.prompt`); calls as other models and templates write
them are read as well. No text makes it fail: what is plainly meant as a call and cannot be read is
a malformed call.
"""

from __future__ import annotations

import json
import re
from ast import literal_eval
from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from typing import Any

from toolshift.core.calls import (
    Call,
    MalformedCall,
    ToolCall,
    is_json,
    malformed_call,
    read_call,
)
from toolshift.core.message import Reply
from toolshift.lm.call_texts.json_calls import NAME_KEYS, VALUE_KEYS, name_in
from toolshift.lm.call_texts.python_calls import listed_calls, malformed, well_formed
from toolshift.lm.call_texts.scan import Scan, scan, without_turn_end
from toolshift.lm.call_texts.tools import Tools
from toolshift.lm.prompt import Layout
from toolshift.reading.harmony import Message, for_the_user, messages_of
from toolshift.reading.text import without_thoughts

_DECODER = json.JSONDecoder(strict=False)
_FENCE = re.compile(r"^```[\w-]*\n(.*?)\n?```$", re.DOTALL)
_FENCED_JSON = re.compile(r"^```[\w-]*[ \t]*\n\s*([\[{].*?)\n?```", re.DOTALL | re.MULTILINE)
_GIVES = re.compile(r"\"(?:arguments|parameters)\"\s*:")
_OF_A_CALL = frozenset(("name", "id", "type", "arguments", "parameters"))
_ACTION = re.compile(r"[*_ \t]*(?:action|tool|(?:tool |function )?call)[*_ \t]*:[*_ \t]*(.*)", re.I)
_ACTION_INPUT = re.compile(
    r"^[*_ \t]{0,9}action[*_ \t]{0,9}:[*_ \t]{0,9}`?([\w.\-/:$]{1,200})`?[*_ \t]{0,9}\n{1,3}"
    r"[*_ \t]{0,9}action input[*_ \t]{0,9}:[*_ \t]{0,9}(?:```(?:json)?\s{0,9})?(.*)",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
"""A call of ReAct, with its arguments as JSON."""
_ACTION_ALONE = re.compile(
    r"^[*_ \t]{0,9}action[*_ \t]{0,9}:[*_ \t]{0,9}`?([\w.\-/:$]{1,200})`?[*_ \t]{0,9}"
    r"(\n?[^\n]{0,14})\Z",
    re.IGNORECASE | re.MULTILINE,
)
"""The same, without its arguments."""
_LIST_OPENING = re.compile(r"\A\[\s*(\w[\w.\-/:$]*)\((.*)\Z", re.DOTALL)
_DATA_BEGINS = re.compile(r"(?:^|[:>])[ \t]*(?=[\[{])", re.MULTILINE)
_LAST_MARK = re.compile(r"(?<!\s)\s*+(?:</[\w:.\-]{1,40}>|<\|[\w/]{1,40}\|>)\Z")
_LOOKS = re.compile(
    r"\"name\"\s{0,9}:\s{0,9}\"[^\"\n]{1,200}\"\s{0,9},\s{0,9}\"(?:arguments|parameters|args|input)\""
    r"|^(?:call:|functions\.)?\w+(?::\d+)?\{\s?\"?\w+\"?:|^function ?\w+\s?\n?```json"
    r"|\b\w+\(\s{0,9}\w+\s{0,9}=\s{0,9}[\"'\d\[{]"
    r"|^\W{0,9}action\W{0,9}:\W{0,9}\w+[\[(]|^\W{0,9}action input\W{0,9}:"
    r"|\b\w+_\w+\([\"']"
    # a tag of tools that gives a name, as an attribute or inside
    r"|^[ \t]{0,9}<\w{0,30}(?:tool|function|invoke|action)\w{0,30}"
    r"(?:\s[^<>\n]{0,99}\bname=|>\s{0,9}(?:<\w{1,40}>[^<>\n]{0,99}</\w{1,40}>\s{0,9}){0,3}<(?:\w{1,20}_)?name>)"
    # a name before an object, as words of a sentence are not
    r"|(?:^|[.=])\w+(?:_\w+)+[ \t]?(?:\[\w+\]|\n)?[ \t]?\{\s?\"",
    re.IGNORECASE | re.MULTILINE,
)
"""What most forms of calls have in common, where none of them is read."""
_IDENTIFIER = re.compile(r"[A-Za-z]\w*(?:[_.]\w+)+|[a-z]+(?:[A-Z][a-z]+)+")
"""A name as tools have it: of several parts, which a word or a value in prose has seldom."""
_MOST_KEYS = 5
"""A call has a name and values, and may have an id, a type and a thought."""
_MAY_CALL = re.compile(r"[(\[{<]|>>>|(?i:action input)")
_TRIES = 50
"""How many lines that begin like JSON are looked at."""
_OBSERVES = re.compile(r"^[*_ \t]*(?:observation|final answer)[*_ \t]*:", re.I | re.M)
_NO_RESULT_YET = re.compile(r"\n[*_ \t]*observation[*_ \t]*:\s*\Z", re.IGNORECASE)
_AROUND = ("tool_calls", "function_call", "tool_call")
_BULLET = re.compile(r"(?:[-*\u2022]|\d{1,2}[.)])[ \t]+")


def parse_reply(
    text: str,
    layout: Layout = "description-first",
    tools: Iterable[Mapping[str, Any] | str] = (),
) -> Reply:
    """Reads what a model wrote; no text makes it fail.

    `tools` are those on offer, in the OpenAI format, so that values without a type get that of
    their parameter; or their names alone. Thoughts (`<think>...</think>`, and all but the channel
    `final` of Harmony) are left out. Read as calls, in this order: a text that is nothing but
    well-formed calls, in lines or in JSON; Harmony's messages to a tool; what stands behind the
    mark of a template (`call_texts.table`), malformed or not, what stands beside it being the text;
    a JSON object, alone or in a fence, with a name and arguments; lines that are well-formed calls,
    the lines beside them being the text; where the name is that of a tool on offer, JSON under
    other keys or at the end of prose, `Action: f(a="x")`, `Action: f` with `Action Input: {...}`,
    lines that are a list of calls `[f(a="x"), g()]`, a message that is nothing but bullets of
    calls, and any of these cut off; one message that opens like a call but is malformed, which
    becomes a `MalformedCall`. Anything else is prose. With the layout `spaced-texts` the space
    before a text is taken off.
    """
    reply = _read(text, Tools(tools))
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
    return any(one.to for one in messages_of(text)) or bool(_marked(text.strip(), Tools()).calls)


def looks_like_call(text: str) -> bool:
    """Whether a text that counts as prose has what looks like a call, readable or not."""
    said = text.strip()
    if not _MAY_CALL.search(said):
        return False
    spoken = without_thoughts(for_the_user(said))
    if _LOOKS.search(spoken) or listed_calls(said) or _LIST_OPENING.match(said):
        return True
    if bool(parse_reply(said).calls) or _marked(said, Tools()).passed > 0:
        return True
    return any(map(_names_with_values, _values_in(spoken.strip())))


def _values_in(text: str) -> list[Any]:
    """The objects of a text that is data, as JSON or as Python prints it; none for other texts."""
    fenced = _FENCE.match(text)
    piece = fenced.group(1).strip() if fenced else text
    if not piece.startswith(("{", "[")):
        return []
    for read in (json.loads, literal_eval):
        try:
            value = read(piece)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        return value if isinstance(value, list) else [value]
    return []


def _names_with_values(item: Any) -> bool:
    """Whether an object has the form of a call under any keys: a name, and an object of values."""
    if not isinstance(item, dict) or len(item) > _MOST_KEYS:
        return False
    named = any(isinstance(v, str) and _IDENTIFIER.fullmatch(v) for v in item.values())
    return named and any(isinstance(v, dict) for v in item.values())


def _marked(text: str, tools: Tools) -> Scan:
    """The calls of a text behind marks."""
    return scan(for_the_user(text), tools)


def _read(text: str, tools: Tools) -> Reply:
    stripped = text.strip()
    calls = _nothing_but_calls(without_turn_end(stripped))
    if calls:
        return Reply(calls=calls)
    sent = [one for one in messages_of(stripped) if one.to]
    if sent:
        return Reply(calls=tuple(_sent(one) for one in sent))
    marked = _marked(stripped, tools)
    if marked.calls:
        return Reply(text=marked.prose, calls=marked.calls)
    body = without_turn_end(without_thoughts(for_the_user(stripped))).strip()
    fenced = _FENCE.match(body)
    body = fenced.group(1).strip() if fenced else body
    calls = _json_calls(body)
    if calls:
        return Reply(calls=calls)
    lines = [(line, well_formed(line.strip())) for line in body.split("\n")]
    calls = tuple(call for _, call in lines if call)
    if calls:
        prose = "\n".join(line for line, call in lines if not call)
        return Reply(text=prose.strip(), calls=calls)
    reply = _offered_calls(body, tools.names) if tools.names else None
    over_lines = well_formed(body)
    if over_lines and not reply:
        return Reply(calls=(over_lines,))
    broken = None if reply else malformed(body)
    return reply or (Reply(calls=(broken,)) if broken else Reply(text=stripped))


def _sent(message: Message) -> Call:
    """A message of Harmony to a tool; one that was cut off before its arguments is malformed."""
    if not message.text:
        return malformed_call(message.to, "")
    return read_call(message.to, message.text, text=message.text)


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
        call = well_formed(line)
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
    bullets = [call for call in map(well_formed, items) if call and call.name in tools]
    if bullets and len(bullets) == len(items):
        return Reply(calls=tuple(bullets))
    return _at_the_end(body, tools) or _cut_off(body, tools)


def _at_the_end(body: str, tools: Collection[str]) -> Reply | None:
    """Prose that ends with a call in JSON, on a line of its own or behind a colon or a tag."""
    whole = _LAST_MARK.sub("", body)
    for opening in islice(_DATA_BEGINS.finditer(whole), _TRIES):
        calls = _offered_json(whole[opening.end() :], tools)
        if calls:
            return Reply(text=whole[: opening.end()].strip(), calls=calls)
    return None


def _cut_off(body: str, tools: Collection[str]) -> Reply | None:
    """A call of a tool on offer that the text is cut off in."""
    action = _ACTION_ALONE.search(body)
    if action and action[1] in tools and "action input:".startswith(action[2].lower().strip()):
        return Reply(text=body[: action.start()].strip(), calls=(malformed_call(action[1], ""),))
    listed = _LIST_OPENING.match(body)
    if listed and listed[1] in tools:
        return Reply(calls=(malformed_call(listed[1], listed[2]),))
    name = name_in(body) if body.startswith(("{", "[")) else ""
    if name in tools and not is_json(body):
        return Reply(calls=(malformed_call(name, body),))
    return None


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
    name = next((item[key] for key in NAME_KEYS if isinstance(item.get(key), str)), "")
    given = next((item[key] for key in VALUE_KEYS if key in item), None)
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
    one = (well_formed(piece) or malformed(piece)) if action else None
    calls = [one] if one else listed_calls(piece)
    return calls if all(call.name in tools for call in calls) else []


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
