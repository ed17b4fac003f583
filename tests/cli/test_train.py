"""`toolshift train sft` and `toolshift train paft`, from their options to their results."""

import hashlib
import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")

from train import tiny  # noqa: E402

from toolshift.agents import local_kind  # noqa: E402
from toolshift.agents.local_kind import ADAPTERS, shipped_adapter  # noqa: E402
from toolshift.cli.paft import PaftOptions, paft_command  # noqa: E402
from toolshift.cli.sft import SftOptions, sft_command  # noqa: E402
from toolshift.core.errors import UsageError  # noqa: E402
from toolshift.train.curves import read_curves  # noqa: E402
from toolshift.train.rows import write_rows  # noqa: E402
from toolshift.train.settings import steps_of  # noqa: E402

torch.set_num_threads(1)  # tests run beside each other
MIXED = {"worlds": ("poi",), "kinds": tiny.KINDS, "shifts": ("SBP",), "size": 200}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return str(tiny.llama(tmp_path_factory.mktemp("models") / "llama"))


def asked(model, out, **changes):
    plain = {"preset": "small", "model": model, "out": out, "lr": 0.02, "threads": 1, "steps": 3}
    return {**plain, "as_json": True, **changes}


def sft(data, given):
    sft_command(SftOptions(data=data, **given))


def paft(alpha, count, mixed, given):
    paft_command(PaftOptions(alpha=alpha, count=count, **mixed, **given))


def test_sft_from_a_file(model, tmp_path, capsys):
    data = tmp_path / "rows.jsonl"
    write_rows(tiny.rows(), data)
    sft(data, asked(model, tmp_path / "out", save_at="1,2"))
    record = json.loads(capsys.readouterr().out)
    assert record["steps"] == 3
    assert record["data"]["file"] == "rows.jsonl"
    assert record["settings"]["save_at"] == [1, 2]
    assert record["settings"]["eval_every"] == 100, "unless told otherwise"
    sft(data, asked(model, tmp_path / "out", save_at="1,2", resume="1"))
    assert json.loads(capsys.readouterr().out)["last_loss"] == record["last_loss"]


def test_paft_makes_its_rows_and_looks_at_both_arms(model, tmp_path, capsys):
    paft(0.5, 8, MIXED, asked(model, tmp_path / "out", eval_every=3, eval_scenes=2))
    record = json.loads(capsys.readouterr().out)
    assert record["data"]["mix"]["alpha"] == 0.5
    last = read_curves(tmp_path / "out" / "curves.jsonl")[-1]
    assert {"clean_passed", "shifted_passed", "clean_loss", "shifted_loss"} < set(last)


def test_the_mask_is_shown_and_nothing_is_written(model, tmp_path, capsys):
    data = tmp_path / "rows.jsonl"
    write_rows(tiny.rows(), data)
    sft(data, asked(model, None, show_mask=True))
    shown = capsys.readouterr().out
    said = sum(each["role"] == "assistant" for each in tiny.rows()[0]["messages"])
    assert shown.count("<|im_end|>]]") == said
    assert list(tmp_path.iterdir()) == [data]


def test_the_mask_is_shown_of_a_row_that_has_one(model, tmp_path, capsys):
    plain = tiny.rows()
    slip = {"role": "assistant", "content": "a slip", "weight": 0}
    first, *rest = plain[1]["messages"]
    write_rows([plain[0], {**plain[1], "messages": [first, slip, *rest]}], tmp_path / "own.jsonl")
    sft(tmp_path / "own.jsonl", asked(model, None, show_mask=True))
    shown = capsys.readouterr().out
    assert "a slip" in shown
    assert "[[a slip" not in shown


def test_shifts_that_alpha_leaves_no_place_for_are_refused(model, tmp_path):
    with pytest.raises(
        UsageError, match=r"alpha 0.1 of 8 trajectories is less than one: raise --alpha"
    ):
        paft(0.1, 8, MIXED, asked(model, tmp_path / "out"))
    with pytest.raises(UsageError, match="that come 4 at a time is less than one"):
        paft(0.3, 8, {**MIXED, "share": 4}, asked(model, tmp_path / "out"))


