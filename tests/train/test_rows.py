"""Rows in files: what is written comes back, what is wrong is named, and what TRL reads."""

import json

import pytest

from toolshift.core.errors import UsageError
from toolshift.core.message import Turn
from toolshift.lm.prompt import to_plain_messages
from toolshift.train.data import make_rows
from toolshift.train.rows import checked, read_rows, turns_of, with_known_roles, write_rows
from toolshift.train.scenes import Mix


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.parquet"])
def test_files_give_back_what_was_written(tmp_path, name):
    rows = make_rows(Mix(alpha=0.5, size=200), 20)
    write_rows(rows, tmp_path / name)
    back = read_rows(tmp_path / name)
    assert [row["messages"] for row in back] == [row["messages"] for row in rows]
    assert [row["tools"] for row in back] == [row["tools"] for row in rows]


def test_trl_columns_survive_a_dataset(tmp_path):
    datasets = pytest.importorskip("datasets")
    rows = make_rows(Mix(alpha=0.3, size=200), 20)
    write_rows(rows, tmp_path / "rows.parquet")
    loaded = datasets.Dataset.from_parquet(str(tmp_path / "rows.parquet"), cache_dir=tmp_path)
    for before, after in zip(rows, loaded, strict=True):
        call = before["messages"][2]["tool_calls"][0]["function"]
        assert after["messages"][2]["tool_calls"][0]["function"] == call
        assert json.loads(after["tools"]) == before["tools"]


def test_weights_reach_the_template():
    row = make_rows(Mix(alpha=1, shifts=("transient_error:2",), size=200), 1)[0]
    plain = to_plain_messages(Turn(row["messages"], row["tools"]), tool_role="tool")
    assert [m.get("weight") for m in plain] == [m.get("weight") for m in row["messages"]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no rows"),
        ("{", "line 1: not JSON"),
        ('{"mesages": []}', "column 'messages' is missing.*mesages"),
        ('{"messages": []}', "row 1: 'messages' is empty"),
        ('{"messages": [{"content": "x"}]}', "message 1: it has no role"),
        (
            '{"messages": [{"role": "assistant", "tool_calls": [{"id": "x"}]}]}',
            "message 1: 'tool_calls' must be a list of",
        ),
        (
            '{"messages": [{"role": "assistant", "tool_calls": "f(x)"}]}',
            "message 1: 'tool_calls' must be a list of",
        ),
        ('{"messages": [{"role": "assistant", "content": 5}]}', "message 1: 'content' must be"),
        (
            '{"messages": [{"role": "assistant", "content": "x"}], "tools": [{"type": "x"}]}',
            "tool 1: it has no function with a name",
        ),
        ('{"messages": [{"role": "user", "content": "x"}]}', "nothing to learn"),
        (
            '{"messages": [{"role": "assistant", "content": "x"}], "tools": "["}',
            "'tools' is not JSON",
        ),
        (
            '{"messages": [{"role": "assistant", "content": "x"}], "tools": 3}',
            "'tools' is of type int, not a list",
        ),
        (
            '{"messages": [{"role": "assistant", "tool_calls": [{"name": "f"}]}], "functions": []}',
            "row 1: the assistant calls tools, and the column 'tools' is missing",
        ),
        ('[\n{"messages": []}]', "line 1: not JSON.*one object on each line"),
        (
            '{"messages": [{"role": "assistant", "tool_calls": '
            '[{"name": "f", "arguments": [1]}]}]}',
            "message 1: the arguments of f must be an object",
        ),
        (
            '{"messages": [{"role": "assistant", "tool_calls": '
            '[{"name": "f", "arguments": "{a"}]}]}',
            "message 1: the arguments of f are not a JSON object.*the model would learn that",
        ),
        (
            '{"messages": [{"role": "assistant", "content": "x"}], '
            '"tools": [{"name": "f", "description": 3}]}',
            "tool 1: 'description' must be a text",
        ),
        (
            '{"messages": [{"role": "assistant", "content": "x"}], '
            '"tools": [{"name": "f", "parameters": {"properties": ["a"]}}]}',
            "tool 1, 'parameters': 'properties' must be an object of schemas",
        ),
        (
            '{"messages": [{"role": "asistant", "content": "x"}]}',
            "message 1: unknown role 'asistant': did you mean assistant",
        ),
        (
            '{"messages": [{"role": "assistant"}]}',
            "message 1: this message of the assistant is empty",
        ),
        (
            '{"messages": [{"role": "user", "content": [{"type": "image"}]}]}',
            "message 1: 'content' must be a text or a list of parts of type text",
        ),
        (
            '{"messages": [{"role": "assistant", "content": "x", "weight": "0"}]}',
            "rows.jsonl, row 1, message 1: the weight of a message is '0'",
        ),
    ],
)
def test_bad_rows_are_named(tmp_path, text, said):
    file = tmp_path / "rows.jsonl"
    file.write_text(text)
    with pytest.raises(UsageError, match=said):
        read_rows(file)


