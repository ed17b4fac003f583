"""Fits a LoRA adapter on recorded trajectories: SmolLM2-135M learns a world's tools on two cores.

    python studies/smol_static/fit.py --data train.jsonl --out adapters/poi

Each line of the data is `{"tools": [...], "messages": [...]}` in the OpenAI format. The loss is on
what the assistant says. Three things make it quick: logits are computed only where the loss is;
the rows of a batch that begin alike (one system message, one tool list) compute that beginning
once; rows of like length go together. A run that is broken off goes on from its last checkpoint.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

import torch
from peft import LoraConfig, get_peft_model
from transformers import AttentionInterface, AutoModelForCausalLM, AutoTokenizer
from transformers.cache_utils import DynamicCache

from toolshift.agent import Turn
from toolshift.agents.prompt import LAYOUTS, to_plain_messages
from toolshift.agents.smol import SMOL, chat_template, smol_directory, weights_hash

EVERY_LINEAR = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
POOL_OF_BATCHES = 16  # rows are sorted by length inside pools of so many batches
CHECKPOINT = "checkpoint.pt"


@dataclass(frozen=True)
class Row:
    """One trajectory: its tokens, which of them carry loss, and what its beginning hashes to."""

    tokens: list[int]
    loss: list[int]
    opening: int


def main() -> None:
    """Reads the arguments, fits, and writes the adapter with its config.json."""
    args = arguments()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    base = smol_directory() if args.model == SMOL else Path(args.model)
    rows = read_rows(args, base)
    model = adapted(base, args)
    spent = fit(model, rows, args)
    write(model, base, args, spent)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="JSONL of trajectories")
    parser.add_argument("--out", type=Path, required=True, help="folder for the adapter")
    parser.add_argument("--model", default=SMOL, help="model directory, or 'smol'")
    parser.add_argument("--limit", type=int, default=0, help="use the first N rows (0: all)")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--layout", choices=LAYOUTS, default=LAYOUTS[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save-every", type=int, default=50, help="steps between checkpoints")
    return parser.parse_args()


# --- data ----------------------------------------------------------------------------------------


def read_rows(args: argparse.Namespace, base: Path) -> list[Row]:
    """Writes each trajectory out as the agent will see it, and marks what the assistant says."""
    tokenizer: Any = AutoTokenizer.from_pretrained(base)
    if args.model == SMOL:
        tokenizer.chat_template = chat_template()
    lines = args.data.read_text("utf-8").splitlines()
    rows = [
        as_row(json.loads(line), tokenizer, args.layout) for line in lines[: args.limit or None]
    ]
    if not rows:
        sys.exit(f"no trajectories in {args.data}")
    return rows


def as_row(trajectory: dict[str, Any], tokenizer: Any, layout: Any) -> Row:
    """Tokenizes one trajectory with the template's generation markers."""
    turn = Turn(trajectory["messages"], trajectory["tools"])
    messages = to_plain_messages(turn, layout, "tool")
    encoded = tokenizer.apply_chat_template(
        messages, tokenize=True, return_dict=True, return_assistant_tokens_mask=True
    )
    if not any(encoded["assistant_masks"]):
        sys.exit("no token carries loss: the chat template lacks {% generation %} markers")
    opening = crc32(messages[0]["content"].encode())
    return Row(encoded["input_ids"], encoded["assistant_masks"], opening)


def batches(rows: list[Row], args: argparse.Namespace) -> list[list[Row]]:
    """All batches of a run, in order: alike in beginning and length inside, shuffled outside."""
    rng, made = Random(args.seed), []
    for _ in range(args.epochs):
        order = rng.sample(rows, len(rows))
        epoch = []
        for begin in range(0, len(order), args.batch * POOL_OF_BATCHES):
            pool = order[begin : begin + args.batch * POOL_OF_BATCHES]
            pool.sort(key=lambda row: (row.opening, len(row.tokens)))
            epoch += [pool[i : i + args.batch] for i in range(0, len(pool), args.batch)]
        made += rng.sample(epoch, len(epoch))
    return made


# --- model ---------------------------------------------------------------------------------------


def adapted(base: Path, args: argparse.Namespace) -> Any:
    """The base, frozen, with LoRA matrices on every linear layer; all in bf16."""
    AttentionInterface.register("plain", plain_attention)
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.bfloat16)
    model.set_attn_implementation("plain")
    config = LoraConfig(
        r=args.rank,
        lora_alpha=2 * args.rank,
        target_modules=list(EVERY_LINEAR),
        task_type="CAUSAL_LM",
    )
    return get_peft_model(model, config, autocast_adapter_dtype=False)


