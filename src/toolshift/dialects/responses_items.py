"""Items of OpenAI's Responses, read as messages of the one form and written back.

What the model says in one turn is one message, whatever items it came in: thoughts, texts and
calls, in their order. The items stand in the message's field `wire`; an item goes back as it came
where the message still says what was read from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from toolshift.core.values import as_json, as_list
from toolshift.dialects.form import WIRE, Message, texts_now

NAME = "responses"
Item = dict[str, Any]
CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
"""The kinds of items that call a tool of the agent's, and where each has what it says."""
RESULTS = {"function_call_output": "function_call", "custom_tool_call_output": "custom_tool_call"}
"""The kinds of items that answer a call, and the kind of that call."""
SETTINGS = ("configuration_update",)
"""The kinds of items that set something for the answers after them, and say nothing."""
_TEXTS = ("input_text", "output_text", "text", "summary_text", "reasoning_text")


# -- names of tools ----------------------------------------------------------------------------


class Place(NamedTuple):
    """How a tool is named and called.

    Attributes:
        name: inside of its namespace.
        namespace: "" where it is in none.
        custom: whether it takes a free text, and no arguments.
    """

    name: str
    namespace: str = ""
    custom: bool = False


Places = Mapping[str, Place]
"""For the one name of a tool in the form of chat completions, how Responses have it."""


def joined(namespace: object, name: object) -> str:
    """The one name of a tool in a namespace."""
    return f"{prefix_of(namespace)}{name}" if namespace else str(name or "")


def prefix_of(namespace: object) -> str:
    """What stands before the names of the tools in a namespace."""
    return f"{namespace}" if str(namespace).endswith("__") else f"{namespace}__"


def places_of(listed: object) -> dict[str, Place]:
    """The tools of a request, by their one name."""
    found: dict[str, Place] = {}
    for tool in as_list(listed):
        if not isinstance(tool, dict):
            continue
        if tool.get("type") == "namespace":
            inner = places_of(tool.get("tools"))
            space = str(tool.get("name"))
            found |= {joined(space, name): p._replace(namespace=space) for name, p in inner.items()}
        elif isinstance(tool.get("name"), str):
            found[tool["name"]] = Place(tool["name"], custom=tool.get("type") == "custom")
    return found


# -- reading -----------------------------------------------------------------------------------


def read_items(items: Iterable[Any]) -> list[Message]:
    """The messages that items make up."""
    messages: list[Message] = []
    spoken: list[Item] = []
    for item in items:
        if not isinstance(item, dict):
            raise ValueError("an item of the input is no JSON object")
        if _is_spoken(item):
            spoken.append(item)
            continue
        messages += [read_spoken(spoken)] if spoken else []
        spoken = []
        messages.append(_read_result(item) if item.get("type") in RESULTS else _read_said(item))
    return [*messages, read_spoken(spoken)] if spoken else messages


def _is_spoken(item: Item) -> bool:
    """Whether it is of the model; what is of no known kind is kept beside what the model says."""
    said = item.get("type", "message") == "message"
    other = item.get("type") not in (*RESULTS, *SETTINGS)
    return item.get("role") == "assistant" if said else other


def read_spoken(items: Sequence[Item]) -> Message:
    """What the model said in one turn, as a message of the assistant."""
    texts, refusals, calls = list[str](), list[str](), list[dict[str, Any]]()
    for item in items:
        kind = item.get("type", "message")
        if kind in CALLS:
            calls.append(_read_call(item))
        elif kind == "message":
            parts = _parts_of(item.get("content"))
            texts += [part["text"] for part in parts if _is_text(part)]
            refusals += [str(p.get("refusal")) for p in parts if p.get("type") == "refusal"]
    message: Message = {"role": "assistant", "content": "".join(texts) or None}
    message |= {"refusal": "".join(refusals)} if refusals else {}
    message |= {"tool_calls": calls} if calls else {}
    return {**message, WIRE: {"dialect": NAME, "items": list(items)}}


def _read_call(item: Item) -> dict[str, Any]:
    name = joined(item.get("namespace"), item.get("name"))
    if item["type"] == "custom_tool_call":
        arguments: Any = as_json({"input": item.get("input")})
    else:
        arguments = item.get("arguments")
    function = {"name": name, "arguments": arguments}
    return {"id": str(item.get("call_id") or ""), "type": "function", "function": function}


def _read_result(item: Item) -> Message:
    """The result of a call; pictures and files beside its texts stay in the item."""
    texts = [part["text"] for part in _parts_of(item.get("output")) if _is_text(part)]
    message: Message = {"role": "tool", "tool_call_id": str(item.get("call_id") or "")}
    message |= {"name": joined(item.get("namespace"), item["name"])} if item.get("name") else {}
    return {**message, "content": "".join(texts), WIRE: {"dialect": NAME, "items": [item]}}


