"""What `test_paper_path.py` runs in each of two processes, under `accelerate launch`."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import torch
from torch.distributed.fsdp import fully_shard
from train import tiny

from toolshift.train.batches import Encoder, collate, encode_rows
from toolshift.train.follow import read_curves
from toolshift.train.loss import add_loss
from toolshift.train.model import find_base, load
from toolshift.train.presets import preset
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


if __name__ == "__main__":
    model, out = sys.argv[1:]
    rows = tiny.rows(alpha=1.0)
    train(rows, settings(model, steps=4, accumulate=1, save_at=(2,)), Path(out))
    losses = resumed_losses(rows[:4], model, Path(out, "resumed"))
    Path(out, f"resumed-{torch.distributed.get_rank()}.json").write_text(json.dumps(losses))
    shards = sharded_loss(model)
    Path(out, f"rank-{torch.distributed.get_rank()}.json").write_text(json.dumps(shards))
    torch.distributed.destroy_process_group()
