"""`toolshift.train_sft`: one call that checks its settings, trains and evaluates."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("trl")

from train import tiny
from train.tiny import losses

import toolshift
from toolshift.train.curves import read_curves

MIX = toolshift.Mix(kinds=tiny.KINDS, alpha=0.5, shifts=("SBP",), size=200)


def test_a_run_is_trained_and_evaluated_on_the_mix(model, tmp_path):
    rows = toolshift.make_rows(MIX, 8)
    changes: dict[str, Any] = {"model": str(model), "steps": 2, "eval_every": 2, "eval_scenes": 1}
    out = toolshift.train_sft(
        rows, str(tmp_path / "out"), preset="smoke", mix=MIX, rank=4, save_at=[1], **changes
    )
    assert out == tmp_path / "out"
    assert len(losses(out)) == 2
    (evaluated,) = [line for line in read_curves(out / "curves.jsonl") if "clean_loss" in line]
    assert "shifted_loss" in evaluated
    settings = json.loads((out / "training.json").read_text())["settings"]
    assert (settings["preset"], settings["steps"], settings["save_at"]) == ("smoke", 2, [1])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"preset": "smal"}, "did you mean small"),
        ({"warm_up": 0.1}, "did you mean warmup"),
        ({"lr": "fast"}, "lr: Expected `float`"),
        ({"lr": -1.0}, "above 0"),
        ({"save_at": "200"}, "save_at: Expected"),
        ({"steps": None}, "steps: Expected `int`"),
        ({"layout": "jsn"}, "did you mean json"),
        ({"epochs": 0}, "nothing would be trained"),
    ],
    ids=str,
)
def test_a_wrong_setting_is_said_before_anything_starts(given, said, tmp_path):
    with pytest.raises(toolshift.UsageError, match=said):
        toolshift.train_sft(tiny.rows(), tmp_path / "out", **given)
    assert not (tmp_path / "out").exists()
