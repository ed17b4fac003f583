"""What the assistant says in several parts: renamed in its place, and said once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolshift.data.augment import Made, Recipe, augmented, converted
from toolshift.data.conversation import Conversation, Message
from toolshift.data.formats import FORMATS, recognised
from toolshift.data.formats.openai import OPENAI
from toolshift.data.traces.recorded import of_conversation

Body = dict[str, Any]
TEXT = "text"
RENAME = "tool_name_noise:3"
SCHEMA = {"type": "object", "properties": {"base": {"type": "string"}}, "required": ["base"]}
TOOL = {"name": "get_rate", "description": "Gets a rate.", "input_schema": SCHEMA}
CACHED = {"cache_control": {"type": "ephemeral"}}
PICTURE = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
HIDDEN = {"type": "redacted_thinking", "data": "c2ln"}


def used(name: str, base: str) -> Body:
    return {"type": "tool_use", "id": name, "name": "get_rate", "input": {"base": base}}


def answered(*names: str) -> Body:
    results = [{"type": "tool_result", "tool_use_id": n, "content": '{"rate": 1}'} for n in names]
    return {"role": "user", "content": results}


def blocks(*content: Body, names: tuple[str, ...] = ("t1",), **further: Any) -> Body:
    return {
        **further,
        "messages": [
            {"role": "user", "content": "Rates?"},
            {"role": "assistant", "content": list(content)},
            answered(*names),
            {"role": "assistant", "content": "So says get_rate."},
        ],
        "tools": [TOOL],
    }


def parts(*content: Body, **further: Any) -> Body:
    result = {"functionResponse": {"name": "get_rate", "response": {"rate": 1}}}
    declared = {"name": "get_rate", "description": "Gets a rate.", "parametersJsonSchema": SCHEMA}
    return {
        **further,
        "contents": [
            {"role": "user", "parts": [{TEXT: "Rates?"}]},
            {"role": "model", "parts": list(content)},
            {"role": "user", "parts": [result] * sum("functionCall" in part for part in content)},
            {"role": "model", "parts": [{TEXT: "So says get_rate."}]},
        ],
        "tools": [{"functionDeclarations": [declared]}],
    }


def called(base: str) -> Body:
    return {"functionCall": {"name": "get_rate", "args": {"base": base}}}


def shifted(row: Body, shift: str = RENAME, trainer: str = "") -> Made:
    recipe = Recipe(alpha=1.0, shifts=(shift,), trainer=trainer)
    return augmented(row, json.dumps(row).encode(), recipe)


def renamed(row: Body) -> Body:
    """A row as it is by another name of its tool; nothing else of it changes."""
    (made,) = shifted(row).rows
    tool = made["tools"][0]
    name = tool.get("functionDeclarations", [tool])[0]
    name = name.get("function", name)["name"]
    assert name != "get_rate"
    text = json.dumps({key: made[key] for key in row})
    assert "get_rate" not in text
    return json.loads(text.replace(name, "get_rate"))  # type: ignore[no-any-return]


def unnamed(row: Body) -> Body:
    """A row whose texts and thoughts do not name its tool, which may fail for good then."""
    return json.loads(json.dumps(row).replace("get_rate.", "it."))  # type: ignore[no-any-return]


THOUGHT = {"type": "thinking", "thinking": "Now get_rate."}
SAID = {"type": TEXT, TEXT: "I call get_rate.", **CACHED}
AFTER = {"type": TEXT, TEXT: "That was get_rate."}
TWICE = [{"type": TEXT, TEXT: "get_rate"}] * 2
SYSTEM = [
    {"type": TEXT, TEXT: "Use get_rate.\n\nSoon.\n"},
    {"type": TEXT, TEXT: "Be brief.", **CACHED},
]


@pytest.mark.parametrize(
    "row",
    [
        blocks(THOUGHT, HIDDEN, SAID, used("t1", "A"), AFTER),
        blocks(THOUGHT, THOUGHT, *TWICE, used("t1", "A"), *TWICE),
        blocks(used("t1", "A"), system=SYSTEM),
        blocks({**THOUGHT, "thinking": "Hm.", "signature": "c2ln"}, SAID, used("t1", "A")),
        parts({TEXT: "I call get_rate."}, called("A")),
        parts({TEXT: "Now get_rate.", "thought": True}, *[{TEXT: "get_rate"}] * 2, called("A")),
        parts({TEXT: "get_rate"}, called("A"), {TEXT: "get_rate.", "thoughtSignature": "c2ln"}),
        parts(
            {**called("A"), "thoughtSignature": "c2ln"},
            systemInstruction={"role": "system", "parts": [{TEXT: "get_rate\n"}, {TEXT: "Hm."}]},
        ),
        parts(
            called("A"),
            toolConfig={
                "functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["get_rate"]}
            },
        ),
    ],
    ids=range(9),
)
def test_a_tool_is_renamed_wherever_a_row_speaks_of_it(row: Body) -> None:
    assert renamed(row) == row


def test_a_system_message_among_others_keeps_its_blocks() -> None:
    row = blocks(used("t1", "A"))
    row["messages"].insert(3, {"role": "system", "content": SYSTEM})
    assert renamed(row) == row


@pytest.mark.parametrize(
    "row",
    [
        blocks({**THOUGHT, "signature": "c2ln"}, used("t1", "A")),
        parts({TEXT: "get_rate", "thought": True, "thoughtSignature": "c2ln"}, called("A")),
    ],
    ids=["anthropic", "gemini"],
)
def test_a_signed_thought_is_never_changed(row: Body) -> None:
    made = shifted(row)
    assert not made.rows
    assert "is signed" in made.reasons["tool_name_noise"]
    (other,) = shifted(row, "csv_results").rows
    key = "messages" if "messages" in row else "contents"
    assert other[key][1] == row[key][1]
    (trained,) = shifted(row, RENAME, "axolotl").rows  # it has no place for a signature
    assert "get_rate" not in json.dumps(trained)


def test_calls_pulled_apart_say_what_stands_beside_them_once() -> None:
    row = blocks(THOUGHT, HIDDEN, SAID, used("t1", "A"), used("t2", "B"), names=("t1", "t2"))
    (made,) = shifted(unnamed(row), "redirect").rows
    said = [message for message in made["messages"] if message["role"] == "assistant"]
    ids = [[block["id"] for block in one["content"] if "id" in block] for one in said[:-1]]
    kinds = [[block["type"] for block in one["content"]] for one in said[:-1]]
    assert kinds[0] == [TEXT, "tool_use"]
    first = ids.index(["t1"])
    assert kinds[first] == ["thinking", "redacted_thinking", "tool_use"]
    assert kinds[ids.index(["t2"])] == ["tool_use"]
    beside = [kind for one in kinds for kind in one if kind != "tool_use"]
    assert sorted(beside) == ["redacted_thinking", TEXT, "thinking"]


def test_contents_pulled_apart_say_what_stands_beside_them_once() -> None:
    thought = {TEXT: "Hm.", "thought": True}
    row = parts(thought, {TEXT: "I look."}, called("A"), called("B"))
    row["contents"].insert(2, {"role": "model", "parts": [{TEXT: "Both."}]})
    (made,) = shifted(unnamed(row), "redirect").rows
    spoken = [part for one in made["contents"] if one["role"] == "model" for part in one["parts"]]
    assert [part for part in spoken if part.get("thought")] == [thought]
    assert "".join(part.get(TEXT, "") for part in spoken).count("I look.") == 1
    assert all(content["parts"] for content in made["contents"])


@pytest.mark.parametrize("shift", ["redirect", "transient_error:1"])
def test_a_thought_of_openai_rows_stands_once(shift: str) -> None:
    row = openai("I look.", reasoning_content="Hm.")
    (made,) = shifted(row, shift).rows
    assert json.dumps(made).count("Hm.") == 1
    assert json.dumps(made).count("I look.") == 1


def openai(content: Any, **further: Any) -> Body:
    """A row of OpenAI's with two calls at once."""
    calls = [
        {
            "id": name,
            "type": "function",
            "function": {"name": "get_rate", "arguments": f'{{"base":"{name}"}}'},
        }
        for name in ("a", "b")
    ]
    function = {"name": "get_rate", "description": "Gets a rate.", "parameters": SCHEMA}
    return {
        "messages": [
            {"role": "user", "content": "Rates?"},
            {"role": "assistant", "content": content, "tool_calls": calls, **further},
            *({"role": "tool", "tool_call_id": n, "content": '{"rate":1}'} for n in ("a", "b")),
            {"role": "assistant", "content": "1"},
        ],
        "tools": [{"type": "function", "function": function}],
    }