def test_a_shipped_adapter_is_found_by_its_name(model, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    found = PaftOptions(alpha=0.0, **asked(model, tmp_path, adapter="smol:paft")).settings()
    assert Path(found.adapter, "adapter_model.safetensors").exists()
    assert len(list(Path(found.adapter).iterdir())) == 3  # and nothing that is compressed
    before = Path(found.adapter).stat().st_mtime_ns
    again = PaftOptions(alpha=0.0, **asked(model, tmp_path, adapter="smol:paft")).settings()
    assert (again.adapter, Path(again.adapter).stat().st_mtime_ns) == (found.adapter, before)
    for name in ("", "../adapters/paft"):
        with pytest.raises(UsageError, match=r"no shipped adapter .*: smol:paft, smol:static"):
            shipped_adapter(f"smol:{name}")
    with pytest.raises(UsageError, match="no shipped adapter 'smol:pafd'"):
        PaftOptions(alpha=0.0, **asked(model, tmp_path, adapter="smol:pafd")).settings()


def test_a_shipped_adapter_is_unpacked_by_several_at_once(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(shipped_adapter, ["smol:static"] * 4))
    (folder,) = found
    digest = hashlib.sha256((folder / "adapter_model.safetensors").read_bytes()).hexdigest()
    assert digest.startswith("d377b1261742b43d"), "of the stage it is of"
    assert [each.name for each in folder.parent.iterdir()] == ["static"], "no drafts are left"


def test_another_record_is_another_folder(tmp_path, monkeypatch):
    """An adapter's record says in which layout it is played."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(local_kind, "ADAPTERS", shutil.copytree(ADAPTERS, tmp_path / "package"))
    before = shipped_adapter("smol:paft")
    record = tmp_path / "package" / "paft" / "training.json"
    record.write_text(record.read_text().replace("spaced-texts", "json"))
    after = shipped_adapter("smol:paft")
    assert after != before
    assert (after / "training.json").read_text() == record.read_text()


def test_whether_an_agent_is_free_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert local_kind.SHIPPED_KIND.is_free("smol:paft")
    assert not list(tmp_path.iterdir())


def test_where_the_cache_cannot_be_written_it_is_said(tmp_path, monkeypatch):
    (tmp_path / "toolshift").write_text("a file, where a folder should be")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(UsageError, match=r"adapters.*static: cannot write there"):
        shipped_adapter("smol:static")


def test_what_cannot_work_is_said_first(model, tmp_path):
    out = tmp_path / "out"
    with pytest.raises(UsageError, match=r"alpha is a share .* not 1.5"):
        paft(1.5, 8, MIXED, asked(model, out))
    with pytest.raises(UsageError, match=r"unknown preset 'papr': did you mean paper"):
        paft(0.3, 8, MIXED, asked(model, out, preset="papr"))
    (tmp_path / "bad.jsonl").write_text('{"message": []}\n')
    with pytest.raises(UsageError, match=r"bad.jsonl, row 1: the column 'messages' is missing"):
        sft(tmp_path / "bad.jsonl", asked(model, out))
    with pytest.raises(UsageError, match="give --out"):
        sft(tmp_path / "bad.jsonl", asked(model, None))
    with pytest.raises(UsageError, match="write steps, as in"):
        steps_of("1,b")
    with pytest.raises(UsageError, match="--adapter has its own"):
        paft(0.3, 8, MIXED, asked(model, out, adapter="some/where", rank=4))
    with pytest.raises(UsageError, match="--rank works only with a LoRA adapter"):
        paft(0.3, 8, MIXED, asked(model, out, full=True, rank=4))
    without = [{k: v for k, v in row.items() if k != "world"} for row in tiny.rows()]
    write_rows(without, tmp_path / "own.jsonl")
    with pytest.raises(UsageError, match="an evaluation runs scenes of the worlds"):
        sft(tmp_path / "own.jsonl", asked(model, out, eval_every=1))
    wrong = [{**row, "messages": [{**m, "weight": -1} for m in row["messages"]]} for row in without]
    write_rows(wrong, tmp_path / "wrong.jsonl")
    with pytest.raises(UsageError, match="the weight of a message is -1"):
        sft(tmp_path / "wrong.jsonl", asked(model, None, show_mask=True))
    assert not out.exists()


def test_rows_that_name_no_world_are_trained_on_without_evaluation(model, tmp_path, capsys):
    data = tmp_path / "own.jsonl"
    write_rows([{k: v for k, v in row.items() if k != "world"} for row in tiny.rows()], data)
    sft(data, asked(model, tmp_path / "out"))
    said = capsys.readouterr()
    assert json.loads(said.out)["settings"]["eval_every"] == 0
    assert "No evaluation during training" in said.err


def test_rows_that_are_left_out_are_said_to_be(model, tmp_path, capsys):
    rows = tiny.rows()
    data, out = tmp_path / "rows.jsonl", tmp_path / "out"
    write_rows([*rows, {**rows[0], "messages": [*rows[0]["messages"]] * 40}], data)
    sft(data, asked(model, out, max_tokens=6000, as_json=False))
    said = capsys.readouterr()
    assert "mean loss of the last 10 steps" in said.out
    assert said.out.splitlines()[-1].startswith("Written: ")
    assert f"1 of {len(rows) + 1} rows were left out" in said.err