def _read_said(item: Item) -> Message:
    """A message of the user or the system; settings are the system's, without a word."""
    parts = _parts_of(item.get("content"))
    plain = all(map(_is_text, parts))
    content: Any = "".join(part["text"] for part in parts) if plain else [*map(_as_chat, parts)]
    role = str(item.get("role") or "system")
    return {"role": role, "content": content, WIRE: {"dialect": NAME, "items": [item]}}


def _parts_of(content: object) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def _is_text(part: Mapping[str, Any]) -> bool:
    return part.get("type") in _TEXTS and isinstance(part.get("text"), str)


def _as_chat(part: dict[str, Any]) -> dict[str, Any]:
    """A part of a user's message as chat completions have it."""
    if _is_text(part):
        return {"type": "text", "text": part["text"]}
    if part.get("type") == "input_image" and part.get("image_url"):
        return {"type": "image_url", "image_url": {"url": part["image_url"]}}
    return part


def _as_part(part: Any) -> dict[str, Any]:
    """The same the other way, for messages that were never items."""
    kind = part.get("type") if isinstance(part, dict) else None
    if kind == "text":
        return {"type": "input_text", "text": part["text"]}
    if kind == "image_url":
        return {"type": "input_image", "image_url": part["image_url"]["url"], "detail": "auto"}
    return part if isinstance(part, dict) else {"type": "input_text", "text": str(part)}


# -- writing -----------------------------------------------------------------------------------


def write_items(
    messages: Iterable[Message], places: Places, context: Iterable[Message] = ()
) -> list[Item]:
    """Messages as items, calls as their tools are on offer; `context` is what was said before."""
    kinds: dict[str, Item] = {}
    for _ in _written(context, places, kinds):
        pass
    return list(_written(messages, places, kinds))


def _written(messages: Iterable[Message], places: Places, calls: dict[str, Item]) -> Iterator[Item]:
    for message in messages:
        if message.get("role") == "tool":
            yield _write_result(message, calls.get(str(message.get("tool_call_id"))))
        elif message.get("role") == "assistant":
            came = wire_of(message)
            for item in write_spoken(message, places):
                if item.get("type") in CALLS and item not in came:  # its result says it, too
                    calls[str(item.get("call_id") or "")] = item
                yield item
        else:
            yield _write_said(message)


def wire_of(message: Mapping[str, Any]) -> list[Item]:
    """The items that a message was read from; none where it was never items."""
    wire = message.get(WIRE)
    known = isinstance(wire, dict) and wire.get("dialect") == NAME
    return list(wire.get("items") or ()) if known and isinstance(wire, dict) else []


def write_spoken(message: Message, places: Places) -> list[Item]:
    """A message of the assistant as items."""
    items = wire_of(message)
    was = read_spoken(items)
    calls = message.get("tool_calls") or []
    text = _text_of(message)
    if text != (_text_of(was) or was.get("refusal", "")) or not items:
        before = texts_of(message)
        texts = texts_now(message, before)
        told = [now for now, was in zip(texts, before, strict=True) if was] if before else []
        items = _with_texts(items, texts) if told and all(told) else _with_text(items, text)
    written = write_calls(items, calls, places)
    kept = [item for item in written[: len(items)] if item is not None]
    return [*kept, *(item for item in written[len(items) :] if item is not None)]


def _text_of(message: Message) -> str:
    content = message.get("content") or message.get("refusal") or ""
    return content if isinstance(content, str) else "".join(map(_loose_text, content))


def _loose_text(part: Any) -> str:
    found = (part.get("text") or part.get("refusal")) if isinstance(part, dict) else part
    return found if isinstance(found, str) else ""


def texts_of(message: Message) -> list[str]:
    """What a message of the assistant was read from, part by part."""
    said = [item for item in wire_of(message) if item.get("type", "message") == "message"]
    return [part["text"] for item in said for part in _parts_of(item.get("content"))
            if _is_text(part)]  # fmt: skip


def _with_texts(items: Sequence[Item], texts: Sequence[str]) -> list[Item]:
    """Items whose parts say other texts, as many as there are."""
    now = iter(texts)
    return [
        {**item, "content": _with_parts(item.get("content"), now)}
        if item.get("type", "message") == "message"
        else item
        for item in items
    ]


def _with_parts(content: object, now: Iterator[str]) -> object:
    if isinstance(content, str):
        return next(now)
    return [
        {**part, "text": next(now)} if isinstance(part, dict) and _is_text(part) else part
        for part in as_list(content)
    ]


def _with_text(items: Sequence[Item], text: str) -> list[Item]:
    """Items that say another text; what else they hold stays in its place."""
    said = [n for n, item in enumerate(items) if item.get("type", "message") == "message"]
    kept = [item for n, item in enumerate(items) if n not in said[1:]]
    if said and text:
        item = items[said[0]]
        part = next((p for p in _parts_of(item.get("content")) if _is_text(p)), {})
        told = {"type": "output_text", "annotations": [], **part, "text": text}
        content = text if isinstance(item.get("content"), str) else [told]
        kept[said[0]] = {**item, "content": content}
    elif said:
        del kept[said[0]]
    elif text:
        place = next((n for n, item in enumerate(kept) if item.get("type") in CALLS), len(kept))
        kept.insert(place, {"role": "assistant", "content": text})
    return kept


