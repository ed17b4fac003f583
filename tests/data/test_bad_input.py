"""Odd files: each row that cannot be read is one clear message, and nothing stops for it."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conversations import openai

from toolshift.core.errors import UsageError
from toolshift.data.augment import COLUMN, Recipe, augmented
from toolshift.data.conversation import RowFault
from toolshift.data.files import Job, augment_file
from toolshift.data.formats import FORMATS
from toolshift.data.replay import check

OPENAI = FORMATS.find("openai")
Change = Callable[[dict[str, Any]], Any]


def changed(change: Change, seed: int = 1) -> bytes:
    row = openai(seed)
    change(row)
    return json.dumps(row).encode()


def first_call(row: dict[str, Any]) -> Any:
    return row["messages"][2]["tool_calls"][0]["function"]


def turns(*said: Any) -> bytes:
    return json.dumps({"conversations": list(said), "tools": "[]"}).encode()


def messages(*said: Any) -> bytes:
    return json.dumps({"messages": list(said), "tools": []}).encode()


def hermes(tools: str, said: str) -> bytes:
    system = {"from": "system", "value": f"<tools>{tools}</tools>"}
    said_all = [system, {"from": "human", "value": "x"}, {"from": "gpt", "value": said}]
    return json.dumps({"conversations": said_all}).encode()


def toolace(tools: str, said: str) -> bytes:
    said_all = [{"from": "user", "value": "x"}, {"from": "assistant", "value": said}]
    return json.dumps({"system": tools, "conversations": said_all}).encode()


def adp(*content: Any, **details: Any) -> bytes:
    return json.dumps({"content": list(content), "details": details}).encode()


def xlam(query: Any, tools: Any, answers: Any) -> bytes:
    return json.dumps({"query": query, "tools": tools, "answers": answers}).encode()


PICTURE = [
    {"type": "text", "text": "What is this? get"},
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
]
F = '[{"name": "f", "parameters": {}}]'
FAULTS: list[tuple[bytes, str]] = [
    (b"{broken", "not JSON"),
    (b'{"messages": [', "not JSON"),
    (b"[]", "no JSON object"),
    (b"null", "no JSON object"),
    (b'{"messages": [], "score": NaN}', "NaN and Infinity are no JSON; write null"),
    ('{"messages": "caf\xe9"}'.encode("latin-1"), "not JSON"),
    (b'{"messages":' + b"[" * 9000 + b"]" * 9000 + b"}", "not JSON"),
    (b'{"messages": [{"role": "user", "content": "\\ud800"}]}', "not JSON"),
    (b'{"prompt": "x", "completion": "y"}', "no known format has these columns: prompt"),
    (b"{}", "no known format has these columns: none"),
    (messages(1), "`messages` is no list of messages with a `role`"),
    (messages({"role": "user", "content": "x"}, 5), "message 1 has no role"),
    (messages({"role": "king"}), "unknown role 'king'"),
    (messages({"role": "user", "content": 5}), "message 0: its content is no text"),
    (
        messages({"role": "tool", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}),
        "message 0: its content holds more than texts",
    ),
    (
        messages(
            {"role": "assistant", "content": [{"type": "tool_use", "name": "f", "input": {}}]}
        ),
        "calls of tools in the history where the request offers no tools",
    ),
    (
        messages({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1"}]}),
        "calls of tools in the history where the request offers no tools",
    ),
    (messages({"role": "assistant", "tool_calls": "x"}), "message 0: its tool_calls are no list"),
    (messages({"role": "assistant", "tool_calls": [None]}), "message 0: a call has no name"),
    (messages({"role": "assistant", "function_call": {"name": "f"}}), "the row lists no tools"),
    (messages({"role": "assistant", "function_call": "f"}), "message 0: a call has no name"),
    (changed(lambda r: first_call(r).update(name="nobody")), "nobody is called, and is no tool"),
    (changed(lambda r: first_call(r).update(arguments="{'a': 1}")), ": not JSON"),
    (changed(lambda r: first_call(r).update(arguments=[1])), "are no JSON object"),
    (changed(lambda r: first_call(r).update(arguments={})), "is a required property"),
    (changed(lambda r: r.update(tools={})), "the list of tools is no list"),
    (changed(lambda r: r.update(tools="not json")), "the list of tools: not JSON"),
    (changed(lambda r: r.update(tools=[None])), "tool 0 has no name"),
    (changed(lambda r: r.update(tools=[{"function": None}])), "tool 0 has no name"),
    (turns(1), "`conversations` is no list of turns"),
    (turns({"from": "human", "value": None}), "turn 0 has no text in `value`"),
    (turns({"from": ["x"], "value": "x"}), r"turn 0 is from \['x'\]"),
    (turns({"from": "human", "value": "x"}, 5), "turn 1 has no text"),
    (turns({"from": "function_call", "value": "no json"}), "turn 0: not JSON"),
    (turns({"from": "function_call", "value": "5"}), "turn 0: a call has no name"),
    (hermes("[]", "<tool_call>x</tool_call>"), "neither JSON nor a Python literal"),
    (hermes("{broken", "hi"), "a tool in <tools> is neither JSON"),
    (hermes(F, "<tool_call>[1]</tool_call>"), "a <tool_call> has no name"),
    (toolace("Use [{broken", "[f(x=1)]"), "the functions in the system text are not JSON"),
    (toolace(f"Use {F}", "[f(x=1, y)]"), "f: an argument has no name: y"),
    (toolace(f"Use {F}", "[f(x=__import__('os'))]"), "cannot be read"),
    (toolace(f"Use {F}", "[f(x='unclosed)]"), "a call is not closed"),
    (xlam(5, "[]", "[]"), "query is no text"),
    (xlam("x", "[]", "x"), "answers: not JSON"),
    (xlam("x", [{"name": "f", "parameters": []}], [5]), "an answer has no name"),
    (adp({"class_": "code_action"}, tools="[]"), "lists no tools|no tool use"),
    (adp({"class_": "code_action"}, tools=F), "item 0 is a code_action"),
    (adp({"class_": "text_observation"}, None, tools=F), "item 1 of content has no class_"),
    (adp({"class_": "api_action", "function": "f", "kwargs": [1]}, tools=F), "no JSON object"),
]


def test_every_row_that_cannot_be_read_is_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    good = json.dumps(openai(0)).encode()
    source = tmp_path / "in.jsonl"
    source.write_bytes(b"\n".join([good, *(raw for raw, _ in FAULTS), good]))
    tally = augment_file(Job(source, tmp_path / "out.jsonl", Recipe(alpha=1.0)))
    told = dict(tally.faults)
    assert tally.rows == 2
    for line, (raw, why) in enumerate(FAULTS, 2):
        assert line in told, f"{raw[:80]!r} was read"
        assert re.search(why, told[line]), (told[line], why)
    assert tally.wrong == len(FAULTS)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda r: r["messages"][0].update(role="developer"), id="developer"),
        pytest.param(lambda r: r.update(parallel_tool_calls=True), id="further columns"),
        pytest.param(lambda r: r.update(n=10**30), id="a large number"),
        pytest.param(
            lambda r: [m.update(content=[{"type": "text", "text": m["content"]}])
                       for m in r["messages"] if m["role"] in ("user", "tool")],
            id="content in parts",
        ),
        pytest.param(lambda r: r["messages"][1].update(content=PICTURE), id="a picture"),
        pytest.param(
            lambda r: [c["function"].update(arguments=json.loads(c["function"]["arguments"]))
                       for m in r["messages"] for c in m.get("tool_calls", ())],
            id="arguments as objects",
        ),
        pytest.param(
            lambda r: r.update(messages=[m for m in r["messages"] if m["role"] != "tool"]),
            id="no results",
        ),
        pytest.param(
            lambda r: [c.update(id="same") for m in r["messages"] for c in m.get("tool_calls", ())],
            id="one id for all calls",
        ),
        pytest.param(
            lambda r: r["tools"].append({"type": "function", "function": {"name": "获取 天气"}}),
            id="another script",
        ),
        pytest.param(
            lambda r: r["tools"][-1]["function"].update(parameters={"$ref": "#/x"}),
            id="a schema that points nowhere",
        ),
    ],
)  # fmt: skip
def test_what_is_odd_and_sound_is_shifted(change: Change) -> None:
    row = json.loads(changed(change, seed=2))
    for shift in ("SBP", "EFP", "SRP"):
        done = augmented(row, b"x", Recipe(alpha=1.0, shifts=(shift,)))
        for each in done.rows:
            check(OPENAI.read(each))
            assert {k: v for k, v in row.items() if k not in ("messages", "tools")} == {
                k: v for k, v in each.items() if k not in ("messages", "tools", COLUMN)
            }
        assert done.rows or done.reasons


@pytest.mark.parametrize("shift", ["SBP", "EFP", "midway"])
def test_a_picture_of_the_user_stays(shift: str) -> None:
    row = openai(2)
    row["messages"][1]["content"] = PICTURE
    recipe = Recipe(alpha=1.0, shifts=(shift,))
    (first, *_) = augmented(row, b"x", recipe).rows
    assert first["messages"][1]["content"] == PICTURE
    with pytest.raises(RowFault, match="message 1 holds more than text, which hermes cannot say"):
        augmented(row, b"x", Recipe(alpha=1.0, shifts=(shift,), to="hermes"))


def test_the_tool_that_tool_choice_asks_for_is_renamed_with_it() -> None:
    row = openai(3)
    name = row["tools"][1]["function"]["name"]
    row["tool_choice"] = {"type": "function", "function": {"name": name}}
    done = augmented(row, b"x", Recipe(alpha=1.0, shifts=("identity_erasure:3",)))
    (after,) = done.rows
    assert after["tool_choice"]["function"]["name"] == after["tools"][1]["function"]["name"] != name


def test_thoughts_speak_of_the_new_names() -> None:
    row = openai(5)
    name = row["tools"][0]["function"]["name"]
    for each in row["messages"]:
        if each["role"] == "assistant":
            each["reasoning_content"] = f"Let me see what `{name}` says."
    for shift in ("identity_erasure:3", "identity_erasure:3+transient_error:1"):
        (after,) = augmented(row, b"x", Recipe(alpha=1.0, shifts=(shift,))).rows
        thoughts = [m["reasoning_content"] for m in after["messages"] if "reasoning_content" in m]
        assert thoughts
        assert all(after["tools"][0]["function"]["name"] in each for each in thoughts)
        assert not any(f"`{name}`" in each for each in thoughts)


def test_a_mark_at_the_start_and_other_ends_of_lines(tmp_path: Path) -> None:
    rows = [json.dumps(openai(seed)) for seed in range(8)]
    for name, raw in (
        ("bom.jsonl", b"\xef\xbb\xbf" + "\n".join(rows).encode()),
        ("crlf.jsonl", "\r\n".join(rows).encode()),
        ("list.json", f"[{','.join(rows)}]".encode()),
        ("pretty.json", json.dumps([json.loads(row) for row in rows], indent=1).encode()),
        ("packed.json.gz", gzip.compress(f"[{','.join(rows)}]".encode(), mtime=0)),
    ):
        source, out = tmp_path / name, tmp_path / f"{name}.out.jsonl"
        source.write_bytes(raw)
        tally = augment_file(Job(source, out, Recipe(alpha=0.5)))
        assert (tally.rows, tally.wrong) == (8, 0), name
        for line in out.read_bytes().splitlines():
            json.loads(line.removeprefix(b"\xef\xbb\xbf"))


@pytest.mark.parametrize(
    ("name", "raw", "why"),
    [
        ("utf16.jsonl", json.dumps(openai(0)).encode("utf-16"), "the file is UTF-16"),
        ("empty.jsonl", b"", "holds no rows"),
        ("blank.jsonl", b"\n \n", "holds no rows"),
        ("list.json", b"[{broken]", "list.json: not JSON"),
        ("object.jsonl", b"{\n", "write one object on each line"),
        ("torn.jsonl.gz", gzip.compress(b"{}\n" * 999, mtime=0)[:-9], "is damaged"),
        ("plain.jsonl.gz", b"{}", "is damaged"),
        ("rows.txt", b"a,b", r"name a .jsonl, .jsonl.gz, .parquet or .csv file"),
        ("rows.csv", b"a,b", r"rows.csv holds no rows"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(
    tmp_path: Path, name: str, raw: bytes, why: str
) -> None:
    (tmp_path / name).write_bytes(raw)
    with pytest.raises(UsageError, match=why):
        augment_file(Job(tmp_path / name, tmp_path / "out.jsonl", Recipe()))
    assert [each.name for each in tmp_path.iterdir()] == [name]


def test_a_call_that_is_put_right_may_be_context() -> None:
    row = openai(0)
    place, wrong = next((n, m) for n, m in enumerate(row["messages"]) if m.get("tool_calls"))
    again = json.loads(json.dumps(wrong).replace('"call_', '"again_'))
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": "wrong"}
        for call in wrong["tool_calls"]
    ]
    later = [
        {"role": "tool", "tool_call_id": call["id"], "content": "{}"}
        for call in again["tool_calls"]
    ]
    wrong["tool_calls"][0]["function"]["arguments"] = "{}"
    row["messages"] = [*row["messages"][: place + 1], *results, again, *later]
    recipe = Recipe(1.0, ("identity_erasure:3",))
    with pytest.raises(RowFault, match=r'required property; .* give this message `"weight": 0`'):
        augmented(row, b"1", recipe)
    wrong["weight"] = 0
    assert augmented(row, b"1", recipe).rows
    del wrong["weight"]
    row["messages"] = row["messages"][: place + 1]
    with pytest.raises(RowFault) as fault:
        augmented(row, b"1", recipe)
    assert "weight" not in str(fault.value)
