"""Training on conversations of the user's, a share of them shifted."""

import json

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")

from conversations import openai, question  # noqa: E402
from train import tiny  # noqa: E402

from toolshift.cli.paft import PaftOptions, paft_command  # noqa: E402
from toolshift.cli.sft import SftOptions, sft_command  # noqa: E402
from toolshift.core.errors import UsageError  # noqa: E402
from toolshift.data.augment import Recipe  # noqa: E402
from toolshift.data.conversation import portable  # noqa: E402
from toolshift.data.formats import FORMATS, ONLY_BACK  # noqa: E402
from toolshift.train.data import make_rows  # noqa: E402
from toolshift.train.own_data import check_shifted, own_rows  # noqa: E402
from toolshift.train.rows import read_rows  # noqa: E402
from toolshift.train.scenes import Mix  # noqa: E402

torch.set_num_threads(1)  # tests run beside each other
OPENAI = FORMATS.find("openai")
FORMS = [name for name in FORMATS.names() if name not in ONLY_BACK]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return str(tiny.llama(tmp_path_factory.mktemp("models") / "llama"))


def row_of(name, seed):
    if name == "xlam":
        return question(seed)
    row = openai(seed)
    return row if name == "openai" else FORMATS.find(name).write(OPENAI.read(row), None)


