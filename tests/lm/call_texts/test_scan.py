"""Texts as models write them: what is a call, what is malformed, what only speaks of calls."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from toolshift.core.calls import MalformedCall, ToolCall
from toolshift.lm.parse_reply import has_marked_call, looks_like_call, parse_reply


def tool(name: str, **schemas: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": schemas}
    return {"type": "function", "function": {"name": name, "parameters": schema}}


STRING = {"type": "string"}
TOOLS = [
    tool("get_ticket", ticket_id=STRING),
    tool("list_tickets", limit={"type": "integer"}, open={"type": "boolean"}),
    tool("write_file", path=STRING, content=STRING),
    tool("final_answer", answer=STRING),
]
T31 = ToolCall("get_ticket", {"ticket_id": "T-31"})
T32 = ToolCall("get_ticket", {"ticket_id": "T-32"})
LIST = ToolCall("list_tickets", {"limit": 5, "open": True})
D = "\uff5cDSML\uff5c"
B, U = "\uff5c", "\u2581"


def read(text: str) -> list[Any]:
    calls = parse_reply(text, tools=TOOLS).calls
    return [ToolCall(c.name, c.arguments) if isinstance(c, ToolCall) else c for c in calls]


READ = {
    "Qwen3-Coder without its first tag": (
        "<function=get_ticket>\n<parameter=ticket_id>\nT-31\n</parameter>\n</function>\n</tool_call>",
        [T31],
    ),
    "Qwen3-Coder on one line": (
        "<tool_call><function=list_tickets><parameter=limit>5</parameter><parameter=open>True"
        "</parameter></function></tool_call>",
        [LIST],
    ),
    "Qwen3-Coder, two parameters left open": (
        "<tool_call>\n<function=list_tickets>\n<parameter=limit>\n5\n<parameter=open>\ntrue\n"
        "</function>\n</tool_call>",
        [LIST],
    ),
    "Qwen3-Coder, two functions in one tag": (
        "<tool_call>\n<function=get_ticket>\n<parameter=ticket_id>\nT-31\n</parameter>\n</function>\n"
        "<function=get_ticket>\n<parameter=ticket_id>\nT-32\n</parameter>\n</function>\n</tool_call>",
        [T31, T32],
    ),
    "Qwen3-Coder, a value that shows how to call": (
        "<tool_call>\n<function=write_file>\n<parameter=path>\na.md\n</parameter>\n"
        "<parameter=content>\nWrite:\n<tool_call>\n<function=f>\n<parameter=a>\nx\n</parameter>\n"
        "</function>\n</tool_call>\n\nso.\n</parameter>\n</function>\n</tool_call>",
        [
            ToolCall(
                "write_file",
                {
                    "path": "a.md",
                    "content": "Write:\n<tool_call>\n<function=f>\n<parameter=a>\nx\n</parameter>\n"
                    "</function>\n</tool_call>\n\nso.",
                },
            )
        ],
    ),
    "Seed-OSS": (
        "<seed:think>Maybe.</seed:think>\n<seed:tool_call>\n<function=get_ticket>\n"
        "<parameter=ticket_id>T-31</parameter>\n</function>\n</seed:tool_call>",
        [T31],
    ),
    "GLM 4.7, no line breaks": (
        "<tool_call>list_tickets<arg_key>limit</arg_key><arg_value>5</arg_value><arg_key>open"
        "</arg_key><arg_value>true</arg_value></tool_call>",
        [LIST],
    ),
    "GLM, a call without arguments": (
        "<tool_call>list_tickets\n</tool_call>",
        [ToolCall("list_tickets", {})],
    ),
    "Hunyuan 4, its suffix": (
        "<tool_calls:6124c78e><tool_call:6124c78e>get_ticket<tool_sep:6124c78e>"
        "<arg_key:6124c78e>ticket_id</arg_key:6124c78e><arg_value:6124c78e>T-31"
        "</arg_value:6124c78e></tool_call:6124c78e></tool_calls:6124c78e>",
        [T31],
    ),
    "LongCat": (
        "I look.<longcat_tool_call>get_ticket\n<longcat_arg_key>ticket_id</longcat_arg_key>\n"
        "<longcat_arg_value>T-31</longcat_arg_value>\n</longcat_tool_call>",
        [T31],
    ),
    "Kimi, two calls of one name": (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_ticket:0"
        '<|tool_call_argument_begin|>{"ticket_id": "T-31"}<|tool_call_end|><|tool_call_begin|>'
        'functions.get_ticket:1<|tool_call_argument_begin|>{"ticket_id": "T-32"}<|tool_call_end|>'
        "<|tool_calls_section_end|>",
        [T31, T32],
    ),
    "Kimi, neither section nor prefix": (
        '<|tool_call_begin|>get_ticket:3<|tool_call_argument_begin|>{"ticket_id": "T-31"}'
        "<|tool_call_end|>",
        [T31],
    ),
    "DeepSeek, its signs in ASCII": (
        "<|tool_calls_begin|><|tool_call_begin|>function<|tool_sep|>get_ticket\n```json\n"
        '{"ticket_id": "T-31"}\n```<|tool_call_end|><|tool_calls_end|><|end_of_sentence|>',
        [T31],
    ),
    "DeepSeek R1, two calls and an end": (
        f"<{B}tool{U}calls{U}begin{B}><{B}tool{U}call{U}begin{B}>function<{B}tool{U}sep{B}>"
        f'get_ticket\n```json\n{{"ticket_id": "T-31"}}\n```<{B}tool{U}call{U}end{B}>\n'
        f"<{B}tool{U}call{U}begin{B}>function<{B}tool{U}sep{B}>get_ticket\n"
        f'```json\n{{"ticket_id": "T-32"}}\n```'
        f"<{B}tool{U}call{U}end{B}><{B}tool{U}calls{U}end{B}><{B}end{U}of{U}sentence{B}>",
        [T31, T32],
    ),
    "DeepSeek V4": (
        f'<{D}tool_calls>\n<{D}invoke name="list_tickets">\n<{D}parameter name="limit" '
        f'string="false">5</{D}parameter>\n<{D}parameter name="open" string="false">true'
        f"</{D}parameter>\n</{D}invoke>\n</{D}tool_calls>",
        [LIST],
    ),
    "DeepSeek V4.1": (
        f'</think>\n\n<{D} calls>\n<{D} invoke name="get_ticket">\n<{D} parameter name="ticket_id" '
        f'string="true">T-31</{D} parameter>\n</{D} invoke>\n</{D} calls>',
        [T31],
    ),
    "DeepSeek V4, arguments in JSON": (
        f'<{D}tool_calls><{D}invoke name="get_ticket">{{"ticket_id": "T-31"}}</{D}invoke>'
        f"</{D}tool_calls>",
        [T31],
    ),
    "Claude without a wrapper": (
        '<invoke name="get_ticket">\n<parameter name="ticket_id">T-31</parameter>\n</invoke>',
        [T31],
    ),
    "Claude, two calls": (
        'I look.\n<function_calls>\n<invoke name="get_ticket">\n<parameter name="ticket_id">T-31'
        '</parameter>\n</invoke>\n<invoke name="get_ticket">\n<parameter name="ticket_id">T-32'
        "</parameter>\n</invoke>\n</function_calls>",
        [T31, T32],
    ),
    "Grok": (
        '<xai:function_call name="get_ticket">\n<parameter name="ticket_id">T-31</parameter>\n'
        "</xai:function_call>",
        [T31],
    ),
    "MiniMax M2, a value with tags": (
        '<minimax:tool_call>\n<invoke name="write_file">\n<parameter name="path">a</parameter>\n'
        '<parameter name="content"><p class="x">1 < 2</p>\n</parameter>\n</invoke>\n'
        "</minimax:tool_call>",
        [ToolCall("write_file", {"path": "a", "content": '<p class="x">1 < 2</p>\n'})],
    ),
    "Mistral, ids of calls": (
        '[TOOL_CALLS]get_ticket[CALL_ID]Ab3dE6gH9[ARGS]{"ticket_id": "T-31"}[TOOL_CALLS]get_ticket'
        '[CALL_ID]Zb3dE6gH9[ARGS]{"ticket_id": "T-32"}</s>',
        [T31, T32],
    ),
    "Mistral, a thought": (
        '[THINK]Perhaps [TOOL_CALLS]f[ARGS]{}?[/THINK][TOOL_CALLS]get_ticket{"ticket_id": "T-31"}',
        [T31],
    ),
    "Llama, several with semicolons": (
        '<|python_tag|>{"name": "get_ticket", "parameters": {"ticket_id": "T-31"}}; '
        '{"name": "get_ticket", "parameters": {"ticket_id": "T-32"}}<|eom_id|>',
        [T31, T32],
    ),
    "Llama, a built-in tool": ('<|python_tag|>get_ticket.call(ticket_id="T-31")', [T31]),
    "Hermes, several in one tag": (
        '<tool_call>\n{"name": "get_ticket", "arguments": {"ticket_id": "T-31"}}\n'
        '{"name": "get_ticket", "arguments": {"ticket_id": "T-32"}}\n</tool_call>',
        [T31, T32],
    ),
    "LFM2, literals of Python": (
        "<|tool_call_start|>[list_tickets(limit=5, open=True), get_ticket(ticket_id='T-31')]"
        "<|tool_call_end|>Looking it up.",
        [LIST, T31],
    ),
    "Gemma 3, printed": (
        "Okay, I look.\n```tool_code\nprint(default_api.get_ticket(ticket_id='T-31'))\n```",
        [T31],
    ),
    "Gemma 4, nested": (
        "<|channel>thought\nWhich? <|tool_call>call:f{}<tool_call|>\n<channel|><|tool_call>call:"
        'write_file{path:<|"|>a<|"|>,content:<|"|>{b: "c"}, <|"|>}<tool_call|><turn|>',
        [ToolCall("write_file", {"path": "a", "content": '{b: "c"}, '})],
    ),
    "Command A": (
        "<|START_THINKING|>I will look.<|END_THINKING|><|START_ACTION|>[\n    "
        '{"tool_call_id": "0", "tool_name": "get_ticket", "parameters": {"ticket_id": "T-31"}}\n]'
        "<|END_ACTION|>",
        [T31],
    ),
    "Functionary 3.2, prose first": (
        'all\nI look.>>>get_ticket\n{"ticket_id": "T-31"}>>>get_ticket\n{"ticket_id": "T-32"}',
        [T31, T32],
    ),
    "Kimi K3, a plain reply before": (
        "<|open|>response<|sep|>I look.<|close|>response<|sep|><|open|>tools<|sep|><|open|>call "
        'tool="list_tickets" index="1"<|sep|><|open|>argument key="limit" type="number"<|sep|>5'
        '<|close|>argument<|sep|><|open|>argument key="open" type="boolean"<|sep|>true<|close|>'
        "argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>",
        [LIST],
    ),
    "a closed thought, and a mark in it": (
        'I could <tool_call>{"name": "f", "arguments": {}}</tool_call> first.</think><tool_call>'
        '{"name": "get_ticket", "arguments": {"ticket_id": "T-31"}}</tool_call>',
        [T31],
    ),
    "all of it in a fence": (
        '```xml\n<function_calls>\n<invoke name="get_ticket">\n<parameter name="ticket_id">T-31'
        "</parameter>\n</invoke>\n</function_calls>\n```",
        [T31],
    ),
    "bare JSON at the end of prose": (
        'I look it up.\n\n{"name": "get_ticket", "parameters": {"ticket_id": "T-31"}}',
        [T31],
    ),
    "Kimi, its marks dropped": (
        'functions.get_ticket:0{"ticket_id": "T-31"}functions.get_ticket:1{"ticket_id": "T-32"}',
        [T31, T32],
    ),
    "DeepSeek V3, its marks dropped": (
        'I look.\nfunctionget_ticket\n```json\n{"ticket_id": "T-31"}\n```',
        [T31],
    ),
    "DeepSeek V3.1 or Mistral, their marks dropped": ('get_ticket{"ticket_id": "T-31"}', [T31]),
    "Gemma 4, its marks and quotes dropped": (
        "call:get_ticket{ticket_id:T-31}call:list_tickets{limit:5,open:true}",
        [T31, LIST],
    ),
    "Qwen3-Coder, the end of the function missing": (
        "<tool_call>\n<function=get_ticket>\n<parameter=ticket_id>\nT-31\n</parameter>\n</tool_call>",
        [T31],
    ),
    "Hermes, tags lost between calls": (
        '<tool_call>{"name": "get_ticket", "arguments": {"ticket_id": "T-31"}}</tool_call>\n'
        '{"name": "get_ticket", "arguments": {"ticket_id": "T-32"}}</tool_call>',
        [T31, T32],
    ),
    "JSON behind a label": (
        'TOOL_CALL: {"name": "get_ticket", "arguments": {"ticket_id": "T-31"}}',
        [T31],
    ),
    "JSON in tags of another use": (
        '<tools>{"name": "get_ticket", "arguments": {"ticket_id": "T-31"}}</tools>',
        [T31],
    ),
    "Harmony, a token in a value": (
        "<|channel|>commentary to=functions.final_answer <|constrain|>json<|message|>"
        '{"answer": "It ends with <|call|> or <|end|>."}<|call|>',
        [ToolCall("final_answer", {"answer": "It ends with <|call|> or <|end|>."})],
    ),
}


@pytest.mark.parametrize("case", READ)
def test_what_templates_and_models_write_is_read(case: str) -> None:
    text, calls = READ[case]
    assert read(text) == calls


EXAMPLE = '<tool_call>{"name": "get_ticket", "arguments": {"ticket_id": "T-31"}}</tool_call>'
PROSE = {
    "marks alone": "Calls stand between <tool_call> and </tool_call>.",
    "a mark and words": "The mark <tool_call> is used by Qwen (and others).",
    "a block beside prose": f"One calls a tool so:\n```\n{EXAMPLE}\n```\nThat is all.",
    "code in a line": f"Write `{EXAMPLE}` for that.",
    "a quotation": f'The page says "{EXAMPLE}".',
    "a value of JSON": f'{{"answer": "It prints {EXAMPLE[:11]} and {EXAMPLE[-12:]}."}}',
    "JSON on a line of its own": 'The record is\n{"text": "<tool_call> [x"}\nas you see.',
    "a doctest": ">>> f({'a': 1})\n4",
    "a tag of HTML": "Use <b>bold</b> and <list_items>x</list_items> here.",
    "a list": "The tools are [get_ticket, list_tickets].",
    "a result": "<tool_response>\n{'name': 'get_ticket'}\n</tool_response>",
    "a word that begins like a mark": "I used the function",
    "a thought of a call": f"<think>\nPerhaps {EXAMPLE[11:-12]}?\n</think>\nThe ticket is open.",
    "an answer in a tag": "<final_answer>Aurora</final_answer>",
}


@pytest.mark.parametrize("case", PROSE)
def test_what_only_speaks_of_marks_is_prose(case: str) -> None:
    assert parse_reply(PROSE[case], tools=TOOLS).calls == ()
    assert parse_reply(PROSE[case], tools=TOOLS).text == PROSE[case]


@pytest.mark.parametrize(
    "answer", [EXAMPLE, f"So: {EXAMPLE} it is", "<TOOLCALL>[", "[TOOL_CALLS]f{}"]
)
@pytest.mark.parametrize("write", [json.dumps, repr])
def test_a_mark_in_a_call_of_our_own_beside_prose_is_text(answer: str, write: Any) -> None:
    for line in ("final_answer(answer={})", "[final_answer(answer={})]"):
        text = f"I answer.\n{line.format(write(answer))}"
        assert read(text) == [ToolCall("final_answer", {"answer": answer})]


MALFORMED = {
    "Hermes, broken JSON": ("<tool_call>{'name': 'get_ticket'}</tool_call>", "get_ticket"),
    "a bracket too many": (EXAMPLE.replace("}}", "}}}"), "get_ticket"),
    "Qwen3-Coder, cut in a value": (
        "<tool_call>\n<function=get_ticket>\n<parameter=ticket_id>\nT-3",
        "get_ticket",
    ),
    "Claude, cut between parameters": (
        '<function_calls>\n<invoke name="write_file">\n<parameter name="path">a</parameter>\n',
        "write_file",
    ),
    "GLM, cut after one of two": (
        "<tool_call>list_tickets\n<arg_key>limit</arg_key>\n<arg_value>5</arg_value>\n",
        "list_tickets",
    ),
    "Kimi, cut before its arguments": (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_ticket:0",
        "get_ticket",
    ),
    "Harmony, cut before its arguments": (
        "<|channel|>commentary to=functions.get_ticket <|constrain|>json<|message|>",
        "get_ticket",
    ),
    "Gemma 4, a quote left open": (
        '<|tool_call>call:get_ticket{ticket_id:<|"|>T-31}<tool_call|>',
        "get_ticket",
    ),
    "ReAct, cut before its input": ("I look.\nAction: get_ticket\nAction In", "get_ticket"),
    "a list of calls, cut": ('[get_ticket(ticket_id="T-31"), list_tickets(limit=', "get_ticket"),
    "bare JSON, cut": ('{"name": "get_ticket", "parameters": {"tick', "get_ticket"),
    "a list in tags, cut": ("<|tool_call_start|>[get_ticket(ticket_id='T-", "get_ticket"),
    "a mark of no known format": (
        '<|invoke_tool_begin|>get_ticket {"ticket_id": "T-31"}<|invoke_tool_end|>',
        "get_ticket",
    ),
    "a tag of no known format": (
        '<tool_use>\n<name>get_ticket</name>\n<arguments>{"ticket_id": "T-31"}</arguments>\n'
        "</tool_use>",
        "get_ticket",
    ),
    "Solar, no known format": (
        "<|tool_call:begin|>a1b2<|tool_call:name|>get_ticket<|tool_call:args|>"
        '{"ticket_id": "T-31"}<|tool_call:end|>',
        "get_ticket",
    ),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_what_is_meant_as_a_call_and_not_read_is_a_malformed_call_of_that_tool(case: str) -> None:
    text, name = MALFORMED[case]
    (call,) = read(text)
    assert isinstance(call, MalformedCall)
    assert call.name == name


@pytest.mark.parametrize(
    "record", ['{"status": "open"}', '{"name": "Dune"}', '{"name": "x", "a": {']
)
def test_a_record_behind_a_call_is_no_further_call(record: str) -> None:
    assert read(f"{EXAMPLE}\n{record}") == [T31]


def test_calls_before_a_broken_one_are_kept() -> None:
    broken = '<tool_call>{"name": "list_tickets", "arguments": {"limit": 5</tool_call>'
    assert read(f"{EXAMPLE}\n{broken}\n{EXAMPLE}")[::2] == [T31, T31]
    assert read(f"{EXAMPLE}\n{broken}\n{EXAMPLE}")[1].name == "list_tickets"
    two = EXAMPLE.replace("</tool_call>", '\n{"name": "list_tickets", "arg')
    assert [call.name for call in read(two)] == ["get_ticket", "list_tickets"]


def test_words_beside_calls_are_the_text_and_thoughts_are_not() -> None:
    reply = parse_reply(f"<think>\nWhich?\n</think>\nI look.\n{EXAMPLE}\nOne moment.<|im_end|>")
    assert reply.text.split() == ["I", "look.", "One", "moment."]


def test_ids_that_a_format_has_are_kept() -> None:
    kimi, mistral = READ["Kimi, two calls of one name"][0], READ["Mistral, ids of calls"][0]
    assert [call.id for call in parse_reply(kimi).calls] == [
        "functions.get_ticket:0",
        "functions.get_ticket:1",
    ]
    assert [call.id for call in parse_reply(mistral).calls] == ["Ab3dE6gH9", "Zb3dE6gH9"]


TOLD_BY_TOOLS = (
    "bare JSON at the end of prose",
    "bare JSON, cut",
    "ReAct, cut before its input",
)
"""Without the tools on offer these are JSON or prose."""


@pytest.mark.parametrize("case", sorted({*READ, *MALFORMED} - set(TOLD_BY_TOOLS)))
def test_what_looks_like_a_call_is_seen_where_it_counts_as_prose(case: str) -> None:
    assert looks_like_call({**READ, **MALFORMED}[case][0])


@pytest.mark.parametrize("case", PROSE)
def test_examples_look_like_calls_and_words_do_not(case: str) -> None:
    assert looks_like_call(PROSE[case]) == (EXAMPLE in PROSE[case])
    assert not has_marked_call(PROSE[case])


UNDER_ANY_KEYS = {
    "name, then marks": 'get_ticket[ARGS]{"ticket_id": "T-31"}',
    "name, then JSON": 'get_ticket\n{"ticket_id": "T-31"}',
    "to": 'to=functions.get_ticket {"ticket_id": "T-31"}',
    "function, params": '```json\n{"function": "get_ticket", "params": {"ticket_id": "T-31"}}\n```',
    "function_name": '{"function_name": "getTicket", "function_args": {"ticket_id": "T-31"}}',
    "printed": "[{'name': 'get_ticket', 'args': {'ticket_id': 'T-31'}, 'id': 'x', 'type': 'call'}]",
    "tag": '<tool name="get_ticket"><arg name="ticket_id">T-31</arg></tool>',
    "tags": "<use_mcp_tool>\n<tool_name>get_ticket</tool_name>\n</use_mcp_tool>",
    "ReAct": "Thought: x\nAction: get_ticket\nAction Input: T-31",
    "plan": '1. get_ticket("T-31")\n2. join()',
}
NO_CALLS = {
    "record": '{"code": "QXZ-RTPL", "hours": {"open": "9:00"}}',
    "list": '["get_ticket", "list_tickets"]',
    "words": "I used get_ticket (twice), and its action was clear.",
    "code": "Set `max_size` to {n}.",
    "html": "<b>Ilse</b> owns it <br/>",
    "role": '{"owner": "Ilse", "tool": "hammer", "at": {"x": 1}}',
}


@pytest.mark.parametrize("case", UNDER_ANY_KEYS)
def test_what_has_the_form_of_a_call_is_said(case: str) -> None:
    assert looks_like_call(UNDER_ANY_KEYS[case])


@pytest.mark.parametrize("case", NO_CALLS)
def test_what_only_speaks_of_tools_is_not(case: str) -> None:
    assert not looks_like_call(NO_CALLS[case])


@pytest.mark.parametrize("text", ["a_b {" * 5000, "<tool>" * 20000, "<tool x='\n" * 9000])
def test_long_texts_are_looked_at_in_time(text: str) -> None:
    begun = time.process_time()
    looks_like_call(text)
    assert time.process_time() - begun < 10


@pytest.mark.parametrize(
    "end", ["<|eot_id|>", "<|im_end|>\n", "</s>", " <end_of_turn>", "<|eom_id|>"]
)
@pytest.mark.parametrize(
    "said",
    ['[get_ticket(ticket_id="T-31")]', 'get_ticket(ticket_id="T-31")',
     '{"name": "get_ticket", "arguments": {"ticket_id": "T-31"}}'],
)  # fmt: skip
def test_the_sign_that_ends_a_turn_is_no_part_of_a_call(said: str, end: str) -> None:
    assert read(said + end) == [T31]