def write_calls(
    items: Sequence[Item], calls: Sequence[dict[str, Any]], places: Places
) -> list[Item | None]:
    """Items with the calls of a message in them.

    As many as `items`, with None for a call that the message has no more; then the calls that the
    message has and no item.
    """
    waiting = list(calls)
    found: list[Item | None] = []
    ids = {str(item.get("call_id") or "") for item in items if item.get("type") in CALLS}
    if ids.isdisjoint(str(call.get("id") or "") for call in calls):  # given other ones: by place
        others = iter(calls)
        items = [
            {**item, "call_id": call["id"]}
            if item.get("type") in CALLS and (call := next(others, None)) and call.get("id")
            else item
            for item in items
        ]
    for item in items:
        if item.get("type") not in CALLS:
            found.append(item)
            continue
        call_id = str(item.get("call_id") or "")
        call = next((c for c in waiting if str(c.get("id") or "") == call_id), None)
        if call is not None:
            waiting.remove(call)
        found.append(call and _write_call(call, item, places))
    return [*found, *(_write_call(call, {}, places) for call in waiting)]


def _write_call(call: dict[str, Any], item: Item, places: Places) -> Item:
    function = call.get("function") or {}
    name, said = str(function.get("name") or ""), function.get("arguments")
    was = _read_call(item)["function"] if item else {}
    place = places.get(name)
    if place is None:  # a tool that is not on offer, as in a history of other times
        custom = item.get("type") == "custom_tool_call"
        as_it_was = Place(str(item.get("name") or ""), str(item.get("namespace") or ""), custom)
        place = as_it_was if item and was["name"] == name else Place(name, custom=custom)
    kind = "custom_tool_call" if place.custom else "function_call"
    head = {"type": kind, "call_id": call.get("id") or ""}
    if item and item["type"] != kind:  # ids of calls begin with their kind
        own = {key: item[key] for key in ("status",) if key in item}
        item = {**own, "id": f"{'ctc' if place.custom else 'fc'}_{head['call_id']}"}
        was = {}
    out = {**item} if item else head
    out |= {} if item and "call_id" in item else head
    out["name"] = place.name
    if place.namespace:
        out["namespace"] = place.namespace
    elif out.get("namespace"):
        del out["namespace"]
    if not was or not _same_json(said, was.get("arguments")):
        out[CALLS[kind]] = _free_text(said) if place.custom else _as_text(said)
    return out


def _same_json(one: Any, other: Any) -> bool:
    if one == other:
        return True
    try:
        read = [
            msgspec.json.decode(text) if isinstance(text, str) else text for text in (one, other)
        ]
    except (ValueError, RecursionError):
        return False
    return bool(read[0] == read[1] and isinstance(read[0], dict))


def _as_text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else as_json(arguments or {})


def _free_text(arguments: Any) -> str:
    """What a custom tool is told; it has one parameter, which takes the text."""
    try:
        given = msgspec.json.decode(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        return str(arguments)
    text = given.get("input") if isinstance(given, dict) else None
    return text if isinstance(text, str) else _as_text(arguments)


def _write_result(message: Message, call: Item | None) -> Item:
    items = wire_of(message)
    item = dict(items[0]) if items else {}
    kind = next((k for k, of in RESULTS.items() if call and of == call.get("type")), None)
    kind = kind or item.get("type") or "function_call_output"
    content = message.get("content")
    if not item:
        parts = [*map(_as_part, content)] if isinstance(content, list) else content or ""
        return {"type": kind, "call_id": message.get("tool_call_id") or "", "output": parts}
    item["type"] = kind
    if _read_result(item)["content"] != content:
        item["output"] = _other_text(item.get("output"), str(content or ""))
    if item.get("name") and call:
        item |= {"name": call.get("name")}
        item.pop("namespace", None)
        item |= {"namespace": call["namespace"]} if call.get("namespace") else {}
    return item


def _other_text(output: Any, text: str) -> Any:
    """An output with another text; pictures and files stay, and the parts that say the same."""
    if not isinstance(output, list):
        return text
    places = [n for n, part in enumerate(output) if isinstance(part, dict) and _is_text(part)]
    while len(places) > 1 and text.startswith(output[places[0]]["text"]):
        text = text.removeprefix(output[places.pop(0)]["text"])
    while len(places) > 1 and text.endswith(output[places[-1]]["text"]):
        text = text.removesuffix(output[places.pop()]["text"])
    if not places:
        return [{"type": "input_text", "text": text}, *output]
    told = {**output[places[0]], "text": text}
    return [
        told if n == places[0] else part for n, part in enumerate(output) if n not in places[1:]
    ]


def _write_said(message: Message) -> Item:
    items = wire_of(message)
    content = message.get("content")
    if items and _read_said(items[0])["content"] == content:
        return items[0]
    said = [*map(_as_part, content)] if isinstance(content, list) else content or ""
    return {**(items[0] if items else {}), "role": message.get("role"), "content": said}
