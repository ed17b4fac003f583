"""What `test_paper_path.py` runs in each of two processes, under `accelerate launch`."""

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import torch
from torch.distributed.fsdp import fully_shard
from train import tiny

from toolshift.train.batches import Encoder, collate, encode_rows
from toolshift.train.curves import read_curves
from toolshift.train.loss import add_loss
from toolshift.train.model import find_base, load
from toolshift.train.presets import preset
from toolshift.train.running import leave_the_others
from toolshift.train.sft import train

torch.set_num_threads(1)


def settings(model, **changes):
    return preset("paper", model=model, lr=1e-2, batch=1, threads=1, save_every=0, **changes)


def sharded_loss(model):
    """The loss of one batch and the norm of its gradient, with and without FSDP2's shards."""
    made = settings(model)
    base = find_base(made)
    encoder = Encoder(base.tokenizer, base.template, made.layout, base.tool_role)
    batch = collate(encode_rows(tiny.rows()[:2], encoder))
    batch.pop("tokens")
    found = []
    for sharded in (False, True):
        loaded = load(made, base)
        add_loss(loaded, share=False)
        if sharded:
            mesh = torch.distributed.init_device_mesh("cpu", (2,))
            for layer in loaded.model.layers:
                fully_shard(layer, mesh=mesh)
            fully_shard(loaded, mesh=mesh)
        loss = loaded(**batch)
        loss.backward()
        norm = torch.nn.utils.get_total_norm([weight.grad for weight in loaded.parameters()])
        norm = norm.full_tensor() if hasattr(norm, "full_tensor") else norm
        found.append([loss.item(), norm.item()])
    return found


def resumed_losses(rows, model, out):
    """The losses of a run of three passes, and of the same run resumed in the second of them."""
    made = settings(model, steps=6, accumulate=1, save_at=(3,))
    found = []
    for resume in (False, 3):
        train(rows, made, out, resume=resume)
        torch.distributed.barrier()
        found.append([line["loss"] for line in read_curves(out / "curves.jsonl")])
        torch.distributed.barrier()
    return found


def threads():
    """The names of the threads of this process, where the system tells them."""
    return [name.read_text().strip() for name in Path("/proc/self/task").glob("*/comm")]


def trained(model, out):
    """Trains, also with a resumption, and leaves the other process."""
    rows = tiny.rows(alpha=1.0)
    train(rows, settings(model, steps=4, accumulate=1, save_at=(2,)), out)
    losses = resumed_losses(rows[:4], model, out / "resumed")
    before = threads()
    leave_the_others()
    return {"losses": losses, "threads": [before, threads()]}


def sharded(model, out):
    """Computes a loss with and without shards."""
    torch.distributed.init_process_group("gloo")
    found = sharded_loss(model)
    torch.distributed.destroy_process_group()
    return found


if __name__ == "__main__":
    what, model, out = sys.argv[1:]
    found = {"trained": trained, "sharded": sharded}[what](model, Path(out))
    Path(out, f"{what}-{os.environ['RANK']}.json").write_text(json.dumps(found))
    if what == "sharded":
        os._exit(0)  # the shards' meshes hold connections, which may abort it as it ends
