"""Formats of data: recognised by content, read, and written without loss."""

from __future__ import annotations

import ast
import json
import re
from typing import Any

import msgspec
import pytest
from conversations import openai, question
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from toolshift.data.augment import Recipe, augmented, converted
from toolshift.data.conversation import (
    Call,
    Conversation,
    Message,
    RowFault,
    portable,
    told,
    turns_of,
)
from toolshift.data.formats import FORMATS, recognised
from toolshift.data.formats.schemas import as_json_schema
from toolshift.data.formats.toolace import read_calls
from toolshift.data.replay import check

CALL = "{'name': 'g', 'arguments': {'x': 1}}"
RESULT = '{"name": "g", "content": [1]}'
BROKEN = {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{x"}}]}
SEEDS = st.integers(0, 10**6)


def said(conversation: Conversation) -> list[tuple[Any, ...]]:
    """What is said and called, without the marks of a format."""
    return [
        (m.role, _plain(m.text), [(c.name, c.arguments) for c in m.calls])
        for m in portable(conversation).messages
    ]


def _plain(text: str) -> str:
    """A text; JSON without its spaces."""
    try:
        return msgspec.json.encode(msgspec.json.decode(text)).decode()
    except msgspec.DecodeError:
        return text


def functions(conversation: Conversation) -> list[dict[str, Any]]:
    return [tool.function for tool in conversation.tools]


@settings(max_examples=500, deadline=None)
@given(SEEDS)
def test_a_row_is_written_as_it_was_read(seed: int) -> None:
    for make, name in ((openai, "openai"), (question, "xlam")):
        row = make(seed)
        form = recognised(row)
        assert form.name == name
        written = form.write(form.read(row), row)
        assert form.read(written) == form.read(row)
        assert set(written) == set(row)
        if name == "openai":
            assert written == row


@pytest.mark.parametrize("name", ["hermes", "sharegpt", "toolace"])
@settings(max_examples=500, deadline=None)
@given(SEEDS)
def test_another_format_says_the_same_and_back(name: str, seed: int) -> None:
    form, source = FORMATS.find(name), FORMATS.find("openai")
    before = source.read(openai(seed))
    row = form.write(before, None)
    assert recognised(row) is form
    again = form.read(json.loads(json.dumps(row)))
    assert said(again) == said(before)
    assert functions(again) == functions(before)
    assert form.read(form.write(again, row)) == again, "written over itself"
    back = source.read(source.write(portable(again), None))
    assert said(back) == said(again)
    assert functions(back) == functions(before)


@settings(max_examples=100, deadline=None)
@given(SEEDS)
def test_the_agent_data_protocol_says_calls_one_by_one(seed: int) -> None:
    before = FORMATS.find("openai").read(openai(seed))
    form = FORMATS.find("adp")
    row = form.write(before, None)
    assert recognised(row) is form
    again = form.read(row)
    calls = [(c.name, c.arguments) for m in before.messages for c in m.calls]
    assert [(c.name, c.arguments) for m in again.messages for c in m.calls] == calls
    assert functions(again) == functions(before)
    assert [m.role for m in again.messages if m.role != "assistant"] == [
        m.role for m in before.messages if m.role != "assistant"
    ]


def test_turns_of_function_calls_are_sharegpt() -> None:
    row = {
        "conversations": [
            {"from": "human", "value": "Weather?"},
            {
                "from": "function_call",
                "value": '{"name": "weather", "arguments": {"city": "Oslo"}}',
            },
            {"from": "observation", "value": "rain"},
            {"from": "gpt", "value": "Rain."},
        ],
        "tools": json.dumps([{"name": "weather", "description": "", "parameters": {}}]),
    }
    form = recognised(row)
    assert form.name == "sharegpt"
    read = form.read(row)
    assert read.messages[1].calls[0].arguments == {"city": "Oslo"}
    assert form.write(read, row)["conversations"][2:] == row["conversations"][2:]


def test_tools_one_a_line_and_python_literals_are_hermes() -> None:
    lines = '<tools>\n{"name": "f", "parameters": {}}\n{"name": "g", "parameters": {}}\n</tools>'
    row = {
        "conversations": [
            {"from": "system", "value": f"You have tools.\n{lines}\nUse them."},
            {"from": "human", "value": "Go."},
            {
                "from": "gpt",
                "value": "<tool_call>\n{'name': 'g', 'arguments': {'x': 1}}\n</tool_call>",
            },
            {
                "from": "tool",
                "value": '<tool_response>\n{"name": "g", "content": [1]}\n</tool_response>',
            },
        ]
    }
    form = recognised(row)
    read = form.read(row)
    assert [tool.function["name"] for tool in read.tools] == ["f", "g"]
    assert read.messages[2].calls[0].arguments == {"x": 1}
    assert (read.messages[3].name, read.messages[3].text) == ("g", "[1]")
    system = form.write(read, row)["conversations"][0]["value"]
    assert system.startswith("You have tools.\n<tools>\n{")
    assert system.endswith("\n</tools>\nUse them.")


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("[f(x=['say true', true])]", [("f", {"x": ["say true", True]})]),
        ('[Get Price(item="tea, green", n=2)]', [("Get Price", {"item": "tea, green", "n": 2})]),
        (
            "[a.b(x=[1, 2], y={'k': true}), c()]",
            [("a.b", {"x": [1, 2], "y": {"k": True}}), ("c", {})],
        ),
        ('[f(text="say \\"hi\\" (now)")]', [("f", {"text": 'say "hi" (now)'})]),
        ("I cannot do that.", []),
        ("[see (1) and (2)]", []),
    ],
)
def test_calls_of_toolace(text: str, calls: list[tuple[str, dict[str, Any]]]) -> None:
    assert [(c.name, c.arguments) for c in read_calls(text, [])] == calls


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"prompt": "x"}, "no known format has these columns: prompt"),
        ({"messages": [{"role": "king"}]}, "message 0 has the unknown role 'king'"),
        ({"messages": [BROKEN]}, "the arguments of f: not JSON"),
        ({"conversations": [{"from": "human", "value": 1}], "tools": "[]"}, "turn 0 has no text"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_said(row: dict[str, Any], why: str) -> None:
    with pytest.raises(RowFault, match=why):
        recognised(row).read(row)


# -- which result is of which call -----------------------------------------------------------------

TWO = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
    for name in ("get", "get_order")
]