def written(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def paft(data, out, model, **changes):
    plain = {"preset": "small", "model": model, "lr": 0.02, "threads": 1, "steps": 2, "full": True}
    given = {**plain, "alpha": 0.5, "as_json": True, **changes}
    paft_command(PaftOptions(data=data, out=out, **given))


@pytest.mark.parametrize("name", FORMS)
def test_every_format_gives_rows_with_a_mask(name, tmp_path):
    source = written(tmp_path / "in.jsonl", [row_of(name, seed) for seed in range(12)])
    found = own_rows(source, Recipe(alpha=1.0, shifts=("transient_error:1",)))
    assert found.conversations == sum(found.shifted.values()) == 12
    assert check_shifted(found, Recipe(alpha=1.0)) == ""
    for row in found.rows:
        spoken = [each for each in row["messages"] if each["role"] == "assistant"]
        failed = [each for each in spoken if each.get("weight") == 0]
        assert failed
        for each in failed:
            answer = row["messages"][row["messages"].index(each) + 1]
            assert "error" in json.loads(answer["content"])
        assert any(each.get("weight") != 0 for each in spoken)


def test_provoked_failures_carry_no_loss(model, tmp_path, capsys):
    source = written(tmp_path / "in.jsonl", [openai(seed) for seed in range(4)])
    shifts = {"alpha": 1.0, "shifts": ("transient_error:1",)}
    paft(source, None, model, show_mask=True, **shifts)
    shown = capsys.readouterr().out
    found = own_rows(source, Recipe(alpha=1.0, shifts=("transient_error:1",)))
    spoken = [each for each in found.rows[0]["messages"] if each["role"] == "assistant"]
    learned = sum(each.get("weight") != 0 for each in spoken)
    assert shown.count("[[") - 1 == learned < len(spoken)  # one stands in the legend


def test_a_run_on_own_data_is_recorded_and_resumed(model, tmp_path, capsys):
    rows = [row_of(name, seed) for seed, name in enumerate(FORMS * 2)]
    source = written(tmp_path / "mixed.jsonl", rows)
    with source.open("a") as file:
        file.write("{broken\n")
    whole, part = tmp_path / "whole", tmp_path / "part"
    paft(source, whole, model, seed=3, save_at="1")
    said = capsys.readouterr()
    record = json.loads(said.out)
    assert f"line {len(rows) + 1}: not JSON" in said.err
    assert f"1 of {len(rows) + 1} conversations are left out" in said.err
    assert record["data"]["recipe"]["alpha"] == 0.5
    assert record["data"]["conversations"] == len(rows)
    assert sum(record["data"]["shifted"].values()) > 0
    paft(source, part, model, seed=3, save_at="1", resume=None)
    capsys.readouterr()
    (part / "training.json").unlink()
    paft(source, part, model, seed=3, save_at="1", resume="1")
    assert json.loads(capsys.readouterr().out)["last_loss"] == record["last_loss"]
    with pytest.raises(UsageError, match="the rows or scenes"):
        paft(source, part, model, seed=3, save_at="1", resume="1", alpha=0.2)


@pytest.mark.parametrize("name", FORMS)
def test_sft_reads_every_format_as_it_is(name, tmp_path):
    source = written(tmp_path / "in.jsonl", [row_of(name, seed) for seed in range(3)])
    for row, each in zip(read_rows(source), (row_of(name, seed) for seed in range(3)), strict=True):
        form = FORMATS.find(name)
        after, before = OPENAI.read(row), portable(form.read(each))
        assert [m.role for m in after.messages] == [m.role for m in before.messages]
        assert [t.function["name"] for t in after.tools] == [
            t.function["name"] for t in before.tools
        ]


TOOL = {"name": "get_rate", "parameters": {"type": "object", "properties": {"base": {}}}}
CALL = {"name": "get_rate", "arguments": '{"base": "USD"}'}
OLDER = {
    "as `function_call`": {
        "messages": [
            {"role": "user", "content": "Rate?"},
            {"role": "assistant", "content": None, "function_call": CALL},
            {"role": "function", "name": "get_rate", "content": "0.91"},
            {"role": "assistant", "content": "0.91"},
        ],
        "functions": [TOOL],
    },
    "in its text": {
        "messages": [
            {"role": "system", "content": f"<tools>\n{json.dumps(TOOL)}\n</tools>"},
            {"role": "user", "content": "Rate?"},
            {"role": "assistant", "content": f"<tool_call>{json.dumps(CALL)}</tool_call>"},
            {"role": "user", "content": "<tool_response>0.91</tool_response>"},
            {"role": "assistant", "content": "0.91"},
        ],
    },
}


@pytest.mark.parametrize("way", OLDER)
def test_sft_and_paft_read_calls_alike_where_messages_say_them_otherwise(way, tmp_path):
    source = written(tmp_path / "in.jsonl", [OLDER[way]])
    ours, mixed = read_rows(source), own_rows(source, Recipe(alpha=0.0)).rows
    for row in (*ours, *mixed):
        called, result = [m for m in row["messages"] if m["role"] != "system"][1:3]
        ((name, given),) = [(c["function"]["name"], c["function"]) for c in called["tool_calls"]]
        assert (name, json.loads(given["arguments"])) == ("get_rate", {"base": "USD"})
        assert (result["role"], result["content"]) == ("tool", "0.91")
        assert [tool.get("function", tool)["name"] for tool in row["tools"]] == ["get_rate"]


def test_a_row_that_cannot_be_trained_on_says_where(tmp_path):
    row = openai(1)
    row["messages"].append({"role": "assistant", "content": ""})
    source = written(tmp_path / "in.jsonl", [openai(0), row])
    ((line, why),) = own_rows(source, Recipe(alpha=0.0)).faults
    place = len(row["messages"])
    assert line == 2
    assert why.startswith(f"as messages of OpenAI, message {place}: this message")


def test_what_cannot_work_is_said_first(model, tmp_path):
    source = written(tmp_path / "in.jsonl", [question(seed) for seed in range(6)])
    out = tmp_path / "out"
    with pytest.raises(UsageError, match="--kind is for scenes of built-in worlds"):
        paft(source, out, model, kinds=("listing",))
    with pytest.raises(UsageError, match="alpha is a share of the conversations"):
        paft(source, out, model, alpha=2)
    with pytest.raises(UsageError, match="cannot be applied to any of the 6 conversations"):
        paft(source, out, model, alpha=1.0, shifts=("merged_tools",))
    with pytest.raises(UsageError, match="is not there"):
        paft(tmp_path / "no.jsonl", out, model)
    (tmp_path / "bad.jsonl").write_text('{"conversations": [{"from": "king", "value": "x"}]}\n')
    with pytest.raises(UsageError, match=r"none of its rows can be trained on; line 1"):
        paft(tmp_path / "bad.jsonl", out, model)
    with pytest.raises(UsageError, match=r"bad.jsonl, row 1"):
        sft_command(SftOptions(data=tmp_path / "bad.jsonl", out=out, model=model))
    assert not out.exists()


def test_rows_of_bfcl_are_shifted_and_trained_on_like_any(tmp_path):
    pytest.importorskip("bfcl_eval", reason="bfcl-eval is not installed (make setup does it)")
    pytest.importorskip("mpmath", reason="mpmath is not installed (make setup does it)")
    rows = make_rows(Mix(worlds=("bfcl:simple_python", "bfcl:multiple")), 8)
    file = written(tmp_path / "bfcl.jsonl", rows)
    found = own_rows(file, Recipe(alpha=1.0, shifts=("SBP", "SRP", "distractors")))
    assert found.faults == []
    assert found.conversations == 8
    assert sum(found.shifted.values()) >= 7
    for row in found.rows:
        names = [tool["function"]["name"] for tool in row["tools"]]
        called = row["messages"][2]["tool_calls"][0]["function"]["name"]
        assert called in names[:-3]
        assert names[-3:] == ["final_answer", "refuse", "ask_user"]