@pytest.mark.parametrize("count", [1, 2])
def test_openai_parts_stay_parts_with_their_marks(count: int) -> None:
    row = openai([SAID, AFTER][:count])
    row["messages"].insert(0, {"role": "system", "content": [SAID, AFTER][:count]})
    assert renamed(row) == row
    assert FORMATS.find("openai").write(recognised(row).read(row), row) == row


def test_parts_are_one_text_in_another_format() -> None:
    row = openai([{**SAID, TEXT: "One. "}, {**AFTER, TEXT: "Two. "}])
    out = converted(row, FORMATS.find("openai"), FORMATS.find("sharegpt"))
    assert "\0" not in json.dumps(out)
    assert "\0" not in "".join(
        one.text for one in of_conversation(recognised(row).read(row), "").said
    )
    assert [turn["value"] for turn in out["conversations"]][1] == "One. Two. "
    source = blocks(THOUGHT, THOUGHT, *TWICE, used("t1", "A"))
    made = converted(source, FORMATS.find("anthropic"), FORMATS.find("openai"))
    assert made["messages"][1]["content"] == "get_rateget_rate"
    (trained,) = shifted(source, "csv_results", "axolotl").rows
    assert trained["messages"][1]["reasoning_content"] == "Now get_rate.\nNow get_rate."