def called_at_once() -> dict[str, Any]:
    """Two calls in one message, whose results come in the other order."""
    calls = [
        {
            "id": f"c{n}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps({"q": name})},
        }
        for n, name in enumerate(("get", "get_order"))
    ]
    results = [
        {"role": "tool", "tool_call_id": f"c{n}", "content": json.dumps({"r": name})}
        for n, name in ((1, "get_order"), (0, "get"))
    ]
    said = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": None, "tool_calls": calls},
        *results,
        {"role": "assistant", "content": "Done."},
    ]
    return {"messages": said, "tools": TWO}


PAIRS = [("get", {"q": "get"}, {"r": "get"}), ("get_order", {"q": "get_order"}, {"r": "get_order"})]


@pytest.mark.parametrize("name", ["hermes", "sharegpt", "toolace", "adp"])
def test_results_in_another_order_stay_with_their_calls(name: str) -> None:
    source, form = FORMATS.find("openai"), FORMATS.find(name)
    row = converted(called_at_once(), source, form)
    assert told(form.read(row))[1:3] == PAIRS
    back = converted(row, form, source)
    assert told(source.read(back))[1:3] == PAIRS
    assert [said["role"] for said in back["messages"] if said["role"] != "system"] == [
        "user", "assistant", "tool", "tool", "assistant",
    ]  # fmt: skip
    calls = [call["id"] for said in back["messages"] for call in said.get("tool_calls") or ()]
    assert len({*calls}) == 2
    assert {*calls} == {s["tool_call_id"] for s in back["messages"] if s["role"] == "tool"}


