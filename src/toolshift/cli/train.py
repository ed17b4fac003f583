"""Commands that train: data, the methods, and the studies of the research."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from toolshift.cli.group import Group, toolshift
from toolshift.cli.options import Option, as_json, options

mix = options(
    click.option(
        "--world", "worlds", multiple=True, default=("poi",), show_default=True, help="Repeat."
    ),
    click.option("--kind", "kinds", multiple=True, help="Only this task kind; repeat."),
    click.option(
        "--shift",
        "shifts",
        multiple=True,
        metavar="FAMILY|TIER|NAME[:SEV][+NAME[:SEV]]",
        help="What shifts the shifted share: EFP, SBP, SRP, formats, midway, graph, limits, "
        "symbols, diverse, a tier, a shift, 'all'; repeat. Named twice, drawn twice as often. "
        "Default: EFP, SBP, SRP and limits.",
    ),
    click.option("--severity", "severities", multiple=True, type=int, help="1 to 3; repeat."),
    click.option("--seed", default=0, show_default=True, help="Seed of worlds and choices."),
    click.option("--size", default=2000, show_default=True, help="Entities in each world."),
)
trajectories = options(
    click.option(
        "--slips",
        default=0.0,
        show_default=True,
        help="Share of trajectories in which the expert first makes a call that is rejected.",
    ),
    click.option(
        "--share",
        default=1,
        show_default=True,
        help="So many in succession meet one draw of a shift: a batch then reads its list of "
        "tools once.",
    ),
)


def _number(name: str, kind: type, help_: str) -> Option:
    return click.option(name, type=kind, help=f"{help_} Default: the preset's.")


training = options(
    click.option(
        "--preset",
        default="small",
        show_default=True,
        help="smoke: seconds, no evidence; small: SmolLM2-135M with LoRA on two cores; paper: "
        "Qwen2.5-7B-Instruct in full on GPUs.",
    ),
    click.option("--out", type=click.Path(path_type=Path), help="Folder for the result."),
    click.option("--model", help="smol, a model directory or a hub name. Default: the preset's."),
    click.option("--adapter", help="LoRA adapter to start from: a folder, or smol:paft."),
    click.option("--full/--lora", default=None, help="Train all weights, or an adapter."),
    _number("--rank", int, "Rank of the LoRA matrices."),
    _number("--lr", float, "Highest learning rate."),
    _number("--epochs", int, "Passes over the rows."),
    _number("--steps", int, "Optimizer steps, instead of --epochs."),
    _number("--batch", int, "Rows in one forward pass."),
    _number("--accumulate", int, "Forward passes in one step."),
    _number("--max-tokens", int, "Leave longer rows out."),
    click.option("--checkpointing/--no-checkpointing", default=None, help="Save memory, slower."),
    click.option(
        "--layout",
        help="How tools are listed: description-first, name-first, json, spaced or spaced-texts. "
        "Default: as what it starts from was trained, or the preset's.",
    ),
    _number("--threads", int, "Torch's threads."),
    _number("--save-every", int, "Steps between checkpoints; the last one is kept."),
    click.option("--save-at", metavar="STEP,STEP", help="Checkpoints that are all kept."),
    click.option(
        "--eval-every",
        type=int,
        help="Steps between evaluations on the dev pool; 0 for none. Default: 100 at `small`, else "
        "0.",
    ),
    _number("--eval-scenes", int, "Scenes of one evaluation."),
    click.option(
        "--resume",
        is_flag=False,
        flag_value="last",
        metavar="[STEP]",
        help="Go on from the last checkpoint in --out, or from that of a step.",
    ),
    click.option("--show-mask", is_flag=True, help="Print a row with what is learned, and stop."),
    as_json,
)


@toolshift.command()
@click.option("--out", type=click.Path(path_type=Path), required=True, help=".jsonl or .parquet.")
@click.option("--count", default=6050, show_default=True, help="Trajectories.")
@click.option("--alpha", default=0.0, show_default=True, help="Share that is shifted, 0 to 1.")
@trajectories
@click.option(
    "--turns",
    is_flag=True,
    help="For TRL's own trainers: a row for each turn that is learned, as prompt and completion, "
    "with tools and calls written out.",
)
@click.option("--layout", help="How --turns writes them. Default: description-first.")
@mix
@as_json
def data(**options: Any) -> None:
    """Write expert trajectories as training data: the oracle in clean and shifted scenes.

    Columns are messages and tools, in the OpenAI format, for `toolshift train sft`. Entities and
    wordings are of the training pool only.

    \b
    toolshift data --out static.jsonl
    toolshift data --out paft.parquet --alpha 0.3 --shift EFP --shift SBP --shift SRP
    """
    from toolshift.cli.actions.data import DataOptions, data_command

    data_command(DataOptions(**options))


@toolshift.group(cls=Group)
def train() -> None:
    """Train a model: sft, paft (a share of the trajectories in shifted scenes), grpo."""


@train.command()
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    required=True,
    help="Rows with the columns messages and tools; see `toolshift data`.",
)
@click.option("--seed", type=int, help="Of first weights and order. Default: the preset's.")
@training
def sft(**options: Any) -> None:
    """Fine-tune on what the assistant says in the rows of a file.

    \b
    toolshift train sft --data static.jsonl --out runs/static
    toolshift train sft --data static.jsonl --show-mask
    """
    from toolshift.cli.actions.train import SftOptions, sft_command

    sft_command(SftOptions(**options))


@train.command()
@click.option("--alpha", default=0.3, show_default=True, help="Share that is shifted, 0 to 1.")
@click.option("--count", default=0, help="Trajectories. Default: the preset's.")
@trajectories
@mix
@training
def paft(**options: Any) -> None:
    """Fine-tune on the oracle's trajectories, some of them in shifted scenes.

    \b
    toolshift train paft --alpha 0.3 --shift SBP --shift SRP --out runs/paft
    """
    from toolshift.cli.actions.train import PaftOptions, paft_command

    paft_command(PaftOptions(**options))


@train.command("grpo")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder of the run.")
@click.option("--preset", default="small", show_default=True, help="smoke, small or paper.")
@click.option("--alpha", default=0.0, show_default=True, help="Share of shifted scenes, 0 to 1.")
@mix
@click.option("--model", help="smol, scratch, a model directory or a hub name.")
@click.option("--adapter", help="LoRA adapter to start from: a folder, or smol:paft.")
@click.option("--full/--lora", default=None, help="Train all weights, or a LoRA adapter.")
@click.option("--rank", type=int, help="Of a new LoRA adapter.")
@click.option("--lr", type=float, help="Learning rate.")
@click.option("--steps", type=int, help="Optimizer steps.")
@click.option("--groups", type=int, help="Scenes in a step.")
@click.option("--group", type=int, help="Episodes of each scene, at least 2.")
@click.option("--batch", type=int, help="Episodes in one forward pass.")
@click.option("--rollout-batch", type=int, help="Episodes decoded together.")
@click.option("--temperature", type=float, help="Of the sampling.")
@click.option("--beta", type=float, help="Weight of the KL penalty; 0 for none.")
@click.option(
    "--epsilon",
    type=float,
    help="Where ratios are clipped: none is, with one update for each rollout.",
)
@click.option("--objective", help="dapo, grpo, bnpo or dr_grpo.")
@click.option("--scale", help="What advantages are divided by: group, batch or none.")
@click.option("--turn-tokens", type=int, help="Most tokens of one reply.")
@click.option(
    "--episode-tokens", type=int, help="An episode ends with the reply that passes so many."
)
@click.option(
    "--reward", "rewards", multiple=True, metavar="TERM=WEIGHT", help="docs/grpo.md; repeat."
)
@click.option("--precision", help="bfloat16 or float32.")
@click.option("--layout", help="How tools are listed. Default: as --adapter was trained.")
@click.option("--checkpointing/--no-checkpointing", default=None, help="Less memory, slower.")
@click.option("--vllm/--no-vllm", default=None, help="Roll out with vLLM (needs a GPU).")
@click.option("--threads", type=int, help="Torch's threads.")
@click.option("--save-every", type=int, help="Steps between checkpoints; the last one is kept.")
@click.option("--save-at", metavar="STEP,STEP", help="Checkpoints that are all kept.")
@click.option("--eval-every", type=int, help="Steps between evaluations; 0 for none.")
@click.option("--eval-scenes", type=int, help="Scenes of each arm of an evaluation.")
@click.option(
    "--resume", is_flag=False, flag_value="last", help="Go on, from the last checkpoint or STEP."
)
@as_json
def grpo(**options: Any) -> None:
    """Train by GRPO: the model plays scenes, and the grader pays.

    \b
    toolshift train grpo --adapter runs/paft --alpha 0 --out runs/rl-static
    toolshift train grpo --adapter runs/paft --alpha 0.3 --shift EFP --shift limits --out runs/rl
    """
    from toolshift.cli.actions.grpo import GrpoOptions, grpo_command

    grpo_command(GrpoOptions(**options))
