"""The folder of a run: one process at a time, and nothing in it that is not the run's is lost."""

import json
import multiprocessing
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")

from safetensors.torch import load_file, save_file  # noqa: E402
from train import tiny  # noqa: E402
from train.tiny import lora  # noqa: E402
from transformers import TrainerCallback  # noqa: E402

from toolshift.agents.local import LocalAgent  # noqa: E402
from toolshift.core.errors import UsageError  # noqa: E402
from toolshift.lm.checkpoint import training_record  # noqa: E402
from toolshift.train import record  # noqa: E402
from toolshift.train.callbacks import checkpoints  # noqa: E402
from toolshift.train.model import require_one_gpu, with_start  # noqa: E402
from toolshift.train.record import alone_in  # noqa: E402
from toolshift.train.rows import checked, read_rows, write_rows  # noqa: E402
from toolshift.train.sft import train  # noqa: E402

torch.set_num_threads(1)  # tests run beside each other
fork = multiprocessing.get_context("fork")  # a new process would import torch again


def holds(folder, pipe):
    with alone_in(folder):
        pipe.send("held")
        pipe.recv()


def test_a_second_process_is_kept_out_and_loses_nothing_of_the_first(model, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "curves.jsonl").write_text("{}\n")
    ours, its = fork.Pipe()
    other = fork.Process(target=holds, args=(out, its), daemon=True)
    other.start()
    assert ours.recv() == "held"
    with pytest.raises(UsageError, match="in use by another process"):
        train(tiny.rows(), lora(model, steps=1), out)
    assert (out / "curves.jsonl").read_text() == "{}\n"
    ours.send("go")
    other.join(20)
    train(tiny.rows(), lora(model, steps=1), out)
    assert not (out / ".lock").exists()


def test_a_readme_of_ones_own_is_kept(model, tmp_path):
    (tmp_path / "README.md").write_text("mine")
    train(tiny.rows(), lora(model, steps=1), tmp_path)
    assert (tmp_path / "README.md").read_text() == "mine"


def test_kept_checkpoints_stay_when_a_run_is_resumed_without_their_option(model, tmp_path):
    train(tiny.rows(), lora(model, steps=6, save_at=(2, 4)), tmp_path)
    for name in ("training.json", "adapter_model.safetensors"):
        (tmp_path / name).unlink()
    train(tiny.rows(), lora(model, steps=6, save_every=1), tmp_path, resume=4)
    assert [path.name for path in checkpoints(tmp_path)][:2] == ["checkpoint-2", "checkpoint-4"]


def test_a_run_is_gone_on_with_after_a_resumption_that_was_refused(model, tmp_path):
    train(tiny.rows(4), lora(model, epochs=2, save_at=(1,)), tmp_path)
    with pytest.raises(UsageError, match=r"after step 99, but the run has only 2"):
        train(tiny.rows(4), lora(model, epochs=2, save_at=(99,)), tmp_path, resume=1)
    train(tiny.rows(4), lora(model, epochs=2), tmp_path, resume=1)
    assert training_record(tmp_path)["settings"]["save_at"] == [1]


def test_another_number_of_processes_is_another_run(model, tmp_path, monkeypatch):
    train(tiny.rows(), lora(model, steps=3, save_at=(2,)), tmp_path)
    monkeypatch.setattr(record, "processes", lambda: 2)
    with pytest.raises(UsageError, match="the number of processes"):
        train(tiny.rows(), lora(model, steps=3, save_at=(2,)), tmp_path, resume=True)


def test_a_model_is_run_and_trained_on_with_its_own_layout(model, tmp_path):
    train(tiny.rows(), lora(model, steps=1, layout="name-first"), tmp_path / "first")
    assert LocalAgent(model, tmp_path / "first").layout == "name-first"
    assert LocalAgent(model, tmp_path / "first", layout="json").layout == "json", "asked for"
    assert LocalAgent(model).layout == "description-first"
    more = lora(model, steps=1, adapter=str(tmp_path / "first"))
    with pytest.raises(UsageError, match="use --layout name-first"):
        train(tiny.rows(), more, tmp_path / "second")


