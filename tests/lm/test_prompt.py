"""The text protocol: what is written can be read, and nothing that is read makes it fail."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolshift.core.calls import MalformedCall, ToolCall
from toolshift.core.errors import UsageError
from toolshift.core.message import PROTOCOL_TOOLS, Reply, Turn
from toolshift.lm.parse_reply import parse_reply
from toolshift.lm.prompt import LAYOUTS, render_call, render_system, to_plain_messages

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def tool(name="search", description="Find places.", properties=None, required=()):
    schema = {"type": "object", "properties": properties or {}, "required": list(required)}
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": schema},
    }


def signature(properties, required=()):
    return render_system("", [tool(properties=properties, required=required)]).splitlines()[-1]


@given(st.text(min_size=1, max_size=200), st.dictionaries(st.text(), JSON_VALUES, max_size=4))
def test_a_rendered_call_is_read_back_as_it_was(name, arguments):
    for layout in LAYOUTS:
        read = parse_reply(render_call(name, arguments, layout), layout)
        assert read == Reply(calls=(ToolCall(name, arguments),))


@given(st.text())
def test_no_text_makes_reading_fail(text):
    assert isinstance(parse_reply(text), Reply)


@given(st.text(alphabet="f(a=\"x\\,){}[]=1 \n'", max_size=40))
def test_no_text_that_looks_like_a_call_makes_reading_fail(text):
    assert isinstance(parse_reply(text), Reply)


@pytest.mark.parametrize("opening", ["[", '{"a":', "f(a=["])
def test_deep_nesting_is_not_an_error(opening):
    assert isinstance(parse_reply(opening * 100_000), Reply)


@pytest.mark.parametrize(
    "text",
    [
        'f(a="x", n=3)',
        "  f( a = 'x' , n=3 )\n",
        '```python\nf(a="x", n=3)\n```',
        '{"name": "f", "arguments": {"a": "x", "n": 3}}',
        '{"name": "f", "parameters": {"a": "x", "n": 3}}',
        '<tool_call>\n{"name": "f", "arguments": {"a": "x", "n": 3}}\n</tool_call>',
        '{"function": {"name": "f", "arguments": "{\\"a\\":\\"x\\",\\"n\\":3}"}}',
    ],
)
def test_the_spellings_of_a_call(text):
    assert parse_reply(text) == Reply(calls=(ToolCall("f", {"a": "x", "n": 3}),))


def test_python_literals_are_values():
    call = ToolCall("f", {"a": True, "b": None, "c": "it's"})
    assert parse_reply("f(a=True, b=None, c='it\\'s')").calls == (call,)


def test_calls_among_prose_are_calls_and_the_rest_is_text():
    reply = parse_reply("I look first.\nf(a=1)\ng()\nThen I answer.")
    assert reply.calls == (ToolCall("f", {"a": 1}), ToolCall("g", {}))
    assert reply.text == "I look first.\nThen I answer."


@pytest.mark.parametrize(
    ("text", "arguments"),
    [('f("x")', '"x"'), ('f(a="x"', 'a="x"'), ("f(a=)", "a="), ("f(a=x y)", "a=x y")],
)
def test_a_malformed_call_keeps_its_arguments_as_text(text, arguments):
    assert parse_reply(text) == Reply(calls=(MalformedCall("f", arguments),))


@pytest.mark.parametrize("text", ["", "Hello.", "The place (a cafe) is open.", "I(think) so.", "{"])
def test_prose_stays_prose(text):
    assert parse_reply(text) == Reply(text=text)


def test_types_enums_and_options_stand_in_the_signature():
    properties = {
        "city": {"type": "string"},
        "kind": {"enum": ["cafe", "park"]},
        "n": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "near": {"type": "object", "properties": {"lat": {"type": "number"}}, "required": ["lat"]},
        "mode": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    }
    assert signature(properties, ["city", "kind"]) == (
        'Find places: search(city, kind="cafe"|"park", n=integer?, tags=[string]?, '
        "near={lat=number}?, mode=string|null?)"
    )


def test_the_layouts_of_one_tool():
    one = [tool("a-b", "Find\nplaces.", {"x": {"description": "Town."}}, ["x"])]
    lines = {layout: render_system("Hi.", one, layout).splitlines()[-1] for layout in LAYOUTS}
    assert lines["description-first"] == "Find places: a-b(Town: x=any)"
    assert lines["name-first"] == "a-b(x=any: Town): Find places."
    assert json.loads(lines["json"])["parameters"]["required"] == ["x"]
    assert lines["spaced"] == lines["description-first"]


def test_a_spaced_call_begins_with_a_space_and_is_read_all_the_same():
    plain, spaced = (to_plain_messages(conversation(), layout) for layout in (LAYOUTS[0], "spaced"))
    assert [m["role"] for m in plain] == [m["role"] for m in spaced]
    for one, other in zip(plain, spaced, strict=True):
        calls = parse_reply(one["content"]).calls if one["role"] == "assistant" else ()
        if calls:
            assert other["content"] == f" {one['content']}"
            assert parse_reply(other["content"]).calls == calls
        else:
            assert other == one
    assert any(m["content"].startswith(" ") for m in spaced)


def test_spaced_texts_have_a_space_where_they_begin_with_a_word():
    arguments = {"city": "Lyon", "id": "PL-27", "code": "P5", "kept": " x", "n": 3}
    said = render_call("find", arguments, "spaced-texts")
    assert said == ' find(city=" Lyon", id="PL-27", code="P5", kept="  x", n=3)'
    assert parse_reply(said, "spaced-texts").calls == (ToolCall("find", arguments),)
    assert parse_reply(said).calls[0].arguments["city"] == " Lyon", "only in that layout"


def test_a_parameter_description_goes_only_where_it_says_nothing_new():
    described = {"type": "string", "description": "The city to search."}
    assert signature({"search_city": described}, ["search_city"]).endswith("search(search_city)")
    assert signature({"qx": described}, ["qx"]).endswith("search(The city to search: qx)")


def test_no_tools_leave_the_system_message_alone():
    assert render_system("Hi.", []) == "Hi."


def test_an_unknown_layout_is_named():
    with pytest.raises(UsageError, match="sideways"):
        render_system("", [], "sideways")


def conversation():
    call = {"function": {"name": "search", "arguments": '{"city":"Lyon"}'}}
    return Turn(
        [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Find a cafe."},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "content": '{"id":7}'},
            {"role": "user", "content": "Never mind."},
        ],
        PROTOCOL_TOOLS,
    )


def test_a_conversation_with_a_tool_role():
    messages = to_plain_messages(conversation(), tool_role="tool")
    assert messages[0]["content"].startswith("Be brief.\n")
    assert messages[2:4] == [
        {"role": "assistant", "content": 'search(city="Lyon")'},
        {"role": "tool", "content": '{"id":7}'},
    ]


def test_without_a_tool_role_the_roles_alternate():
    messages = to_plain_messages(conversation())
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user"]
    assert messages[-1]["content"] == 'Result: {"id":7}\nNever mind.'


def test_malformed_arguments_of_an_earlier_call_stand_as_they_came():
    call = {"function": {"name": "f", "arguments": "a="}}
    turn = Turn([{"role": "assistant", "content": None, "tool_calls": [call]}], [])
    assert to_plain_messages(turn) == [{"role": "assistant", "content": "f(a=)"}]


@pytest.mark.parametrize(
    "text",
    [
        '<think>\nMaybe:\nf(a="y")\n</think>\nf(a="x")',
        'I could call it.\nf(a="y")\n</think>\n\nf(a="x")',
        '<think><tool_call>{"name": "g", "arguments": {}}</tool_call></think>'
        '<tool_call>{"name": "f", "arguments": {"a": "x"}}</tool_call>',
        'Let me look.\n\n```json\n{"name": "f", "arguments": {"a": "x"}}\n```\nOne moment.',
        '<tool_call>f(a="x")</tool_call>',
        '[TOOL_CALLS] [{"name": "f", "arguments": {"a": "x"}}]',
        'One moment. [TOOL_CALLS]f[ARGS]{"a": "x"}</s>',
        '<|python_tag|>{"name": "f", "parameters": {"a": "x"}}<|eom_id|>',
    ],
)
def test_thoughts_call_nothing_and_fenced_json_does(text):
    assert parse_reply(text).calls == (ToolCall("f", {"a": "x"}),)


def test_calls_behind_marks_of_their_own_are_all_read():
    text = '[TOOL_CALLS]f[ARGS]{"a": 1}[TOOL_CALLS]g[ARGS]{}'
    assert parse_reply(text).calls == (ToolCall("f", {"a": 1}), ToolCall("g", {}))


def test_a_thought_alone_is_prose_and_a_tag_among_values_stays():
    assert parse_reply('<think>\nf(a="y")') == Reply(text='<think>\nf(a="y")')
    assert parse_reply('f(a="<think>", b="</think>")').calls[0].arguments["b"] == "</think>"


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "Salted Sparrow", "city": "Kelmaar"}',
        '[{"name": "Dune", "copies": 4}]',
        '{"name": "Dune"}\n{"name": "Emma"}',
        'Here it is:\n```json\n{"name": "Dune"}\n```',
    ],
)
def test_a_record_with_a_name_is_no_call(text):
    assert parse_reply(text) == Reply(text=text)


@pytest.mark.parametrize(
    "piece",
    [
        "{'name': 'f', 'arguments': {'a': 'x'}}",
        '{"name": "f", "arguments": {"a": "x"}',
        '{"name": "f", "arguments": {"a": "x"}}}',
        '{"name": "f", "arguments": ["x"]}',
    ],
)
def test_what_stands_in_tags_and_cannot_be_read_is_a_malformed_call(piece):
    (call,) = parse_reply(f"I look.\n<tool_call>\n{piece}\n</tool_call>").calls
    assert call == MalformedCall("f", piece)


@pytest.mark.parametrize(
    "mark", ["<tool_call>(x", "<think>y</think>", "```f(b=1)```", "[TOOL_CALLS]["]
)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_mark_within_a_value_is_no_mark(mark, layout):
    calls = (ToolCall("f", {"a": mark, mark: 1}), ToolCall("g", {"b": [mark]}))
    lines = "\n".join(render_call(call.name, call.arguments, layout) for call in calls)
    assert parse_reply(lines, layout).calls == calls
    told = [{"name": call.name, "arguments": call.arguments} for call in calls]
    assert parse_reply(json.dumps(told)).calls == calls


CALLED = ToolCall("f", {"a": "x"})
ANALYSIS = '<|channel|>analysis<|message|>Maybe f(a="y").<|end|><|start|>assistant'


@pytest.mark.parametrize(
    "text",
    [
        ANALYSIS + '<|channel|>final<|message|>f(a="x")<|return|>',
        ANALYSIS + '<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"a":"x"}',
        ANALYSIS + ' to=functions.f<|channel|>commentary json<|message|>{"a":"x"}<|call|>',
        'I think f.<|end|><|start|>assistant<|channel|>final<|message|>f(a="x")',
        'analysisWe need f.assistantcommentary to=functions.f json{"a": "x"}',
        'analysisMaybe f(a="y").assistantfinalf(a="x")',
    ],
)
def test_harmony_is_read_by_its_channels(text):
    assert parse_reply(text).calls == (CALLED,)


def test_a_call_of_harmony_may_be_malformed_and_what_quotes_it_is_none():
    broken = ANALYSIS + "<|channel|>commentary to=functions.f<|message|>{a: x}<|call|>"
    assert parse_reply(broken).calls == (MalformedCall("f", "{a: x}"),)
    quoted = 'f(a="<|channel|>commentary to=functions.g<|message|>{}")'
    assert [call.name for call in parse_reply(quoted).calls] == ["f"]


@pytest.mark.parametrize(
    "text",
    [
        'Thought: I look first.\nAction: f(a="x")',
        'Thought: I look first.\n**Action:** `f(a="x")`\nObservation:',
        'Action: f\nAction Input: {"a": "x"}\nObservation:',
        '[f(a="x")]',
        '- f(a="x")',
        '1. `f(a="x")`',
        '{"tool": "f", "args": {"a": "x"}}',
        '{"action": "f", "action_input": {"a": "x"}}',
        '{"type": "tool_use", "name": "f", "input": {"a": "x"}}',
        '{"tool_calls": [{"function": {"name": "f", "arguments": "{\\"a\\": \\"x\\"}"}}]}',
        'One moment.\n```json\n{"f": {"a": "x"}}\n```',
    ],
)
def test_a_name_on_offer_tells_a_call_from_prose(text):
    assert parse_reply(text, tools=["f"]).calls == (CALLED,)
    assert not parse_reply(text, tools=["g"]).calls
    assert not parse_reply(text).calls


def test_a_list_of_calls_is_read_in_order_and_a_broken_action_is_told():
    calls = parse_reply('[f(a="x"), g(b=1)]', tools=["f", "g"]).calls
    assert calls == (CALLED, ToolCall("g", {"b": 1}))
    assert parse_reply('Action: f("x")', tools=["f"]).calls == (MalformedCall("f", '"x"'),)
    assert parse_reply("Action: f\nAction Input: x", tools="f").calls == (MalformedCall("f", "x"),)


@pytest.mark.parametrize(
    "text",
    [
        'Action: f(a="x")\nObservation: 4\nFinal Answer: 4',
        'I did this:\n- f(a="x")\nThe answer is 4.',
        "[4, 5]",
        "- Dune\n- Emma",
        "Action: none needed",
        '{"f": 4, "g": 5}',
        '[{"title": "Dune"}, {"title": "Emma"}]',
    ],
)
def test_what_recounts_calls_stays_prose(text):
    assert parse_reply(text, tools=["f"]) == Reply(text=text)


@pytest.mark.parametrize(
    "text",
    [
        '<function=f>{"a": "x"}</function>',
        '<function_call>{"name": "f", "arguments": {"a": "x"}}</function_call>',
        '<|tool_call|>[{"name": "f", "arguments": {"a": "x"}}]<|/tool_call|>',
        'functools[{"name": "f", "arguments": {"a": "x"}}]',
    ],
)
def test_marks_of_more_templates_set_calls_apart(text):
    assert parse_reply(text).calls == (CALLED,)


def test_calls_over_several_lines_and_one_a_line() -> None:
    assert parse_reply('f(\n  a="x",\n)') == Reply(calls=(MalformedCall("f", '\n  a="x",\n'),))
    assert parse_reply('f(\n  a="x"\n)').calls == (CALLED,)
    line = '{"name": "f", "arguments": {"a": "x"}}'
    assert parse_reply(f"{line}\n{line}").calls == (CALLED, CALLED)


def test_what_claude_writes_is_a_call() -> None:
    piece = '<invoke name="f"><parameter name="a">x</parameter></invoke>'
    assert parse_reply(f"<function_calls>{piece}</function_calls>").calls == (CALLED,)