def test_a_choice_among_allowed_tools_is_renamed() -> None:
    chosen = {"type": "function", "function": {"name": "get_rate"}}
    allowed = {"mode": "required", "tools": [chosen]}
    row = openai("Hm.") | {"tool_choice": {"type": "allowed_tools", "allowed_tools": allowed}}
    assert renamed(row) == row


def test_a_text_beside_a_call_in_one_part_of_gemini_and_all_after_it_stay() -> None:
    both = {TEXT: "I call get_rate.", **called("EUR")}
    row = parts({TEXT: "First."}, both, {TEXT: "get_rate again."})
    (content,) = [one for one in shifted(row).rows[0]["contents"] if len(one["parts"]) == 3]
    first, middle, last = content["parts"]
    name = middle["functionCall"]["name"]
    assert name != "get_rate"
    assert (first[TEXT], middle[TEXT]) == ("First.", f"I call {name}.")
    assert last[TEXT] == f"{name} again."


@pytest.mark.parametrize("before", [[PICTURE, {"type": TEXT, TEXT: "a"}], [PICTURE]])
def test_a_new_text_of_a_content_leaves_its_picture_alone(before: list[Body]) -> None:
    row = {"messages": [{"role": "user", "content": before}], "tools": []}
    message = Message("user", "b", source=0)
    (written,) = OPENAI.write(Conversation((), (message,)), row)["messages"]
    assert written["content"] == [PICTURE, {"type": TEXT, TEXT: "b"}]


def _of_gemini(response: Body) -> Body:
    row = parts(called("A"))
    row["contents"][2]["parts"][0]["functionResponse"]["response"] = response
    return row


def _told(row: Body) -> list[Any]:
    """What the results of a row hold, in the form that they have."""
    if "contents" in row:
        found = [part for content in row["contents"] for part in content["parts"]]
        return [p["functionResponse"]["response"] for p in found if "functionResponse" in p]
    said = [one["content"] for one in row["messages"] if one["role"] == "tool"]
    blocks = [b for one in row["messages"] for b in one["content"] if isinstance(b, dict)]
    return said or [block["content"] for block in blocks if block["type"] == "tool_result"]


@pytest.mark.parametrize("form", ["anthropic", "gemini", "gemini by a key", "openai"])
def test_a_result_that_a_shift_adds_has_the_form_of_the_recorded_ones(form: str) -> None:
    text = [{"type": TEXT, TEXT: '{"rate": 1}'}]
    anthropic, chat = blocks(used("t1", "A")), openai("")
    anthropic["messages"][2]["content"][0]["content"] = text
    for message in chat["messages"][2:4]:
        message["content"] = text
    row = {
        "anthropic": anthropic,
        "gemini": _of_gemini({"rate": 1}),
        "gemini by a key": _of_gemini({"result": {"rate": 1}}),
        "openai": chat,
    }[form]
    (made,) = shifted(row, "transient_error:1").rows
    (added, *_), recorded = _told(made), _told(row)[0]
    assert added != recorded
    assert '"error"' in json.dumps(added).replace("\\", "")
    if form == "gemini":
        assert added["error"].keys() == {"code", "message"}
    elif form == "gemini by a key":
        assert added["result"]["error"].keys() == {"code", "message"}
    else:
        assert [part["type"] for part in added] == [TEXT]
