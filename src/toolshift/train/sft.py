"""Supervised fine-tuning: what the assistant says is learned, all else is context.

    toolshift.train_sft(rows, "runs/static", preset="small", seed=1)

TRL's trainer runs the loop (devices, mixed precision, FSDP, checkpoints); ours differs in the
loss (`toolshift.train.loss`), in which rows go together (`toolshift.train.batches`), and in what it
writes. PAFT is the same training on other rows: a share of them is the oracle's in shifted scenes.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from torch.optim.lr_scheduler import LambdaLR
from transformers import (
    AutoConfig,
    PrinterCallback,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)
from trl.trainer.sft_config import SFTConfig
from trl.trainer.sft_trainer import SFTTrainer

from toolshift.core.errors import UsageError
from toolshift.lm.decode import Decoder
from toolshift.lm.inference import use_threads
from toolshift.lm.weights import quiet
from toolshift.train import record
from toolshift.train.batches import (
    Batches,
    Encoder,
    Example,
    Weigh,
    collate,
    encode_rows,
)
from toolshift.train.callbacks import Checkpoints, Curves, Evaluate, Evaluations, Progress, Spent
from toolshift.train.evaluation import evaluation
from toolshift.train.loss import add_loss, attends_plainly, use_plain_attention, worth_sharing
from toolshift.train.model import Base, find_base, load, require_one_gpu
from toolshift.train.presets import Settings, check
from toolshift.train.rows import checked
from toolshift.train.running import (
    SafeTrainerMixin,
    complete,
    says_what_to_change,
    shared_arguments,
)
from toolshift.train.settings import first_process

Watch = Callable[[int, int], None]


def train(
    rows: Sequence[Mapping[str, Any]],
    settings: Settings,
    out: Path,
    *,
    resume: bool | int = False,
    data: Mapping[str, Any] | None = None,
    weigh: Weigh | None = None,
    evaluate: Callable[[Base], Evaluate] | None = None,
    watch: Watch | None = None,
    callbacks: Sequence[TrainerCallback] = (),
) -> Path:
    """Trains a model on rows, and writes it into `out`; see `toolshift.train_sft`."""
    check(settings)
    require_one_gpu()
    rows = checked(rows)
    base = find_base(settings)
    asked = record.Asked.of(settings, rows, base, data)
    asked.settings["weigh"] = None if weigh is None else record.named(weigh)
    with record.begun(out, asked, resume) as start:
        settings = record.with_kept(settings, asked)
        use_threads(settings.threads)
        encoder = Encoder(base.tokenizer, base.template, settings.layout, base.tool_role, weigh)
        examples = encode_rows(rows, encoder, _most_tokens(settings, base), watch)
        left_out = len(rows) - len(examples)
        _tell(left_out, len(rows))
        made = build(examples, settings, out, base, record.spent_at(start))
        for callback in callbacks:
            made.add_callback(callback)
        if settings.eval_every:
            made.add_callback(_evaluations(made, rows, base, evaluate))
        complete(made, start, asked, ways_to_need_less(settings), left_out)
    return out


def _tell(left_out: int, rows: int) -> None:
    """Says how many rows are not trained on, before it is too late."""
    if left_out and first_process():
        print(
            f"{left_out} of {rows} rows were left out: longer than --max-tokens or than the model "
            "can take, or without anything to learn.",
            file=sys.stderr,
            flush=True,
        )


def _evaluations(
    trainer: Trainer,
    rows: Sequence[Mapping[str, Any]],
    base: Base,
    evaluate: Callable[[Base], Evaluate] | None,
) -> Evaluations:
    if trainer.is_fsdp_enabled:
        raise UsageError(
            "a sharded model cannot run episodes: set --eval-every 0, keep checkpoints with "
            "--save-at, and measure those with `toolshift run`"
        )
    judge = (evaluate or evaluation(rows, trainer.settings))(base)
    return Evaluations(trainer.settings.eval_every, judge, trainer.curves)


def build(
    examples: Sequence[Example], settings: Settings, out: Path, base: Base, spent: Spent
) -> Trainer:
    """The trainer of a run, with its model loaded."""
    with says_what_to_change(settings, ways_to_need_less(settings)):
        model = load(settings, base)
    return Trainer(model, examples, settings, out, base.tokenizer, spent)


def ways_to_need_less(settings: Settings) -> tuple[str, ...]:
    """What may keep a run within its memory."""
    return (
        f"a smaller batch (it is {settings.batch}; --accumulate makes up for it)",
        "--max-tokens, which leaves the longest rows out",
    )


class Order(TrainerCallback):
    """Tells the order of rows which pass begins.

    Accelerate does so too, but not for a run of several processes that is resumed in the middle of
    a later pass: what it puts around the sampler there hides it.
    """

    def __init__(self, batches: Batches) -> None:
        self.batches = batches

    def on_epoch_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Chooses the order of this pass."""
        self.batches.set_epoch(int(state.epoch or 0))