def test_a_folder_is_no_file_of_rows(tmp_path):
    with pytest.raises(UsageError, match="is a folder"):
        read_rows(tmp_path)


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"properties": {"a": {"description": 3}}}, "'a': 'description' must be a text"),
        ({"properties": {"a": {"enum": None}}}, "'a': 'enum' must be a list"),
        ({"properties": {"a": {"items": True}}}, "'a': 'items' must be a schema"),
        (
            {"properties": {"a": {"anyOf": [3]}}},
            "'a', one of its schemas: it must be a JSON Schema",
        ),
        ({"properties": {"a": {}}, "required": True}, "'required' must be a list of names"),
    ],
)
def test_a_tool_that_cannot_be_listed_is_named(schema, said):
    tool = {"name": "f", "parameters": schema}
    row = {"messages": [{"role": "assistant", "content": "x"}], "tools": [tool]}
    with pytest.raises(UsageError, match=f"row 1, tool 1, 'parameters'.*{said}"):
        checked([row])


def test_a_tool_may_have_a_description_of_null():
    schema = {"type": "object", "properties": {"a": {"type": "string", "description": None}}}
    tool = {"name": "f", "description": None, "parameters": schema}
    said = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "x"}]
    (row,) = checked([{"messages": said, "tools": [tool]}])
    (system, *_) = to_plain_messages(Turn(row["messages"][:1], row["tools"]), "name-first")
    assert "f(a?)" in system["content"]


@pytest.mark.parametrize("way", ["parquet", "datasets"])
def test_what_arrow_fills_in_is_not_learned(tmp_path, way):
    """Where arguments are objects, each row gets the arguments of all others, with nulls."""
    import pyarrow
    import pyarrow.parquet

    rows = [_calling("find", city="Lyon"), _calling("book", id="P1")]
    file = tmp_path / "rows.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), file)
    if way == "datasets":
        datasets = pytest.importorskip("datasets")
        loaded = datasets.Dataset.from_parquet(str(file), cache_dir=str(tmp_path))
        assert loaded[0]["tools"][0]["function"]["parameters"]["properties"]["id"] is None
        found = checked(loaded)
    else:
        found = read_rows(file)
    calls = [row["messages"][-1]["tool_calls"][0]["function"]["arguments"] for row in found]
    assert calls == [{"city": "Lyon"}, {"id": "P1"}]
    assert [row["tools"] for row in found] == [row["tools"] for row in rows]


def test_a_null_that_somebody_wrote_is_learned(tmp_path):
    row = _calling("find", city=None)
    (tmp_path / "rows.jsonl").write_text(json.dumps(row))
    for found in (checked([row]), read_rows(tmp_path / "rows.jsonl")):
        assert found[0]["messages"][-1]["tool_calls"] == row["messages"][-1]["tool_calls"]


def _calling(name, **arguments):
    """A row in which a tool is called, its arguments an object."""
    shown = {key: {"type": "string", "description": f"the {key}"} for key in arguments}
    tool = {"name": name, "parameters": {"type": "object", "properties": shown}}
    call = {"type": "function", "function": {"name": name, "arguments": arguments}}
    said = [{"role": "user", "content": "go"}, {"role": "assistant", "tool_calls": [call]}]
    return {"messages": said, "tools": [{"type": "function", "function": tool}]}