def test_actions_at_once_without_ids_have_their_results_in_their_order() -> None:
    form = FORMATS.find("adp")
    row = converted(called_at_once(), FORMATS.find("openai"), form)
    results = [item for item in row["content"] if item.get("source") == "environment"]
    row["content"][3:5] = reversed(results)
    for item in row["content"]:
        item.pop("tool_call_id", None)
    assert told(form.read(row))[1:3] == PAIRS


@pytest.mark.parametrize("entry", ["EFP", "midway", "graph"])
def test_a_message_of_calls_that_is_divided_keeps_the_ids_of_each(entry: str) -> None:
    divided = 0
    for seed in range(6):
        row = called_at_once()
        made = augmented(row, json.dumps(row).encode(), Recipe(1.0, (entry,), seed=seed))
        for each in made.rows:
            said = each["messages"]
            calls = [call["id"] for one in said for call in one.get("tool_calls") or ()]
            answered = [one["tool_call_id"] for one in said if one["role"] == "tool"]
            assert sorted(calls) == sorted({*answered})
            divided += sum(len(one.get("tool_calls") or ()) == 1 for one in said) > 1
    assert divided


# -- what looks like something else ----------------------------------------------------------------

TEXTS = st.one_of(
    st.sampled_from([
        "", "get the order", "[get(x=1)]", "<tool_call>", "</tool_call> x", "<tools>[]</tools>",
        '[{"a": 1}]', '{"name":"get","arguments":{}}', "שלום get עולם", "\u202eabc", "a\\u0041b",
        "'quote\" \\", "\u2028", "</tool_response>", '{"order": "get_order"}', "null", "say true",
        "<tool_call>\n{'name': 'get', 'arguments': {}}\n</tool_call>",
    ]),
    st.text(max_size=12),
)  # fmt: skip
VALUES = st.recursive(
    TEXTS | st.integers(-(2**53), 2**53) | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=4,
)


@st.composite
def adversarial(draw: st.DrawFn) -> dict[str, Any]:
    names = draw(st.lists(st.sampled_from(["get", "get_order", "a.b", "日本", "x"]), min_size=1))
    said: list[dict[str, Any]] = [{"role": "user", "content": draw(TEXTS)}]
    for turn in range(draw(st.integers(1, 2))):
        calls, results = [], []
        for n in range(draw(st.integers(1, 3))):
            given = draw(st.dictionaries(st.sampled_from(["q", "order", "名"]), VALUES, max_size=3))
            inner = {"name": draw(st.sampled_from(names)), "arguments": json.dumps(given)}
            calls.append({"id": f"c{turn}{n}", "type": "function", "function": inner})
            content = draw(TEXTS | VALUES.map(json.dumps))
            results.append({"role": "tool", "tool_call_id": f"c{turn}{n}", "content": content})
        text = draw(st.none() | TEXTS)
        said.append({"role": "assistant", "content": text, "tool_calls": calls})
        said += [*draw(st.permutations(results)), {"role": "assistant", "content": draw(TEXTS)}]
    tools = [
        {"type": "function", "function": {"name": name, "description": draw(TEXTS)}}
        for name in dict.fromkeys(names)
    ]
    return {"messages": said, "tools": tools}


WITH_RESULTS = ["hermes", "sharegpt", "toolace", "adp"]