class Trainer(SafeTrainerMixin, SFTTrainer):
    """TRL's trainer with our loss and our order of rows.

    Args:
        model: a causal language model, or a peft model around one.
        examples: what is learned.
        settings: of the run.
        out: where checkpoints go.
        tokenizer: saved beside each checkpoint.
        spent: what the run has cost before.
    """

    loss_is_scaled_for_ga: Any = True  # `compute_loss` divides by the weight of the whole step

    def __init__(
        self,
        model: Any,
        examples: Sequence[Example],
        settings: Settings,
        out: Path,
        tokenizer: Any,
        spent: Spent,
    ) -> None:
        self.settings, self.examples, self.spent = settings, examples, spent
        self.order = Batches(examples, settings.batch, settings.seed)
        self.curves = Curves(out, spent)
        with quiet():
            super().__init__(
                model,
                _config(settings, out),
                data_collator=self._collate,
                train_dataset=Dataset.from_dict({"input_ids": list(range(len(examples)))}),
                processing_class=tokenizer,
                callbacks=[
                    self.curves,
                    Progress(spent),
                    Checkpoints(settings, out, spent),
                    Order(self.order),
                ],
            )
        self.remove_callback(PrinterCallback)
        inner = model.get_base_model() if hasattr(model, "get_base_model") else model
        alone = self.accelerator.num_processes == 1 and not self.is_fsdp_enabled
        on_cpu = self.args.device.type == "cpu"
        shares = settings.share and Decoder.fits(inner) and alone and not settings.checkpointing
        add_loss(inner, shares and worth_sharing(inner))
        self.plain_attention = attends_plainly(inner) and alone and on_cpu
        if self.plain_attention:
            use_plain_attention(inner)

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """The weighted mean of the cross-entropy over all tokens of the optimizer step."""
        inputs.pop("tokens")
        # Data parallel training averages the gradients of the processes; this is one sum over all.
        return model(**inputs) * (self.accelerator.num_processes / num_items_in_batch)

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        """A short rise of the learning rate, and a half cosine down to nothing."""
        rise = max(1.0, self.settings.warmup * num_training_steps)

        def factor(step: int) -> float:
            fall = 0.5 * (1 + math.cos(math.pi * min(1.0, step / num_training_steps)))
            return min(1.0, (step + 1) / rise) * fall

        if self.lr_scheduler is None:
            self.lr_scheduler = LambdaLR(optimizer or self.optimizer, factor)  # type: ignore[arg-type]
            self._created_lr_scheduler = True
        return self.lr_scheduler

    def _collate(self, batch: Sequence[Any]) -> dict[str, Any]:
        return collate([self.examples[each["input_ids"]] for each in batch])

    def _get_train_sampler(self, train_dataset: Any = None) -> Batches:
        return self.order

    def _get_num_items_in_batch(self, batch_samples: Any, device: Any) -> Any:
        weight = sum(float(batch["weights"][:, 1:].sum()) for batch in batch_samples)
        tokens = sum(batch["tokens"] for batch in batch_samples)
        counted = torch.tensor([[weight, tokens]], dtype=torch.float64, device=device)
        weight, tokens = self.accelerator.gather(counted).sum(dim=0).tolist()
        self.spent.tokens += int(tokens)
        return weight


def _config(settings: Settings, out: Path) -> SFTConfig:
    """TRL's configuration, but for rows that it would tokenize."""
    return SFTConfig(
        **shared_arguments(settings, out),
        gradient_accumulation_steps=settings.accumulate,
        num_train_epochs=max(settings.epochs, 1),
        max_steps=settings.steps or -1,
        data_seed=settings.seed,
        remove_unused_columns=False,
        dataset_kwargs={"skip_prepare_dataset": True},
        max_length=None,
    )


def _most_tokens(settings: Settings, base: Base) -> int:
    """The longest row that is learned: as asked for, but never more than the model can take."""
    config = AutoConfig.from_pretrained(base.directory).get_text_config()
    limits = (settings.max_tokens, getattr(config, "max_position_embeddings", 0) or 0)
    return min((limit for limit in limits if limit), default=0)
