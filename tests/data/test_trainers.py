"""Rows as the trainers of others learn them: what is learned, and what is left out and said."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from click.testing import CliRunner
from data.trainer_rows import CONVERSATIONS, TOOLS, call, result, rows, said, user
from hypothesis import given
from hypothesis import strategies as st

from toolshift.cli import toolshift
from toolshift.data.augment import Recipe, augmented
from toolshift.data.conversation import RowFault
from toolshift.data.formats import FORMATS
from toolshift.data.trainers import TRAINERS, fitted

NAMES = tuple(TRAINERS)


def marks(text: str) -> set[str]:
    """The marks of turns in a text."""
    return set(re.findall(r"(?:YES|NOT)\d+[ab]?", text))


def learned_in(row: dict[str, Any], learns: str) -> str:
    """What a trainer learns of a row, by its documented rule."""
    if learns == "completion":
        return json.dumps(row["completion"])
    turns = row.get("messages") or row["conversations"]
    assistant = [t for t in turns if t.get("role", t.get("from")) in _SPEAKERS]
    if learns == "flagged":
        kept = [t for t in assistant if t.get("weight", 1) and t.get("train", True)]
        return json.dumps(kept)
    return json.dumps(assistant[-1:] if learns == "last" else assistant)


_SPEAKERS = ("assistant", "gpt", "function_call")


def made_for(trainer: str, messages: list[dict[str, Any]], tools: Any = TOOLS) -> Any:
    """What becomes of a conversation."""
    conversation = FORMATS.find("openai").read({"messages": messages, "tools": tools})
    return fitted(conversation, TRAINERS[trainer])


@st.composite
def conversations(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Turns in any order that a conversation may have; the mark says which are learned."""
    told = [{"role": "system", "content": "Help."}] if draw(st.booleans()) else []
    for number in range(draw(st.integers(1, 4))):
        told += [user("Now?")] * draw(st.integers(1, 2))
        for step in range(draw(st.integers(0, 3))):
            learned = draw(st.booleans())
            place = f"{number}{step}"
            mark = f"{'YES' if learned else 'NOT'}{place}"
            text = draw(st.sampled_from(["", "I look."]))
            told.append(call("get_order", f"c{place}", mark, learned, text))
            told.append(result(f"c{place}", status="open"))
        if draw(st.booleans()):
            learned = draw(st.booleans())
            told.append(said(f"{'YES' if learned else 'NOT'}{number}9", learned))
    return told


@pytest.mark.parametrize("trainer", NAMES)
@given(told=conversations())
def test_each_learned_turn_is_learned_once_or_said(trainer, told):
    fit = made_for(trainer, told)
    found = [mark for row in fit.rows for mark in marks(learned_in(row, TRAINERS[trainer].learns))]
    wanted = {mark for mark in marks(json.dumps(told)) if mark.startswith("YES")}
    assert set(found) <= wanted  # no failing call
    assert len(found) == len(set(found))
    if wanted:
        assert len(wanted - set(found)) == sum(fit.left.values())
    else:
        assert not fit.rows
        assert fit.left


@pytest.mark.parametrize("trainer", NAMES)
def test_rows_end_with_what_is_learned(trainer):
    for messages in CONVERSATIONS.values():
        for row in made_for(trainer, messages).rows:
            turns = row.get("messages") or row.get("conversations") or row["completion"]
            assert turns[-1].get("role", turns[-1].get("from")) in _SPEAKERS


def test_openai_rows_are_as_its_documentation_says():
    """By the published request format of its fine-tuning API, as it cannot be asked."""
    for name, messages in CONVERSATIONS.items():
        for tools in (TOOLS, []):
            if not tools and "tool" in {one["role"] for one in messages}:
                continue
            for row in made_for("openai", messages, tools).rows:
                assert row.keys() <= {"messages", "tools", "parallel_tool_calls"}
                assert row.get("tools") != [], name
                waiting: list[str] = []
                for place, one in enumerate(row["messages"]):
                    assert one["role"] in ("system", "user", "assistant", "tool")
                    assert ("weight" in one) == (one["role"] == "assistant")
                    if one["role"] == "tool":
                        waiting.remove(one["tool_call_id"])
                    else:
                        assert not waiting
                    waiting += [each["id"] for each in one.get("tool_calls", ())]
                    for each in one.get("tool_calls", ()):
                        assert isinstance(json.loads(each["function"]["arguments"]), dict)
                    last = place == len(row["messages"]) - 1
                    assert not last or (one["role"], one["weight"]) == ("assistant", 1)


STRICT = {
    "name": "get_order",
    "description": "Gets.",
    "strict": True,
    "parameters": {
        "type": "object",
        "properties": {"order_id": {"type": "string"}},
        "required": ["order_id"],
        "additionalProperties": False,
    },
}


def test_strict_is_said_only_of_schemas_that_are_so():
    told = [user("Hi"), said("YES1")]
    loose = {**STRICT, "parameters": {**STRICT["parameters"], "required": []}}
    for function, strict in ((STRICT, True), (loose, None)):
        (row,) = made_for("openai", told, [{"type": "function", "function": function}]).rows
        assert row["tools"][0]["function"].get("strict") is strict
    (row,) = made_for("trl", told, [{"type": "function", "function": STRICT}]).rows
    assert "strict" not in row["tools"]