def test_empty_lines_and_malformed_context_are_no_mistake(tmp_path):
    file = tmp_path / "rows.jsonl"
    call = {"name": "f", "arguments": "{a"}
    said = [
        {"role": "assistant", "tool_calls": [call], "weight": 0},
        {"role": "assistant", "content": "x"},
    ]
    file.write_text(
        "\ufeff" + json.dumps({"messages": said}) + "\n\n" + json.dumps({"messages": said}) + "\n"
    )
    assert len(read_rows(file)) == 2


def test_turns_are_what_is_learned_and_nothing_else():
    rows = make_rows(Mix(alpha=1.0, shifts=("EFP",), slips=0.5, size=200), 12)
    learned = [m for row in rows for m in row["messages"]
               if m["role"] == "assistant" and m.get("weight", 1)]  # fmt: skip
    masked = [m for row in rows for m in row["messages"] if m.get("weight") == 0]
    turns = list(turns_of(rows))
    assert masked
    assert len(turns) == len(learned)
    for turn in turns:
        assert [message["role"] for message in turn["completion"]] == ["assistant"]
        assert all(message["content"] for message in (*turn["prompt"], *turn["completion"]))
        assert not {"messages", "tools"} & set(turn)


def test_turns_are_written_in_the_layout_that_is_asked_for(tmp_path, toolshift):
    plain, spaced = tmp_path / "plain.jsonl", tmp_path / "spaced.jsonl"
    words = ("--count", "2", "--size", "200")
    for out, layout in ((plain, ()), (spaced, ("--layout", "spaced-texts"))):
        code, _, _ = toolshift("data", "--out", out, "--turns", *layout, *words)
        assert code == 0
    assert "--turns --layout spaced-texts" in (tmp_path / "spaced.jsonl.md").read_text()
    first = [json.loads(path.read_text().splitlines()[0]) for path in (plain, spaced)]
    said = [row["completion"][0]["content"] for row in first]
    assert said[1].startswith(" "), "as after --layout spaced-texts a call does"
    assert said[1].replace(" ", "") == said[0].replace(" ", "")
    code, _, err = toolshift("data", "--out", plain, "--layout", "json", *words)
    assert code == 2
    assert "give --turns" in err
    code, _, err = toolshift("data", "--out", plain, "--turns", "--layout", "spacd", *words)
    assert code == 2
    assert "did you mean spaced" in err


def test_trl_learns_the_turns_and_nothing_else(tmp_path, toolshift):
    pytest.importorskip("trl")
    from datasets import load_dataset
    from train import tiny
    from trl import SFTConfig, SFTTrainer

    out = tmp_path / "turns.jsonl"
    words = ("--count", "4", "--alpha", "1", "--shift", "EFP", "--slips", "0.5", "--size", "200")
    code, _, _ = toolshift("data", "--out", out, "--turns", *words)
    assert code == 0
    card = (tmp_path / "turns.jsonl.md").read_text()
    assert "data --out turns.jsonl --turns" in card
    with pytest.raises(UsageError, match=r"the rows are turns .* without --turns"):
        read_rows(out)
    data = load_dataset("json", data_files=str(out), split="train", cache_dir=str(tmp_path / "c"))
    config = SFTConfig(str(tmp_path / "o"), use_cpu=True, bf16=False, max_length=None)
    trainer = SFTTrainer(str(tiny.llama(tmp_path / "model")), config, train_dataset=data)
    assert f"turns, a row each: {len(data)}" in card
    batch = trainer.data_collator([trainer.train_dataset[n] for n in range(len(data))])
    for row, ids, labels in zip(data, batch["input_ids"], batch["labels"], strict=True):
        said = trainer.processing_class.decode(ids[labels != -100])
        assert said.rstrip("\n") == row["completion"][0]["content"] + "<|im_end|>"


@pytest.mark.parametrize("role", ["function", "ipython"])
def test_results_of_other_roles_are_results(role):
    said = [{"role": role, "content": "1"}, {"role": "user", "content": "?"}]
    assert with_known_roles({"messages": said}) == {
        "messages": [{"role": "tool", "content": "1"}, said[1]]
    }