def test_a_checkpoint_says_its_layout_and_its_base(model, tmp_path):
    train(tiny.rows(), lora(model, steps=2, layout="name-first", save_at=(1,)), tmp_path / "first")
    checkpoint = tmp_path / "first" / "checkpoint-1"
    assert LocalAgent(model, checkpoint).layout == "name-first"
    assert with_start({"adapter": str(checkpoint)})["layout"] == "name-first"
    with pytest.raises(UsageError, match="use --layout name-first"):
        train(tiny.rows(), lora(model, steps=1, adapter=str(checkpoint)), tmp_path / "second")
    other = tiny.llama(tmp_path / "other", hidden_act="gelu")
    weights = load_file(other / "model.safetensors")
    weights["model.norm.weight"] += 1
    save_file(weights, other / "model.safetensors", {"format": "pt"})
    with pytest.raises(UsageError, match="trained on other weights"):
        LocalAgent(other, checkpoint)


def test_a_run_that_is_resumed_from_its_last_step_is_the_same_run(model, tmp_path):
    asked = lora(model, steps=2, save_at=(2,))
    train(tiny.rows(), asked, tmp_path)
    curves = (tmp_path / "curves.jsonl").read_text()
    before = training_record(tmp_path)
    train(tiny.rows(), asked, tmp_path, resume=2)
    after = training_record(tmp_path)
    assert (tmp_path / "curves.jsonl").read_text() == curves
    for name in ("steps", "tokens", "last_loss"):
        assert after[name] == before[name], name


def test_one_process_that_sees_two_gpus_is_refused_at_once(model, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(UsageError, match=r"one process sees 2 GPUs.*CUDA_VISIBLE_DEVICES=0"):
        train(tiny.rows(), lora(model, steps=1), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    monkeypatch.setenv("WORLD_SIZE", "2")
    require_one_gpu()


def test_the_command_goes_on_in_the_layout_of_what_it_starts_from(model, tmp_path):
    train(tiny.rows(), lora(model, steps=1, layout="name-first"), tmp_path)
    start = {"adapter": str(tmp_path), "lr": 1e-4}
    assert with_start(start) == {**start, "layout": "name-first"}
    assert with_start({**start, "layout": "json"})["layout"] == "json", "asked for"
    assert with_start({"model": str(model)}) == {"model": str(model)}, "nobody knows"
    assert Path(with_start({"adapter": "smol:paft"})["adapter"]).is_dir()


def test_a_callback_of_ones_own_is_called(model, tmp_path):
    losses = []

    class ActResult(TrainerCallback):
        def on_log(self, args, state, control, logs=None, **_):
            losses.append(logs.get("loss"))

    train(tiny.rows(), lora(model, steps=2), tmp_path, callbacks=[ActResult()])
    assert all(losses[:2])


def test_what_is_no_record_is_none(tmp_path):
    for text in ("// a comment", "[]", json.dumps({"hidden_size": 64})):
        (tmp_path / "training.json").write_text(text)
        assert training_record(tmp_path) == {}


def test_rows_are_the_same_by_way_of_datasets(tmp_path):
    datasets = pytest.importorskip("datasets")
    first, *others = tiny.rows()
    spoken = [m for m in first["messages"] if m["role"] == "assistant"]
    messages = [{**m, "weight": 0} if m is spoken[0] else m for m in first["messages"]]
    write_rows([{**first, "messages": messages}, *others], tmp_path / "rows.parquet")
    loaded = datasets.load_dataset(
        "parquet", data_files=str(tmp_path / "rows.parquet"), cache_dir=str(tmp_path / "cache")
    )
    nulls = [m for row in loaded["train"] for m in row["messages"] if m.get("weight", 1) is None]
    assert nulls, "a fixed schema fills in what a message lacks"
    assert checked(loaded["train"]) == read_rows(tmp_path / "rows.parquet")


def test_a_file_in_place_of_the_folder_is_refused(model, tmp_path):
    (tmp_path / "out").write_text("mine")
    with pytest.raises(UsageError, match=r"out is a file: name a folder"):
        train(tiny.rows(), lora(model), tmp_path / "out")
    assert (tmp_path / "out").read_text() == "mine"
