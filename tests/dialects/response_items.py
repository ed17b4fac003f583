"""Made-up requests and answers of OpenAI's Responses, with all that may stand in them."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

Body = dict[str, Any]
WORDS = st.text("abc é\n", max_size=8)
NAMES = st.sampled_from(("find", "book_table", "list-orders", "get"))
ARGUMENTS = st.sampled_from(('{"a": 1}', "{}", '{"a":1}', "{broken", "", '{"b":  [1.0, null]}'))
ODD = st.dictionaries(st.sampled_from(("x_new", "status", "phase")), WORDS, max_size=2)
"""Fields beside those that are read."""

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


def of(kind: str, **fields: Any) -> st.SearchStrategy[Body]:
    """Items of a kind, with fields that are not known beside its own."""
    known = st.fixed_dictionaries({"type": st.just(kind), **fields})
    return st.tuples(known, ODD).map(lambda both: {**both[1], **both[0]})


IDS = st.sampled_from(("c1", "c2", "c3"))
TEXT = st.fixed_dictionaries(
    {"type": st.just("output_text"), "text": WORDS, "annotations": st.just([])}
)
REFUSAL = st.fixed_dictionaries({"type": st.just("refusal"), "refusal": WORDS})
PICTURE = st.just({"type": "input_image", "image_url": "data:image/png;base64,AA", "detail": "low"})
HEARD = st.fixed_dictionaries({"type": st.just("input_text"), "text": WORDS})
THOUGHT = of(
    "reasoning",
    id=st.just("rs_1"),
    summary=st.lists(
        st.fixed_dictionaries({"type": st.just("summary_text"), "text": WORDS}), max_size=2
    ),
    encrypted_content=st.sampled_from((None, "gAAAA=", "")),
)
SAID = of("message", id=st.just("msg_1"), role=st.just("assistant"),
          content=st.lists(TEXT | REFUSAL, max_size=3))  # fmt: skip
CALL = of("function_call", id=st.just("fc_1"), call_id=IDS, name=NAMES, arguments=ARGUMENTS)
SPACED = of("function_call", call_id=IDS, namespace=st.just("crm"), name=NAMES, arguments=ARGUMENTS)
FREE = of("custom_tool_call", id=st.just("ctc_1"), call_id=IDS, name=st.just("patch"), input=WORDS)
OUTPUTS = st.lists(THOUGHT | SAID | CALL | SPACED | FREE | of("new_kind", data=WORDS), max_size=6)
"""What a model may say in one turn."""

RESULT = of(
    "function_call_output", call_id=IDS, output=WORDS | st.lists(HEARD | PICTURE, max_size=3)
)
FREE_RESULT = of("custom_tool_call_output", call_id=IDS, output=WORDS)
EASY = st.fixed_dictionaries(
    {"role": st.sampled_from(("user", "system", "developer", "assistant")), "content": WORDS}
)
ASKED = of("message", role=st.just("user"), content=st.lists(HEARD | PICTURE, max_size=3))
UPDATE = of("configuration_update", reasoning=st.just({"effort": "low"}))
INPUTS = st.lists(
    UPDATE | EASY | ASKED | THOUGHT | SAID | CALL | SPACED | FREE | RESULT | FREE_RESULT, max_size=9
)

FUNCTION = of("function", name=NAMES, description=WORDS, parameters=st.just(SCHEMA),
              strict=st.sampled_from((True, False, None)))  # fmt: skip
CUSTOM = st.just(
    {"type": "custom", "name": "patch", "description": "Edits.",
     "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"}}
)  # fmt: skip
SPACE = st.fixed_dictionaries(
    {"type": st.just("namespace"), "name": st.just("crm"), "description": WORDS,
     "tools": st.lists(FUNCTION, max_size=2, unique_by=lambda tool: tool["name"])}
)  # fmt: skip
TOOLS = st.lists(
    FUNCTION | CUSTOM | SPACE | st.just({"type": "web_search"}),
    max_size=4,
    unique_by=lambda tool: tool.get("name", tool["type"]),
)
CHOICES = st.sampled_from(
    (
        None, "auto", "required", "none", {"type": "function", "name": "find"},
        {"type": "custom", "name": "patch"}, {"type": "web_search"},
        {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "get"}]},
    )
)  # fmt: skip


@st.composite
def requests(draw: st.DrawFn) -> Body:
    """A request, its fields in any order."""
    body: Body = {"model": "m", "input": draw(INPUTS | WORDS)}
    for name, values in (
        ("instructions", WORDS | st.none()), ("tools", TOOLS), ("tool_choice", CHOICES),
        ("store", st.booleans()), ("previous_response_id", st.none() | st.just("resp_0")),
        ("x_vendor", WORDS), ("reasoning", st.just({"effort": "low", "summary": None})),
    ):  # fmt: skip
        if draw(st.booleans()):
            body[name] = draw(values)
    keys = draw(st.permutations(list(body)))
    return {key: body[key] for key in keys}


def response(output: list[Body], **fields: Any) -> Body:
    """A whole response."""
    usage = {"input_tokens": 900, "output_tokens": 5, "total_tokens": 905,
             "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0},
             "output_tokens_details": {"reasoning_tokens": 3}}  # fmt: skip
    head = {"id": "resp_1", "object": "response", "created_at": 0, "status": "completed",
            "model": "m", "error": None, "incomplete_details": None, "instructions": None,
            "parallel_tool_calls": True, "tools": [], "tool_choice": "auto"}  # fmt: skip
    return {**head, "output": output, "usage": usage, **fields}


def events(whole: Body, step: int = 3) -> list[Body]:
    """A response as OpenAI streams it, its texts in pieces."""
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    found: list[Body] = [
        {"type": f"response.{kind}", "response": begun} for kind in ("created", "in_progress")
    ]
    for place, item in enumerate(whole["output"]):
        found += _of_item(item, place, step)
    found.append({"type": f"response.{whole['status']}", "response": whole})
    return [{**event, "sequence_number": n} for n, event in enumerate(found)]


def _of_item(item: Body, place: int, step: int) -> list[Body]:
    where = {"item_id": item.get("id", ""), "output_index": place}
    key = {"function_call": "arguments", "custom_tool_call": "input"}.get(item["type"], "")
    bare = (
        {**item, key: ""} if key else {**item, "content": []} if item["type"] == "message" else item
    )
    found: list[Body] = [
        {
            "type": "response.output_item.added",
            "item": {**bare, "status": "in_progress"},
            "output_index": place,
        }
    ]
    if key:
        grown = "function_call_arguments" if key == "arguments" else "custom_tool_call_input"
        found += [
            {"type": f"response.{grown}.delta", **where, "delta": piece}
            for piece in pieces(item[key], step)
        ]
        found.append({"type": f"response.{grown}.done", **where, key: item[key]})
    for number, part in enumerate(item.get("content") or () if item["type"] == "message" else ()):
        here = {**where, "content_index": number}
        said, name = (
            ("text", "output_text") if part["type"] == "output_text" else ("refusal", "refusal")
        )
        logs = {"logprobs": []} if said == "text" else {}
        found.append({"type": "response.content_part.added", **here, "part": {**part, said: ""}})
        found += [
            {"type": f"response.{name}.delta", **here, **logs, "delta": piece}
            for piece in pieces(part[said], step)
        ]
        found.append({"type": f"response.{name}.done", **here, **logs, said: part[said]})
        found.append({"type": "response.content_part.done", **here, "part": part})
    return [*found, {"type": "response.output_item.done", "item": item, "output_index": place}]


def pieces(text: str, step: int) -> list[str]:
    return [text[n : n + step] for n in range(0, len(text), step)]


def framed(event: Body) -> str:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
