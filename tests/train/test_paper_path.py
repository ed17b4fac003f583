"""The path of the preset `paper` on a few-layer Qwen2 with random weights and Qwen2.5's template.

The classes, the chat template, the precision and the settings are the preset's; the size is not,
and neither are the tokenizer (a small byte-level BPE with Qwen's special tokens) and the device.
Nothing here is evidence of what a model learns.
"""

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")

from train import tiny  # noqa: E402
from train.two_processes import settings  # noqa: E402

from toolshift.agents.local import LocalAgent  # noqa: E402
from toolshift.core.message import Turn  # noqa: E402
from toolshift.train.callbacks import checkpoints  # noqa: E402
from toolshift.train.curves import read_curves  # noqa: E402
from toolshift.train.presets import preset  # noqa: E402
from toolshift.train.sft import train  # noqa: E402


@pytest.fixture(scope="module")
def qwen(tmp_path_factory):
    return str(tiny.qwen(tmp_path_factory.mktemp("models") / "qwen"))


def losses(out):
    return [line["loss"] for line in read_curves(out / "curves.jsonl")]


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_static_and_shifted_rows_train(alpha, qwen, tmp_path):
    made = settings(qwen, steps=4, accumulate=2)
    assert made.checkpointing
    assert made.full
    assert made.precision == "bfloat16"
    out = train(tiny.rows(alpha=alpha), made, tmp_path / "out")
    found = losses(out)
    assert found[-1] < found[0] - 0.3
    row = tiny.rows()[0]
    agent = LocalAgent(out, layout=made.layout)
    assert agent.reply(Turn(row["messages"][:2], row["tools"])).usage.output_tokens > 0


def test_recomputed_activations_change_nothing(qwen, tmp_path):
    made = settings(qwen, steps=3, accumulate=2)
    kept = msgspec.structs.replace(made, checkpointing=False, share=True)
    one = losses(train(tiny.rows(), made, tmp_path / "one"))
    other = losses(train(tiny.rows(), kept, tmp_path / "other"))
    assert one == pytest.approx(other, rel=2e-3)  # bf16


def in_two_processes(what, qwen, out):
    """What each of two processes found."""
    script = str(Path(__file__).with_name("two_processes.py"))
    command = [*tiny.two_processes(), script, what, qwen, str(out)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr[-3000:]
    return [json.loads((out / f"{what}-{rank}.json").read_text()) for rank in (0, 1)]


@pytest.mark.slow
def test_two_processes_take_the_steps_of_one(qwen, tmp_path):
    both = tmp_path / "both"
    found = in_two_processes("trained", qwen, both)
    record = json.loads((both / "training.json").read_text())
    assert record["hardware"]["processes"] == 2
    assert [path.name for path in checkpoints(both)] == ["checkpoint-2"]
    # The order of rows is one; two processes take them in turns, as two accumulated batches do.
    alone = train(tiny.rows(alpha=1.0), settings(qwen, steps=4, accumulate=2), tmp_path / "alone")
    assert losses(both) == pytest.approx(losses(alone), rel=2e-3)
    tokens = [read_curves(out / "curves.jsonl")[-1]["tokens"] for out in (both, alone)]
    assert tokens[0] == tokens[1]
    for each in found:
        once, resumed = each["losses"]
        assert len(once) == 6
        assert resumed == pytest.approx(once, rel=1e-3)
        before, after = each["threads"]
        assert any("gloo" in name for name in before) or sys.platform != "linux"
        assert not any("gloo" in name for name in after), "such threads may abort a process"
    row = tiny.rows()[0]
    for folder in (both, both / "checkpoint-2"):
        agent = LocalAgent(folder, layout=preset("paper").layout)
        assert agent.reply(Turn(row["messages"][:2], row["tools"])).usage.output_tokens > 0


@pytest.mark.slow
def test_shards_change_no_loss(qwen, tmp_path):
    for whole, sharded in in_two_processes("sharded", qwen, tmp_path):
        assert sharded == pytest.approx(whole, rel=1e-4)
