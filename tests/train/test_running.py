"""How a run stops: Ctrl-C, numbers that are none, too little memory."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")

import msgspec  # noqa: E402
import transformers  # noqa: E402
from train import tiny  # noqa: E402
from train.tiny import full, lora, losses  # noqa: E402

from toolshift.core.errors import UsageError  # noqa: E402
from toolshift.lm.checkpoint import training_record  # noqa: E402
from toolshift.train.callbacks import checkpoints  # noqa: E402
from toolshift.train.running import SafeTrainerMixin  # noqa: E402
from toolshift.train.sft import train  # noqa: E402

torch.set_num_threads(1)  # tests run beside each other


def test_ctrl_c_leaves_a_checkpoint(model, tmp_path, capsys):
    def press(base):
        def evaluate(live):
            os.kill(os.getpid(), signal.SIGINT)
            return {}

        return evaluate

    out, made = tmp_path / "out", lora(model, batch=2, epochs=2, eval_every=3)
    with pytest.raises(KeyboardInterrupt):
        train(tiny.rows(), made, out, evaluate=press)
    assert "--resume continues" in capsys.readouterr().err
    assert [path.name for path in checkpoints(out)] == ["checkpoint-4"]
    assert len(losses(out)) == 4
    with pytest.raises(UsageError, match="already contains a run"):
        train(tiny.rows(), made, out)
    with pytest.raises(UsageError, match=r"other settings or data \(lr\)"):
        train(tiny.rows(), msgspec.structs.replace(made, lr=0.1), out, resume=True)
    with pytest.raises(UsageError, match=r"other settings or data \(the rows or scenes\)"):
        train(tiny.rows()[:-1], made, out, resume=True)
    with pytest.raises(UsageError, match="no checkpoint of step 5; there are: 4"):
        train(tiny.rows(), made, out, resume=5)
    calm = msgspec.structs.replace(made, eval_every=0)
    assert len(losses(train(tiny.rows(), calm, out, resume=True))) == 12


def test_ctrl_c_in_the_last_step_keeps_the_result_and_ends_what_follows(model, tmp_path, capsys):
    def press(base):
        return lambda live: os.kill(os.getpid(), signal.SIGTERM) or {}

    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        train(tiny.rows(), lora(model, steps=2, eval_every=2), out, evaluate=press)
    assert (out / "adapter_model.safetensors").exists()
    assert training_record(out)["steps"] == 2
    assert "That was the last step" in capsys.readouterr().err


def test_a_loss_that_is_no_number_stops_the_run(model, tmp_path):
    def poisoned(row, tokens, given):
        given[given != 0] = float("inf")
        return given

    with pytest.raises(UsageError, match=r"the loss became .* lower the learning rate"):
        train(tiny.rows(), lora(model), tmp_path / "out", weigh=poisoned)


def test_a_gradient_that_is_no_number_does_not_reach_the_weights(model, tmp_path, monkeypatch):
    step = SafeTrainerMixin.training_step

    def overflowing(self, model, *args, **kwargs):
        loss = step(self, model, *args, **kwargs)
        if self.state.global_step == 1:
            next(p for p in model.parameters() if p.requires_grad).grad.fill_(torch.inf)
        return loss

    monkeypatch.setattr(SafeTrainerMixin, "training_step", overflowing)
    asked = msgspec.structs.replace(lora(model), steps=3, save_every=1)
    with pytest.raises(UsageError, match=r"the gradient became .* in step 2: lower the learning"):
        train(tiny.rows(), asked, tmp_path / "out")
    kept = [each.name for each in checkpoints(tmp_path / "out")]
    assert kept == ["checkpoint-1"]


SHORT_OF_MEMORY = """
import resource, sys
from pathlib import Path

sys.path.insert(0, sys.argv[1])
from train import tiny
from toolshift.core.errors import UsageError
from toolshift.train.sft import train

rows = tiny.rows() * 10
pages = int(Path("/proc/self/statm").read_text().split()[0])
most = pages * resource.getpagesize() + 400_000_000
resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))
try:
    train(rows, tiny.full(sys.argv[2], batch=120), Path(sys.argv[3]))
except UsageError as fault:
    print(fault)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space")
def test_running_out_of_memory_says_what_to_change(model, tmp_path):
    # In a process of its own: this one may have room left that earlier tests have given back.
    given = (Path(__file__).parents[1], model, tmp_path / "out")
    done = subprocess.run(
        [sys.executable, "-c", SHORT_OF_MEMORY, *map(str, given)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    said = r"memory ran out: start again .* with a smaller batch \(it is 120"
    assert re.search(said, done.stdout), done.stderr


def test_a_model_that_does_not_fit_into_memory_says_what_to_change(model, tmp_path, monkeypatch):
    def load(*_):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr("toolshift.train.sft.load", load)
    with pytest.raises(UsageError, match=r"memory ran out: .* LoRA instead of --full"):
        train(tiny.rows(), full(model), tmp_path / "out")


LITTLE_ROOM = """
import resource, sys
from pathlib import Path

sys.path.insert(0, sys.argv[1])
from train import tiny
from toolshift.core.errors import UsageError
from toolshift.train.sft import train

most = int(sys.argv[4])
resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
try:
    train(tiny.rows(), tiny.full(sys.argv[2], steps=2, save_every=1), Path(sys.argv[3]))
except UsageError as fault:
    print(fault)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the size of files")
def test_a_full_disk_is_named_with_the_way_on(model, tmp_path):
    out = tmp_path / "out"
    train(tiny.rows(), full(model, steps=1, save_every=1), tmp_path / "whole")
    (checkpoint,) = checkpoints(tmp_path / "whole")
    # The model fits and the state of the optimizer does not; then the model does not either.
    weights = (checkpoint / "model.safetensors").stat().st_size
    for most in (weights + 1000, weights - 1000):
        given = (Path(__file__).parents[1], model, out, most)
        done = subprocess.run(
            [sys.executable, "-c", LITTLE_ROOM, *map(str, given)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        said = rf"{out}: what was trained cannot be written .* run the same command again$"
        assert re.search(said, done.stdout), done.stderr
        assert not list(out.glob("checkpoint-*"))


def test_a_result_that_has_no_room_leaves_what_goes_on(model, tmp_path, monkeypatch):
    out, asked = tmp_path / "out", lora(model, steps=2, save_every=1)
    save = transformers.Trainer.save_model

    def no_room(self, output_dir=None, _internal_call=False):
        if not _internal_call:
            raise OSError(28, "Full")
        save(self, output_dir, _internal_call)

    monkeypatch.setattr(transformers.Trainer, "save_model", no_room)
    with pytest.raises(UsageError, match=r"Full.* with --resume, which goes on after step 2$"):
        train(tiny.rows(), asked, out)
    monkeypatch.undo()
    train(tiny.rows(), asked, out, resume=True)
    assert training_record(out)["steps"] == 2


def test_curves_that_have_no_room_say_where(model, tmp_path, monkeypatch):
    def no_room(*_):
        raise OSError(28, "No space left on device")  # the system names no file

    monkeypatch.setattr("toolshift.train.callbacks.Curves.add", no_room)
    with pytest.raises(UsageError, match=r"out: .*No space left.* the same command again$"):
        train(tiny.rows(), lora(model), tmp_path / "out")