@pytest.mark.parametrize("shift", ["SRP", "SBP", "midway", "graph"])
@pytest.mark.parametrize("severity", [1, 2, 3])
def test_strict_tools_stay_strict(shift, severity):
    told = [
        user("Order A?"),
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "get_order", "arguments": '{"order_id":"A"}'},
                }
            ],
        },
        result("c1", status="open"),
        said("YES1"),
    ]
    for number in range(12):
        row = {
            "messages": told,
            "tools": [{"type": "function", "function": STRICT}],
            "n": number,
        }
        recipe = Recipe(1.0, (shift,), (severity,))
        for one in augmented(row, json.dumps(row).encode(), recipe).rows:
            for tool in one["tools"]:
                function = tool["function"]
                if function.get("strict"):
                    schema = function["parameters"]
                    assert set(schema["required"]) == set(schema["properties"])
                    assert schema["additionalProperties"] is False


@pytest.mark.parametrize("trainer", TRAINERS)
def test_the_column_of_a_shift_is_for_trainers_that_pass_over_columns(trainer):
    told = [user("A?"), call("get_order", "c1", "YES1"), result("c1"), said("YES2")]
    row = {"messages": told, "tools": TOOLS}
    done = augmented(row, json.dumps(row).encode(), Recipe(1.0, ("SBP",), trainer=trainer))
    further = TRAINERS[trainer].further
    assert done.shifts
    assert done.rows
    assert all(("toolshift" in one) == further for one in done.rows)


@pytest.mark.parametrize(
    ("trainer", "messages", "tools", "why"),
    [
        ("openai", [user("Hi"), said("YES1")], "get order", "takes no tool by the name"),
        ("mistral", [user("Hi"), said("YES1")], "a.b", "takes no tool by the name"),
        (
            "llama-factory",
            [user("Hi"), said("YES1"), {"role": "system", "content": "x"}, user("a"), said("YES2")],
            "",
            "one system text",
        ),
        ("mistral", [said("YES1"), user("Hi"), said("YES2")], "", "the assistant speaks first"),
        ("llama-factory", [user("Hi"), said("YES1"), said("YES2")], "", "follow each other"),
    ],
)
def test_what_a_trainer_would_drop_is_refused_with_a_reason(trainer, messages, tools, why):
    listed = [{"type": "function", "function": {"name": tools}}] if tools else []
    with pytest.raises(RowFault, match=why):
        made_for(trainer, messages, listed)


def test_thoughts_and_texts_without_a_place_are_counted():
    told = [user("A?"), {**call("get_order", "c1", "YES1", text="I look."), "reasoning": "Hm."}]
    assert made_for("mistral", told).lost == {"thoughts": 1, "texts beside calls": 1}
    (row,) = made_for("trl", told).rows
    assert row["completion"][0]["reasoning_content"] == "Hm."


@pytest.fixture
def source(tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows()))
    return file


def run(*words: object) -> Any:
    """A command, run."""
    return CliRunner().invoke(toolshift, [str(word) for word in words])


@pytest.mark.parametrize("trainer", NAMES)
def test_the_command_ends_with_what_was_written_for_whom(source, tmp_path, trainer):
    out = tmp_path / f"out{TRAINERS[trainer].suffixes[-1]}"
    done = run("augment", source, "--alpha", 0, "--for", trainer, "--out", out)
    assert done.exit_code == 0, done.output
    last = done.output.splitlines()[-1]
    assert TRAINERS[trainer].title in last
    assert TRAINERS[trainer].how in last
    card = out.with_name("out.README.md").read_text()
    assert last in card
    if trainer == "verl":
        assert "6 turns: a turn before it must not be learned" in last


def test_files_that_a_trainer_does_not_read_are_refused(source, tmp_path):
    for trainer, name in (("verl", "o.jsonl"), ("openai", "o.parquet"), ("mistral", "o.json")):
        done = run("augment", source, "--for", trainer, "--out", tmp_path / name)
        assert "reads no such file" in str(done.exception)
    done = run("augment", source, "--for", "trI", "--out", tmp_path / "o.jsonl")
    assert "did you mean" in str(done.exception)
    done = run("augment", source, "--for", "trl", "--to", "openai", "--out", tmp_path / "o.jsonl")
    assert "leave one of them" in str(done.exception)


def test_shifts_whose_failing_call_would_be_learned_do_not_apply(source, tmp_path):
    out = tmp_path / "o.parquet"
    asked = ("--alpha", 1, "--shift", "transient_error:1", "--out", out)
    done = run("augment", source, "--for", "verl", *asked)
    assert "must not be learned, and verl learns all" in str(done.exception)
    assert not out.exists()


def test_a_file_of_which_nothing_is_learned_is_not_written(tmp_path):
    file, out = tmp_path / "rows.jsonl", tmp_path / "o.jsonl"
    file.write_text(json.dumps({"messages": [user("Hi"), said("NOT1", False)], "tools": []}))
    done = run("augment", file, "--alpha", 0, "--for", "trl", "--out", out)
    assert "nothing in it is learned" in str(done.exception)
    assert not out.exists()


def test_our_trajectories_are_written_for_trainers_too(tmp_path):
    for trainer in NAMES:
        out = tmp_path / f"{trainer}{TRAINERS[trainer].suffixes[0]}"
        asked = ("--count", 3, "--alpha", 0.5, "--shift", "EFP", "--for", trainer, "--out", out)
        done = run("data", *asked)
        assert done.exit_code == 0, done.output
        assert TRAINERS[trainer].how in done.output.splitlines()[-1]
    both = run("data", "--count", 1, "--turns", "--for", "trl", "--out", tmp_path / "x.jsonl")
    assert "leave one of them out" in str(both.exception)
