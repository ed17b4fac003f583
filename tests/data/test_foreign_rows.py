"""Rows of other people's data: read and shifted with nothing lost, or refused in one sentence."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from toolshift.cli import toolshift
from toolshift.data.augment import Recipe, augmented, converted
from toolshift.data.conversation import RowFault
from toolshift.data.formats import FORMATS as KNOWN
from toolshift.data.formats import ONLY_BACK, READS, recognised
from toolshift.data.replay import check
from toolshift.lm.call_texts.table import FORMATS as FORMS
from toolshift.train.rows import read_rows

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"base": {"type": "string"}, "target": {"type": "string"}},
    "required": ["base", "target"],
}
FUNCTION = {"name": "get_rate", "description": "Gets a rate.", "parameters": SCHEMA}
OTHER = {"name": "ping", "description": "Answers.", "parameters": {"type": "object"}}
TOOLS = [{"type": "function", "function": one} for one in (FUNCTION, OTHER)]
GIVEN = {"base": "USD", "target": "EUR"}
USER = {"role": "user", "content": "Rate from USD to EUR?"}
CALL = {"id": "c1", "type": "function", "function": {"name": "get_rate", "arguments": GIVEN}}
MODERN = [
    USER,
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": '{"rate": 0.91}'},
    {"role": "assistant", "content": "0.91"},
]
OLD = [
    USER,
    {
        "role": "assistant",
        "content": None,
        "function_call": {"name": "get_rate", "arguments": json.dumps(GIVEN)},
    },
    {"role": "function", "name": "get_rate", "content": '{"rate": 0.91}'},
    {"role": "assistant", "content": "0.91"},
]
HOLES = {"city": None, "limit": None}
HOLED_CALL = {"name": "get_rate", "arguments": GIVEN | HOLES}
HOLED_SCHEMA = SCHEMA | {
    "properties": {name: {"type": "string", "enum": None} for name in GIVEN} | HOLES,
    "additionalProperties": False,
}
ROWS: dict[str, dict[str, Any]] = {
    "functions": {"messages": OLD, "functions": [FUNCTION, OTHER]},
    "functions with tools": {"messages": OLD, "tools": TOOLS},
    "messages and tools in texts": {
        "messages": json.dumps(OLD),
        "available_tools": json.dumps(TOOLS),
        "target_tools": "rates-get_rate",
    },
    "results of the role ipython": {
        "messages": [*MODERN[:2], MODERN[2] | {"role": "ipython"}, *MODERN[3:]],
        "tools": TOOLS,
    },
    "each tool a text": {"messages": MODERN, "tools": [json.dumps(FUNCTION), json.dumps(OTHER)]},
    "tools in another column": {"messages": MODERN, "tools": None, "tool_defs": json.dumps(TOOLS)},
    "tools in another column, empty": {"messages": MODERN, "tools": [], "tool_defs": TOOLS},
    "holes": {
        "messages": [
            USER | {"tool_calls": None, "name": None},
            {"role": "assistant", "content": None, "tool_calls": [CALL | {"function": HOLED_CALL}]},
            {"role": "tool", "content": "0.91", "tool_call_id": "c1", "tool_calls": None},
        ],
        "tools": [{"type": "function", "function": FUNCTION | {"parameters": HOLED_SCHEMA}}],
    },
}
ROWS |= {
    "numbers as texts": {
        "query": "?",
        "tools": json.dumps(
            [
                {
                    "name": "get_rate",
                    "description": "Gets a rate.",
                    "parameters": {
                        "base": {"type": "str", "description": "From."},
                        "target": {"type": "str, optional", "default": "EUR"},
                        "places": {"type": "int, optional", "default": "2"},
                        "of": {"type": "List[Union[int, float]]"},
                    },
                },
                {"name": "ping", "description": "Answers.", "parameters": {}},
            ]
        ),
        "answers": json.dumps(
            [{"name": "get_rate", "arguments": GIVEN | {"places": "1", "of": "[1, 2.50]"}}]
        ),
    }
}
SAID = json.dumps({"name": "get_rate", "arguments": GIVEN})
LISTED = json.dumps([FUNCTION, OTHER])
ALONE = "\n\n".join(json.dumps(one, indent=4) for one in (FUNCTION, OTHER))
QUOTED = '{"name": "get_rate", "arguments": \'' + json.dumps(GIVEN) + "'}"
LC_CALL = {"name": "get_rate", "args": GIVEN, "id": "c1", "type": "tool_call"}
SENT: dict[str, Any] = {
    "id": "c1",
    "type": "function",
    "function": {"name": "get_rate", "arguments": json.dumps(GIVEN)},
}
DATA: list[tuple[str, str, dict[str, Any]]] = [
    ("human", "HumanMessage", {"content": "Rate?"}),
    (
        "ai",
        "AIMessage",
        {
            "content": "",
            "tool_calls": [LC_CALL],
            "additional_kwargs": {"tool_calls": [SENT]},
            "usage_metadata": {"input_tokens": 3},
        },
    ),
    ("tool", "ToolMessage", {"content": '{"rate": 0.91}', "tool_call_id": "c1"}),
    ("ai", "AIMessage", {"content": "0.91"}),
]
LC = ["langchain", "schema", "messages"]


def spoken(call: str, **first: str) -> list[dict[str, Any]]:
    return [
        *({"role": role, "content": text} for role, text in first.items()),
        USER,
        {"role": "assistant", "content": call},
        {"role": "tool", "content": '{"rate": 0.91}'},
        {"role": "assistant", "content": "0.91"},
    ]


def templated(begin: str, end: str, model: str = "assistant", tool: str = "tool") -> str:
    turns = [
        ("system", f"Tools: {LISTED}"),
        ("user", "Rate?"),
        (model, f"<tool_call>\n{SAID}\n</tool_call>"),
        (tool, '{"rate": 0.91}'),
        (model, "0.91"),
    ]
    return "<bos>" + "".join(f"{begin.format(role)}{text}{end}" for role, text in turns)


ROWS |= {
    "glaive": {
        "system": f"SYSTEM: You may use these -\n{ALONE}\n",
        "chat": f"USER: Rate?\n\n\nASSISTANT: I look. <functioncall> {QUOTED} <|endoftext|>\n\n\n"
        'FUNCTION RESPONSE: {"rate": 0.91}\n\n\nASSISTANT: 0.91 <|endoftext|>\n\n\n',
    },
    "when2call": {
        "tools": [json.dumps(FUNCTION), json.dumps(OTHER)],
        "messages": spoken(f"<TOOLCALL>[{SAID}]</TOOLCALL>"),
    },
    "nemotron": {
        "messages": spoken(
            f"I look. <TOOLCALL>[{SAID}]</TOOLCALL>",
            system=f"S <AVAILABLE_TOOLS>{LISTED}</AVAILABLE_TOOLS> E",
        )
    },
    "chatml": {"text": templated("<|im_start|>{}\n", "<|im_end|>\n")},
    "chatml, results of users": {
        "id": 3,
        "text": templated("<|im_start|>{}\n", "<|im_end|>\n", tool="user").replace(
            '{"rate": 0.91}', '<tool_response>\n{"rate": 0.91}\n</tool_response>'
        ),
    },
    "llama": {
        "text": templated(
            "<|start_header_id|>{}<|end_header_id|>\n\n", "<|eot_id|>", tool="ipython"
        )
    },
    "gemma": {"prompt": templated("<start_of_turn>{}\n", "<end_of_turn>\n", model="model")},
    "langchain, type and data": {
        "messages": [{"type": kind, "data": data} for kind, _, data in DATA],
        "tools": TOOLS,
    },
    "langchain, lc and kwargs": {
        "messages": [
            {"lc": 1, "type": "constructor", "id": [*LC, name], "kwargs": data}
            for _, name, data in DATA
        ],
        "tools": TOOLS,
    },
    "langchain, flat": {
        "messages": [{"type": kind, **data} for kind, _, data in DATA],
        "tools": TOOLS,
    },
}
ROWS |= {
    f"calls as {form.name}": {
        "messages": spoken(form.example),
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "get_ticket",
                    "description": "Gets a ticket.",
                    "parameters": {
                        "type": "object",
                        "properties": {"ticket_id": {"type": "string"}},
                        "required": ["ticket_id"],
                    },
                },
            }
        ],
    }
    for form in FORMS
}
READ_AS = {"numbers as texts": GIVEN | {"places": 1, "of": [1, 2.5]}}
SHIFTS = ("identity_erasure:2", "SRP", "EFP", "endings")


def called(name: str) -> tuple[str, Any]:
    if name.startswith("calls as"):
        return "get_ticket", {"ticket_id": "T-31"}
    return "get_rate", READ_AS.get(name, GIVEN)


@pytest.mark.parametrize("name", ROWS)
def test_a_row_is_written_back_as_it_was(name: str) -> None:
    row, before = deepcopy(ROWS[name]), deepcopy(ROWS[name])
    form = recognised(row)
    conversation = form.read(row)
    check(conversation)
    (call,) = [call for message in conversation.messages for call in message.calls]
    assert (call.name, call.arguments) == called(name)
    assert any(tool.function["name"] == call.name for tool in conversation.tools)
    assert form.write(conversation, row) == before
    assert row == before


def augment(row: Any, out: Path, *more: str) -> tuple[list[dict[str, Any]], str]:
    source = out.with_name("in.jsonl")
    source.write_text(json.dumps(row) + "\n")
    words = ["augment", str(source), "--alpha", "1", "--out", str(out), *more]
    done = CliRunner().invoke(toolshift, words)
    if done.exit_code:
        return [], f"{done.output}{done.exception}"
    return [json.loads(line) for line in out.read_text().splitlines()], done.output


@pytest.mark.parametrize("shift", SHIFTS)
@pytest.mark.parametrize("name", ROWS)
def test_a_shifted_row_calls_what_it_shows(name: str, shift: str, tmp_path: Path) -> None:
    rows, said = augment(ROWS[name], tmp_path / "out.jsonl", "--shift", shift)
    assert rows or "Shifts that do not apply" in said
    before = recognised(ROWS[name])
    for row in rows:
        again = before.read(row)
        check(again)
        if any(message.calls for message in again.messages):
            assert recognised(row) is before
        else:
            assert shift == "endings"
        known = ROWS[name].keys() | {"toolshift"}
        assert row.keys() == known
    if shift == "identity_erasure:2":
        assert rows
        assert called(name)[0] not in json.dumps(rows[0] | {"target_tools": ""})


def test_a_choice_of_the_old_kind_is_renamed(tmp_path: Path) -> None:
    row = ROWS["functions"] | {"function_call": {"name": "get_rate"}}
    ((made,), _) = augment(row, tmp_path / "out.jsonl", "--shift", "identity_erasure:2")
    assert made["function_call"]["name"] == made["functions"][0]["name"] != "get_rate"


def test_two_columns_of_tools_are_refused_by_name() -> None:
    row = {"messages": MODERN, "tool_defs": TOOLS, "functions": [FUNCTION]}
    with pytest.raises(RowFault, match="tool_defs and functions"):
        recognised(row).read(row)


def test_what_lists_persons_is_no_list_of_tools_and_a_hole_is_no_call(tmp_path: Path) -> None:
    persons = [{"name": "Ada", "description": "counts"}]
    hole = {"function_call": {"name": None, "arguments": None}}
    said = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Yes.", **hole}]
    rows = [{"messages": said, "persons": persons}, {**ROWS["functions"], "persons": persons}]
    source = tmp_path / "in.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    plain, older = read_rows(source)
    assert plain["tools"] == []
    assert plain["messages"] == said
    assert [tool["function"]["name"] for tool in older["tools"]] == ["get_rate", "ping"]


def test_a_null_that_the_tool_declares_is_kept() -> None:
    nullable = {"type": "object", "properties": {"base": {"type": ["string", "null"]}}}
    call = CALL | {"function": {"name": "get_rate", "arguments": {"base": None}}}
    tool = {"type": "function", "function": FUNCTION | {"parameters": nullable}}
    row = {"messages": [USER, {"role": "assistant", "tool_calls": [call]}], "tools": [tool]}
    assert recognised(row).read(row).messages[1].calls[0].arguments == {"base": None}


def test_numbers_as_texts_stay_texts_where_the_row_has_them_so(tmp_path: Path) -> None:
    row = ROWS["numbers as texts"]
    ((made,), _) = augment(row, tmp_path / "out.jsonl", "--shift", "identity_erasure:2")
    (call,) = json.loads(made["answers"])
    assert list(call["arguments"].values()) == ["USD", "EUR", "1", "[1, 2.50]"]
    ((made,), _) = augment(
        row, tmp_path / "to.jsonl", "--shift", "identity_erasure:2", "--to", "openai"
    )
    (called,) = [c for message in made["messages"] for c in message.get("tool_calls", ())]
    given = json.loads(called["function"]["arguments"])
    assert list(given.values()) == ["USD", "EUR", 1, [1, 2.5]]


@pytest.mark.parametrize("value", ["two", "1.5", "true", ""])
def test_a_text_that_is_no_number_is_no_number(value: str) -> None:
    answers = json.dumps([{"name": "f", "arguments": {"n": value}}])
    tools = json.dumps([{"name": "f", "description": "", "parameters": {"n": {"type": "int"}}}])
    row = {"query": "?", "tools": tools, "answers": answers}
    with pytest.raises(RowFault, match="is not of type"):
        check(recognised(row).read(row))


@pytest.mark.parametrize(
    "more", [{"text": ROWS["chatml"]["text"]}, {"chat": ROWS["glaive"]["chat"]}]
)
def test_a_row_that_may_be_two_things_is_refused_with_both_names(more: dict[str, Any]) -> None:
    with pytest.raises(RowFault, match=r"openai and (chat-template|glaive)"):
        recognised({"messages": MODERN, "tools": TOOLS, **more})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('<tool_call>{"name": "get_rate", "argum', "cannot be read"),
        ('<tool_call>{"name": "get_rate", "arguments": {"base": "USD"}}</tool_call>', "required"),
        ('<tool_call>{"name": "get_it", "arguments": {}}</tool_call>', "no tool on offer"),
    ],
)
def test_a_call_in_a_text_that_does_not_fit_is_refused(text: str, why: str) -> None:
    row = {"messages": spoken(text), "tools": TOOLS}
    with pytest.raises(RowFault, match=why):
        check(recognised(row).read(row))


@pytest.mark.parametrize(
    "text",
    [
        f"I look.\n<tool_call>\n{SAID}\n</tool_call>\n<tool_call>\n{SAID}\n</tool_call>",
        f"<TOOLCALL>[{SAID}, {SAID}]</TOOLCALL>",
        f"<tool_call>{SAID}</tool_call> and then\n<tool_call>{SAID}</tool_call> so.",
        'I look.\nget_rate(base="USD", target="EUR")\nget_rate(base="USD", target="EUR")',
    ],
)
def test_calls_at_once_stay_where_they_stand(text: str, tmp_path: Path) -> None:
    row = {"messages": spoken(text), "tools": TOOLS}
    form = recognised(row)
    read = form.read(row)
    assert [call.name for call in read.messages[1].calls] == ["get_rate"] * 2
    assert form.write(read, row) == row
    ((made,), _) = augment(row, tmp_path / "out.jsonl", "--shift", "identity_erasure:2")
    name = made["tools"][0]["function"]["name"]
    other = made["tools"][1]["function"]["name"]
    name = name if name in made["messages"][1]["content"] else other
    assert made["messages"][1]["content"] == text.replace("get_rate", name)


def test_what_goes_to_another_format_has_calls_of_its_own(tmp_path: Path) -> None:
    (made,), _ = augment(ROWS["nemotron"], tmp_path / "o.jsonl", "--shift", "SBP", "--to", "openai")
    assert len(made["messages"][2]["tool_calls"]) == 1
    assert made["messages"][2]["content"] == "I look."
    assert "AVAILABLE_TOOLS" not in made["messages"][0]["content"] or made["tools"]
    assert len(made["tools"]) == len(TOOLS)


def test_the_docs_show_the_formats_as_the_registry_has_them() -> None:
    assert list(READS) == list(KNOWN.names())
    page = Path("docs/augment.md").read_text(encoding="utf-8")
    for name, holds in READS.items():
        assert f"| `{name}` | {holds} | {'no' if name in ONLY_BACK else 'yes'} |" in page


@pytest.mark.parametrize("name", ONLY_BACK)
def test_a_format_that_is_only_written_back_says_so(name: str) -> None:
    row = ROWS["functions"]
    with pytest.raises(RowFault, match="only written in rows that are of it"):
        KNOWN.find(name).write(recognised(row).read(row), None)


PYTHON_CALL = str({"name": "get_rate", "arguments": json.dumps(GIVEN)})


@pytest.mark.parametrize(
    "call", [json.dumps({"name": "get_rate", "arguments": GIVEN}), PYTHON_CALL]
)
@pytest.mark.parametrize("shift", ["semantic_rename:2", "transient_error:1", "parameter_rename:1"])
@pytest.mark.parametrize("result", ["tool_response", "tool"])
def test_calls_that_are_turns_of_a_role_are_read_and_shifted(call, shift, result, tmp_path):
    """As Toucan and other data for ms-swift have them."""
    row = {
        "messages": [
            USER,
            {"role": "tool_call", "content": call},
            {"role": result, "content": '{"rate": 0.91}'},
            {"role": "assistant", "content": "0.91"},
        ],
        "tools": json.dumps(TOOLS),
    }
    form = recognised(row)
    assert form.name == "openai"
    assert form.write(form.read(row), row) == row
    file, out = tmp_path / "rows.jsonl", tmp_path / "out.jsonl"
    file.write_text(json.dumps(row) + "\n")
    words = ["augment", file, "--alpha", 1, "--shift", shift, "--out", out]
    done = CliRunner().invoke(toolshift, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    made = json.loads(out.read_text())
    roles = {one["role"] for one in made["messages"]}
    assert roles <= {"user", "tool_call", result, "tool_response", "assistant"}
    again = form.read(made)
    check(again)
    shown = {tool.function["name"] for tool in again.tools}
    called = [one for said in again.messages for one in said.calls]
    assert {one.name for one in called} <= shown
    assert called[-1].arguments.keys() == GIVEN.keys() or shift.startswith("parameter")
    if "error" in shift:
        assert [said.learned for said in again.messages if said.calls] == [False, True]
    assert made["messages"] != row["messages"]


def test_an_answer_in_words_beside_an_input_is_not_dropped():
    row = {
        "input": [{"role": "user", "content": "Rate?"}],
        "output": '<TOOLCALL>[{"name": "get_rate", "arguments": {}}]</TOOLCALL>',
        "system_prompt": "Help.",
    }
    with pytest.raises(RowFault, match="no known format has these columns: input, output"):
        recognised(row)


def test_a_result_that_a_shift_adds_has_the_role_of_the_others(tmp_path: Path) -> None:
    row = ROWS["results of the role ipython"]
    ((made,), _) = augment(row, tmp_path / "out.jsonl", "--shift", "transient_error:1")
    roles = [said["role"] for said in made["messages"]]
    assert roles.count("ipython") == roles.count("assistant") - 1 > 1
    assert "tool" not in roles


@pytest.mark.parametrize("to", ["openai", "hermes", "sharegpt", "anthropic", "gemini", "responses"])
@pytest.mark.parametrize("name", ["chatml", "llama", "gemma", "glaive"])
def test_one_text_is_written_in_another_format(name: str, to: str) -> None:
    row = {**deepcopy(ROWS[name]), "note": "mine"}
    out = converted(row, recognised(row), KNOWN.find(to))
    assert recognised(out).name == to
    assert out["note"] == "mine"
    assert not {"text", "prompt", "chat"} & out.keys()


def test_a_row_that_cannot_be_written_in_another_format_says_why() -> None:
    row = {"text": "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\nhello<|im_end|>\n"}
    assert "messages" in converted(row, recognised(row), KNOWN.find("openai"))
    with pytest.raises(RowFault, match="no tools stand beside it"):
        converted(row, recognised(row), KNOWN.find("toolace"))


@pytest.mark.parametrize("shift", ["redirect", "permanent_error", "new_precondition"])
def test_a_row_that_is_asked_for_one_tool_learns_no_call_of_another(shift: str) -> None:
    row = {"messages": MODERN, "tools": TOOLS, "tool_choice": "auto"}
    recipe = Recipe(alpha=1.0, shifts=(f"{shift}:1",))

    def made(choice: Any) -> Any:
        asked = {**row, "tool_choice": choice}
        return augmented(asked, json.dumps(asked).encode(), recipe)

    assert made("auto").rows
    only = {"type": "function", "function": {"name": "get_rate"}}
    for choice in (only, {"type": "allowed_tools", "allowed_tools": {"tools": [only]}}):
        done = made(choice)
        assert not done.rows
        assert "tool_choice allows get_rate, and " in done.reasons[shift]