def plain_attention(
    module: Any, query: Any, key: Any, value: Any, mask: Any, scaling: float = 1.0, **_: Any
) -> tuple[torch.Tensor, None]:
    """Causal attention as two matrix products: twice as fast, with its gradient, as the fused one.

    The queries stand at the end of the keys. Heads that share keys are folded into the length.
    """
    batch, heads, length, size = query.shape
    groups, seen = key.shape[1], key.shape[2]
    folded = query.reshape(batch * groups, heads // groups * length, size)
    scores = torch.bmm(folded * scaling, key.reshape(batch * groups, seen, size).transpose(1, 2))
    future = query.new_full((length, seen), -torch.inf).triu(seen - length + 1)
    scores = scores.view(-1, heads // groups, length, seen) + future
    weights = scores.softmax(dim=-1).view(batch * groups, -1, seen)
    mixed = torch.bmm(weights, value.reshape(batch * groups, seen, size))
    return mixed.view(batch, heads, length, size).transpose(1, 2).contiguous(), None


def loss_sum(model: Any, batch: list[Row]) -> tuple[torch.Tensor, int]:
    """The summed cross-entropy of a batch, and over how many tokens."""
    inner = model.get_base_model()
    shared = common_prefix(batch)
    width = max(len(row.tokens) for row in batch) - shared
    ids, wanted = torch.zeros(2, len(batch), width, dtype=torch.long)
    for place, row in enumerate(batch):
        ids[place, : len(row.tokens) - shared] = torch.tensor(row.tokens[shared:])
        wanted[place, : len(row.tokens) - shared] = torch.tensor(row.loss[shared:])
    cache = None
    if shared:
        cache = DynamicCache(config=inner.config)
        opening = torch.tensor([batch[0].tokens[:shared]])
        inner.model(input_ids=opening, past_key_values=cache, use_cache=True)
        cache.batch_repeat_interleave(len(batch))
    # Padding is on the right, where causal attention never looks: no mask is needed.
    hidden = inner.model(input_ids=ids, past_key_values=cache, use_cache=shared > 0)[0]
    carries = wanted[:, 1:] > 0
    logits = inner.lm_head(hidden[:, :-1][carries]).float()
    targets = ids[:, 1:][carries]
    return torch.nn.functional.cross_entropy(logits, targets, reduction="sum"), len(targets)


def common_prefix(batch: list[Row]) -> int:
    """How many tokens the rows share, short of the first that carries loss."""
    if len(batch) == 1:
        return 0
    limit = min(row.loss.index(1) for row in batch) - 1
    first = batch[0].tokens
    for place in range(limit):
        if any(row.tokens[place] != first[place] for row in batch):
            return place
    return limit


# --- training ------------------------------------------------------------------------------------


def fit(model: Any, rows: list[Row], args: argparse.Namespace) -> dict[str, Any]:
    """Trains, with checkpoints; returns what was spent."""
    rounded = [weight for weight in model.parameters() if weight.requires_grad]
    weights = [weight.detach().float().requires_grad_() for weight in rounded]  # what is stepped
    optimizer = torch.optim.AdamW(weights, lr=args.lr, betas=(0.9, 0.99), weight_decay=0.0)
    plan = batches(rows, args)
    spent = {"steps": 0, "tokens": 0, "loss_tokens": 0, "cpu_seconds": 0.0, "losses": []}
    resume(weights, optimizer, spent, args)
    round_to(rounded, weights)
    begun, began_at = time.monotonic(), spent["steps"]
    model.train()
    for step, batch in remaining(plan, spent["steps"]):
        cpu = time.process_time()
        for group in optimizer.param_groups:
            group["lr"] = args.lr * schedule(step / len(plan))
        loss, count = loss_sum(model, batch)
        (loss / count).backward()
        for weight, short in zip(weights, rounded, strict=True):
            weight.grad, short.grad = short.grad.float(), None
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        round_to(rounded, weights)
        spent["steps"] = step + 1
        spent["tokens"] += sum(len(row.tokens) for row in batch)
        spent["loss_tokens"] += count
        spent["losses"].append(round(loss.item() / count, 4))
        spent["cpu_seconds"] += time.process_time() - cpu
        if spent["steps"] % args.save_every == 0:
            save(weights, optimizer, spent, args)
        if spent["steps"] % 10 == 0 or spent["steps"] == len(plan):
            pace = (time.monotonic() - begun) / (spent["steps"] - began_at)
            report(spent, len(plan), pace)
    return spent


def round_to(rounded: list[Any], weights: list[Any]) -> None:
    """Rounds the fp32 weights to those the model computes with, and is saved with."""
    with torch.no_grad():
        for short, weight in zip(rounded, weights, strict=True):
            short.copy_(weight)


def remaining(plan: list[list[Row]], done: int) -> Iterator[tuple[int, list[Row]]]:
    """The steps still to do."""
    return ((step, plan[step]) for step in range(done, len(plan)))


def schedule(progress: float) -> float:
    """The factor on the learning rate: a short warm-up, then a half cosine down to nothing."""
    return min(1.0, (progress + 1e-3) / 0.05) * 0.5 * (1 + math.cos(math.pi * progress))


def report(spent: dict[str, Any], steps: int, pace: float) -> None:
    """One line of progress, with the time left."""
    recent = spent["losses"][-10:]
    left = pace * (steps - spent["steps"])
    print(
        f"step {spent['steps']}/{steps}  loss {sum(recent) / len(recent):.3f}  "
        f"{spent['tokens'] / max(spent['cpu_seconds'], 1e-9):.0f} tokens/CPU-s  "
        f"{left / 60:.1f} min left",
        file=sys.stderr,
        flush=True,
    )


def identity(args: argparse.Namespace) -> str:
    """What a checkpoint must agree with to be gone on from."""
    parts = (args.model, args.limit, args.epochs, args.rank, args.lr, args.batch, args.layout)
    data = hashlib.sha256(args.data.read_bytes()).hexdigest()
    return json.dumps([*map(str, parts), args.seed, data])


def save(weights: list[Any], optimizer: Any, spent: dict[str, Any], args: Any) -> None:
    """Writes a checkpoint, whole or not at all."""
    args.out.mkdir(parents=True, exist_ok=True)
    half = args.out / (CHECKPOINT + ".half")
    state = {
        "identity": identity(args),
        "weights": [weight.detach() for weight in weights],
        "optimizer": optimizer.state_dict(),
        "spent": spent,
    }
    torch.save(state, half)
    half.replace(args.out / CHECKPOINT)


def resume(weights: list[Any], optimizer: Any, spent: dict[str, Any], args: Any) -> None:
    """Goes on from the checkpoint of the same run, where there is one."""
    path = args.out / CHECKPOINT
    if not path.exists():
        return
    state = torch.load(path, weights_only=True)
    if state["identity"] != identity(args):
        sys.exit(f"{path} is of a run with other settings; remove it or choose another --out")
    with torch.no_grad():
        for weight, value in zip(weights, state["weights"], strict=True):
            weight.copy_(value)
    optimizer.load_state_dict(state["optimizer"])
    spent.update(state["spent"])
    print(f"going on from step {spent['steps']}", file=sys.stderr)


def write(model: Any, base: Path, args: argparse.Namespace, spent: dict[str, Any]) -> None:
    """Writes the adapter and its config.json, and removes the checkpoint."""
    model.save_pretrained(args.out)
    losses = spent.pop("losses")
    packages = ("torch", "transformers", "peft")
    config = {
        "base": args.model,
        "base_sha256": weights_hash(base),
        "data_sha256": hashlib.sha256(args.data.read_bytes()).hexdigest(),
        "arguments": {k: str(v) if isinstance(v, Path) else v for k, v in vars(args).items()},
        "versions": {package: version(package) for package in packages},
        **spent,
        "cpu_seconds": round(spent["cpu_seconds"], 1),
        "last_loss": sum(losses[-20:]) / len(losses[-20:]),
    }
    (args.out / "config.json").write_text(json.dumps(config, indent=2) + "\n", "utf-8")
    (args.out / CHECKPOINT).unlink(missing_ok=True)
    size = sum(file.stat().st_size for file in args.out.glob("*.safetensors"))
    print(f"wrote {args.out} ({size / 1e6:.2f} MB, {spent['cpu_seconds']:.0f} CPU-seconds)")


if __name__ == "__main__":
    main()