@pytest.mark.parametrize("name", WITH_RESULTS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(adversarial(), st.sampled_from(WITH_RESULTS))
def test_what_is_converted_says_the_same_or_is_refused(
    name: str, row: dict[str, Any], next_name: str
) -> None:
    source, form, following = map(FORMATS.find, ("openai", name, next_name))
    said = told(source.read(row))
    try:
        there = json.loads(json.dumps(converted(row, source, form)))
        further = json.loads(json.dumps(converted(there, form, following)))
        back = json.loads(json.dumps(converted(further, following, source)))
    except RowFault:
        assume(False)
    assert recognised(there) is form
    assert told(form.read(there)) == said
    assert told(following.read(further)) == said
    assert told(source.read(back)) == said
    assert form.read(form.write(form.read(there), there)) == form.read(there)


def test_most_of_what_is_odd_can_be_said() -> None:
    row = called_at_once()
    row["messages"][1]["content"] = "I call get and </tool_call>."
    row["messages"][2]["content"] = "</tool_response> \u202eשלום"
    row["tools"][0]["function"]["description"] = "Reads <tools> and [get(x=1)]."
    source = FORMATS.find("openai")
    for name in ("hermes", "sharegpt", "toolace", "adp"):
        form = FORMATS.find(name)
        assert told(form.read(converted(row, source, form))) == told(source.read(row))


# -- as data sets have it --------------------------------------------------------------------------


def test_the_usual_prompt_of_hermes_speaks_of_tags_before_it_lists_tools() -> None:
    function = {
        "name": "look_up",
        "description": "Looks up.",
        "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}},
    }
    listed = json.dumps([{"type": "function", "function": function}])
    prompt = (
        "You are provided with function signatures within <tools> </tools> XML tags. "
        f"Here are the available tools:<tools> {listed} </tools>For each call return\n"
        "<tool_call>\n{'arguments': <args-dict>, 'name': <function-name>}\n</tool_call>"
    )
    call = '<tool_call>\n{"arguments":{"x":1},"name":"look_up"}\n</tool_call>'
    turns = [("system", prompt), ("human", "What are <tools>[]</tools>?"), ("gpt", call)]
    row = {"conversations": [{"from": who, "value": value} for who, value in turns]}
    form = recognised(row)
    read = form.read(row)
    assert (form.name, functions(read)) == ("hermes", [function])
    assert form.read(form.write(read, row)) == read
    assert form.write(read, row)["conversations"][1:] == row["conversations"][1:]
    made = augmented(row, b"1", Recipe(1.0, ("identity_erasure:3",)))
    (after,) = made.rows
    now = form.read(after)
    (name,) = (tool.function["name"] for tool in now.tools)
    assert name != "look_up"
    assert now.messages[-1].calls[0].name == name
    assert after["conversations"][0]["value"].startswith(prompt.partition("Here are")[0])
    assert after["conversations"][1] == row["conversations"][1]
    assert after["conversations"][2]["value"].startswith('<tool_call>\n{"arguments"')


def test_results_that_say_their_tool_go_to_it_and_an_unknown_id_to_none() -> None:
    def paired(*results: Message, ids: bool = False) -> list[str] | None:
        calls = (Call("f", {}, "1" if ids else ""), Call("g", {}, "2" if ids else ""))
        turns = turns_of([Message("assistant", calls=calls), *results])
        return None if turns is None else [each.text if each else "" for each in turns[0][1]]

    f, g = Message("tool", "of f", name="f"), Message("tool", "of g", name="g")
    assert paired(g, f) == ["of f", "of g"]
    assert paired(g) == ["", "of g"]
    assert paired(g, Message("tool", "first")) == ["first", "of g"]
    other = Message("tool", "second", name="h")
    assert paired(Message("tool", "first"), other) == ["first", "second"]
    assert paired(Message("tool", "lost", call_id="zzz"), ids=True) is None
    assert paired(Message("tool", "of g", call_id="2"), f, ids=True) == ["of f", "of g"]


LEVEL = {"type": "string", "description": "How loud.", "enum": ["low", "high"]}
TAKES = {
    "type": "object",
    "properties": {"level": LEVEL, "count": {"type": "integer", "description": "How often."}},
    "required": ["level", "count"],
}
IN_WORDS = json.loads(
    json.dumps(TAKES)
    .replace('"object"', '"dict"')
    .replace('"integer"', '"int"')
    .replace('"string"', '"str"')
)
RING = {"level": "low", "count": 2}


def ringing(name: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """A row of a format that calls one tool, with these parameters."""
    listed = [{"name": "ring", "description": "Rings.", "parameters": parameters}]
    if name == "xlam":
        calls = [{"name": "ring", "arguments": RING}]
        return {"query": "Ring.", "tools": json.dumps(listed), "answers": json.dumps(calls)}
    said = [("user", "Ring."), ("assistant", '[ring(level="low", count=2)]')]
    turns = [{"from": who, "value": value} for who, value in said]
    return {"system": f"You ring. {json.dumps(listed)} Do.", "conversations": turns}


def listed_in(row: dict[str, Any]) -> list[dict[str, Any]]:
    """The tools of such a row, as they are written."""
    text = row["tools"] if "tools" in row else row["system"]
    begin, end = text.index("[{"), text.rindex("]") + 1
    found: list[dict[str, Any]] = json.loads(text[begin:end])
    return found


SHIFTS = ["enum_change", "type_change", "schema_noise", "parameter_rename"]


@pytest.mark.parametrize("name", ["xlam", "toolace"])
@pytest.mark.parametrize("shift", SHIFTS)
@pytest.mark.parametrize("parameters", [TAKES, IN_WORDS], ids=["json", "words"])
def test_what_a_shift_does_to_a_schema_is_written(
    name: str, shift: str, parameters: dict[str, Any]
) -> None:
    """In the words of the row; and the calls fit what is written."""
    row = ringing(name, parameters)
    form = recognised(row)
    before = form.read(row)
    for severity in (1, 2, 3):
        (after,) = augmented(row, b"1", Recipe(1.0, (f"{shift}:{severity}",))).rows
        now = form.read(after)
        check(now)
        (tool,) = listed_in(after)
        assert as_json_schema(tool["parameters"]) == now.tools[0].function["parameters"]
        words = {json.dumps(LEVEL["type"]), '"integer"', '"boolean"', '"array"', '"object"'}
        others = {'"str"', '"int"', '"bool"', '"list"', '"dict"'}
        written = set(re.findall(r'(?<="type": )"\w+"', json.dumps(tool)))
        assert not written & (others if parameters is TAKES else words - {'"boolean"', '"array"'})
        openai_row = converted(row, form, FORMATS.find("openai"))
        (same,) = augmented(openai_row, b"1", Recipe(1.0, (f"{shift}:{severity}",))).rows
        assert functions(now) == [one["function"] for one in same["tools"]]
    assert form.write(before, row) == row


def test_a_parameter_in_words_of_python_has_what_is_said_of_it() -> None:
    parameters = {
        "count": {"type": "int", "description": "How often."},
        "end": {"type": "str, optional", "description": "When.", "default": "", "format": "date"},
    }
    row = ringing("xlam", parameters)
    row["answers"] = json.dumps([{"name": "ring", "arguments": {"count": 2}}])
    (after,) = augmented(row, b"1", Recipe(1.0, ("type_change:1",))).rows
    (tool,) = listed_in(after)
    assert tool["parameters"]["count"]["type"] == "str"
    assert tool["parameters"]["end"] == parameters["end"]
    assert json.loads(after["answers"])[0]["arguments"] == {"count": "2"}
    (after,) = augmented(row, b"1", Recipe(1.0, ("schema_noise:3",))).rows
    (tool,) = listed_in(after)
    noise = tool["parameters"]["verbose"]
    assert (noise["type"], noise["default"]) == ("bool, optional", False)
    assert {name: tool["parameters"][name] for name in parameters} == parameters


def test_the_system_text_of_toolace_is_a_message() -> None:
    """It follows a renaming, and is not lost on the way to another format."""
    row = ringing("toolace", TAKES)
    row["system"] = row["system"].replace("You ring.", "You ring with `ring`, as ring(count=2).")
    form = FORMATS.find("toolace")
    for shift in ("identity_erasure:3", "parameter_rename:3"):
        (after,) = augmented(row, b"1", Recipe(1.0, (shift,))).rows
        (tool,) = listed_in(after)
        count = list(tool["parameters"]["properties"])[1]
        name = tool["name"]
        assert name != "ring" or count != "count"
        assert after["system"].startswith(f"You ring with `{name}`, as {name}({count}=2). [{{")
        assert after["system"].endswith("}] Do.")
    for target in ("openai", "hermes", "sharegpt", "adp"):
        there = converted(row, form, FORMATS.find(target))
        first = FORMATS.find(target).read(there).messages[0]
        assert first.role == "system"
        assert first.text.startswith("You ring with `ring`, as ring(count=2).  Do.")
    back = converted(converted(row, form, FORMATS.find("openai")), FORMATS.find("openai"), form)
    assert said(form.read(back))[0][1] == "You ring with `ring`, as ring(count=2).  Do."
    bare = {**row, "system": f"\n{json.dumps(listed_in(row))}\n"}
    assert form.write(form.read(bare), bare) == bare
    assert [m.role for m in form.read(bare).messages] == ["user", "assistant"]


@pytest.mark.parametrize("parameters", [TAKES, IN_WORDS], ids=["json", "words"])
def test_a_call_of_toolace_is_one_of_python(parameters: dict[str, Any]) -> None:
    """Names with dots, which a migration gives, are objects in the calls and in the schema."""
    row = ringing("toolace", parameters)
    listed = json.dumps([*listed_in(row), {**listed_in(row)[0], "name": "stop"}])
    rung = {"from": "tool", "value": '[{"name": "ring", "results": {"ok": true}}]'}
    stop = {"from": "assistant", "value": '[stop(level="high", count=1)]'}
    row["system"] = f"You ring. {listed}"
    row["conversations"] += [rung, stop, json.loads(json.dumps(rung).replace("ring", "stop"))]
    form = FORMATS.find("toolace")
    made = augmented(row, b"1", Recipe(1.0, ("tool_migrated:3",))).rows
    for each in made:
        check(form.read(each))
    value = made[-1]["conversations"][-2]["value"]
    (call,) = ast.parse(value, mode="eval").body.elts  # type: ignore[attr-defined]
    given = {one.arg: ast.literal_eval(one.value) for one in call.keywords}
    assert read_calls(value, []) == (Call(ast.unparse(call.func), given),)
    assert (list(given), list(given["request"].values())) == (["request"], ["high", 1])
    (tool,) = (one for one in listed_in(made[-1]) if one["name"] == ast.unparse(call.func))
    (whole,) = tool["parameters"]["properties"].values()
    assert whole["type"] == parameters["type"]
    assert whole["required"] == list(whole["properties"]) == list(given["request"])
    dotted = '[ring(request.level="low", count=2)]'  # as rows of others may have it
    assert read_calls(dotted, [])[0].arguments == {"request.level": "low", "count": 2}


def test_what_comes_from_the_agent_data_protocol_lists_its_tools_once() -> None:
    """Those of `details` are of the row before the shift."""
    row = FORMATS.find("adp").write(FORMATS.find("openai").read(openai(3)), None)
    row["details"]["from"] = "prod"
    recipe = Recipe(alpha=1.0, shifts=("identity_erasure:3",), to="openai")
    (shifted,) = augmented(row, b"row", recipe).rows
    assert shifted["toolshift"]
    assert shifted["details"] == {"from": "prod"}
    del row["details"]["from"]
    assert "details" not in converted(row, FORMATS.find("adp"), FORMATS.find("openai"))
    own = {**openai(3), "details": {"tools": "hammer"}}
    made = converted(own, FORMATS.find("openai"), FORMATS.find("sharegpt"))
    assert made["details"] == {"tools": "hammer"}, "a column of that name in another format"
