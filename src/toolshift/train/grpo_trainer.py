"""TRL's GRPO trainer, its rollouts played in scenes and its scores computed where they are wanted.

`rollout_func` is the seam: TRL hands over prompts (each names a scene by its number) and takes
back tokens, a mask of those that are the model's, and what each episode earned. Advantages, the
clipped objective, the KL penalty, devices and checkpoints are TRL's.
"""

from __future__ import annotations

import hashlib
import warnings
from array import array
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from torch.nn.utils.rnn import pad_sequence
from torch.optim.lr_scheduler import LambdaLR
from transformers import PrinterCallback, TrainerControl, TrainerState, TrainingArguments
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.grpo_trainer import GRPOTrainer as TrlTrainer
from trl.trainer.utils import split_tensor_dict

from toolshift.core import seed as seeds
from toolshift.core.errors import UsageError
from toolshift.lm.decode import Decoder
from toolshift.lm.device import SIZES
from toolshift.lm.weights import quiet
from toolshift.train.callbacks import Checkpoints, Curves, Progress, Spent
from toolshift.train.curves import read_curves
from toolshift.train.generation import PolicySampler, VllmVoice
from toolshift.train.grpo_settings import GrpoSettings
from toolshift.train.logprobs import Packed, add_scores, pack, shared_opening
from toolshift.train.loss import attends_plainly, use_plain_attention, worth_sharing
from toolshift.train.model import rounded
from toolshift.train.reward import Earned, Pay, paid
from toolshift.train.rollout import (
    Backend,
    Clock,
    ConversationEncoder,
    Limits,
    Play,
    Rollout,
    View,
    roll_out,
)
from toolshift.train.running import SafeTrainerMixin, shared_arguments
from toolshift.train.scenes import Mix, draw

_LOGGED = {
    "reward": "reward",
    "reward_std": "reward_std",
    "flat_groups": "flat_groups",
    "reward_drawn": "reward_drawn",
    "passed_drawn": "passed_drawn",
    "drawn_again": "drawn_again",
    "outside": "outside",
    "entropy": "entropy",
    "kl": "kl",
    "clipped": "clip_ratio/region_mean",
    "drift": "drift",
    "own_tokens": "completions/mean_length",
}


class RewardCurves(Curves):
    """Writes rewards, their spread and the lengths beside each step."""

    def __init__(self, out: Path, spent: Spent, clock: Clock) -> None:
        super().__init__(out, spent)
        self.clock = clock

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Mapping[str, float] | None = None,
        **_: object,
    ) -> None:
        """Adds what the trainer has logged for a step."""
        if not (state.is_world_process_zero and logs and "reward" in logs):
            return
        logs = {name: value for name, value in logs.items() if value is not None}  # all were void
        line = {name: round(logs[key], 6) for name, key in _LOGGED.items() if key in logs}
        parts = {k: round(v, 6) for k, v in logs.items() if k.startswith("part/")}
        self.add(
            {
                "step": state.global_step,
                **line,
                **parts,
                "loss": round(logs["loss"], 6),
                "lr": logs["learning_rate"],
                "grad_norm": round(float(logs.get("grad_norm", 0.0)), 5),
                "tokens": self.spent.tokens,
                "seconds": round(self.spent.wall, 2),
                "rollout_seconds": round(self.clock.generation, 2),
                "sandbox_seconds": round(self.clock.sandbox, 3),
            }
        )

    def cut(self, step: int) -> None:
        """Deletes the lines after a step, and sets the clock back to it."""
        super().cut(step)
        timed = [line for line in read_curves(self.file) if "rollout_seconds" in line]
        if timed:
            self.clock.generation = timed[-1]["rollout_seconds"]
            self.clock.sandbox = timed[-1]["sandbox_seconds"]


class RewardProgress(Progress):
    """Says the reward where `Progress` says the loss."""

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Mapping[str, float] | None = None,
        **_: object,
    ) -> None:
        """Says where the run is, unless it did so a moment ago."""
        if logs and logs.get("reward") is not None:
            super().on_log(args, state, control, {"loss": logs["reward"]})

    def _line(self, step: int, steps: int, now: float) -> str:
        return super()._line(step, steps, now).replace("loss", "reward", 1)


_Trainer: Any = TrlTrainer  # its types are not complete

FLAT = 1e-3
"""Advantages below it are the rounding of a mean, divided by the 1e-4 that TRL adds to a spread."""

Played = tuple[Rollout, Earned]
Span = tuple[int, int, int]
"""A sequence: its row, and where it begins and ends there."""


class Player:
    """Plays the scenes of a mix with the live model; TRL calls it for each batch of prompts.

    Args:
        mix: of the scenes.
        settings: of the run.
        scribe: writes conversations for the model.
        pay: says what an episode earned.

    Attributes:
        clock: what the rollouts' time went into.
        played: the last batch, for whoever wants to look.
        borders: where further sequences begin in a row, by its tokens; of the last batch.
    """

    def __init__(
        self, mix: Mix, settings: GrpoSettings, scribe: ConversationEncoder, pay: Pay
    ) -> None:
        self.mix, self.settings, self.scribe, self.pay = mix, settings, scribe, pay
        self.clock = Clock()
        self.played: list[Played] = []
        self.borders: dict[bytes, list[int]] = {}

    def __call__(self, prompts: Sequence[str], trainer: GrpoTrainer) -> dict[str, list[Any]]:
        """Plays one episode for each prompt; see `rollout_func` in TRL."""
        self.borders = {}
        settings = self.settings
        numbers = [number_of(prompt) for prompt in prompts]
        self.clock.begin()
        ahead = self._ahead(numbers, trainer)
        played = self._play([*numbers, *(n for n in ahead for _ in range(settings.group))], trainer)
        self.played = played[: len(numbers)]
        groups = dict(zip(ahead, _chunks(played[len(numbers) :], settings.group), strict=True))
        noted = trainer._metrics["train"]
        self._note_drawn(noted)
        again = 0
        for attempt in range(settings.redraw):
            poor = self._without_gradient()
            if not poor:
                break
            again += len(poor)
            wanted = [self._instead(numbers[at * settings.group], attempt) for at in poor]
            missing = [n for n in wanted if n not in groups]
            fresh = self._play([n for n in missing for _ in range(settings.group)], trainer)
            groups |= zip(missing, _chunks(fresh, settings.group), strict=True)
            for at, number in zip(poor, wanted, strict=True):
                self.played[at * settings.group : (at + 1) * settings.group] = groups[number]
        if settings.redraw:
            noted["drawn_again"].append(float(again))
            noted["outside"].append(float(len(self._without_gradient())))
        trainer.forget()  # what it keeps between turns is of no use while gradients are computed
        rows = [self._row(rollout) for rollout, _ in self.played]
        return {
            "prompt_ids": [row.prompt_ids for row in rows],
            "completion_ids": [row.completion_ids for row in rows],
            "logprobs": [row.logprobs for row in rows],
            "env_mask": [row.env_mask for row in rows],
            "earned": [earned for _, earned in self.played],
        }

    def _note_drawn(self, noted: Any) -> None:
        """Notes what the scenes as first drawn earn: those that are kept are chosen by it."""
        first = [earned for _, earned in self.played]
        totals = [reward.total for reward in first if reward.total is not None]
        if totals:
            noted["reward_drawn"].append(sum(totals) / len(totals))
        noted["passed_drawn"].append(sum(reward.grade.passed for reward in first) / len(first))

    def _ahead(self, numbers: Sequence[int], trainer: GrpoTrainer) -> list[int]:
        """The scenes that are played beside the others, should one of those be drawn again.

        An episode is the same whatever is played beside it (but by vLLM), so no more than time is
        saved, and only where all fit in one batch.
        """
        room = self.settings.rollout_batch // len(numbers) - 1  # of episodes decoded together
        most = min(SIZES.get(trainer.args.device.type, SIZES["cpu"]).ahead, room)
        attempts = range(min(self.settings.redraw, most))
        firsts = numbers[:: self.settings.group]
        return [self._instead(number, attempt) for attempt in attempts for number in firsts]

    def _play(self, numbers: Sequence[int], trainer: GrpoTrainer) -> list[Played]:
        """Plays one episode of each scene that is named by its number."""
        settings, step = self.settings, trainer.state.global_step
        scenes = {number: draw(self.mix, number) for number in sorted(set(numbers))}
        self.clock.on("sandbox")
        backend = trainer.voice()
        # Which sample of its group a row is, in the order of all processes together.
        first = trainer.accelerator.process_index * len(numbers)
        plays = [
            Play(
                scenes[number],
                seeds.derive(settings.seed, "rollout", step, number, (first + n) % settings.group),
            )
            for n, number in enumerate(numbers)
        ]
        rollouts = roll_out(
            backend, self.scribe, plays, settings.temperature, limits_of(settings), self.clock
        )
        earned = [paid(self.pay, rollout.episode) for rollout in rollouts]
        self.clock.on("sandbox")
        return list(zip(rollouts, earned, strict=True))

    def _without_gradient(self) -> list[int]:
        """The groups that teach nothing, or that too few or too many episodes of have passed."""
        size, (least, most) = self.settings.group, self.settings.headroom
        poor = []
        for at in range(len(self.played) // size):
            rewards = [earned for _, earned in self.played[at * size : (at + 1) * size]]
            totals = {reward.total for reward in rewards if reward.total is not None}
            passed = sum(reward.grade.passed for reward in rewards) / size
            if len(totals) < 2 or not least <= passed <= most:
                poor.append(at)
        return poor

    def _instead(self, number: int, attempt: int) -> int:
        """The scene that replaces another: of those that no step draws first, each is used once."""
        settings = self.settings
        return settings.steps * settings.groups + number * settings.redraw + attempt

    def _row(self, rollout: Rollout) -> View:
        """What is trained on of an episode, noted by its tokens where it has several sequences."""
        last = View(rollout.prompt_ids, rollout.completion_ids, rollout.logprobs, rollout.env_mask)
        row, borders = rollout.whole() if self.settings.every_view else (last, [])
        if borders:
            self.borders[key_of([*row.prompt_ids, *row.completion_ids])] = borders
        return row


def _chunks(played: Sequence[Played], size: int) -> list[Sequence[Played]]:
    return [played[begin : begin + size] for begin in range(0, len(played), size)]


def key_of(tokens: Sequence[int]) -> bytes:
    """What a row is found again by."""
    return hashlib.sha256(array("q", tokens).tobytes()).digest()


def prompt_of(number: int) -> str:
    """The prompt by which TRL passes a scene on: its number in the mix."""
    return f"scene {number}"


def number_of(prompt: str) -> int:
    """The number of the scene that a prompt names."""
    return int(prompt.removeprefix("scene "))


def limits_of(settings: GrpoSettings) -> Limits:
    """How long the rollouts of a run may grow."""
    return Limits(
        settings.turn_tokens,
        settings.episode_tokens,
        settings.rollout_batch,
        settings.max_repeats,
    )


def in_order(settings: GrpoSettings) -> list[int]:
    """The numbers of the scenes of a run, in the order in which its steps take them.

    Scenes that were chosen come in rounds, each in an order of its own; none is twice in a step.
    """
    wanted = settings.steps * settings.groups
    if not settings.scenes:
        return list(range(wanted))
    taken: list[int] = []
    turn = 0
    while len(taken) < wanted:
        order = list(settings.scenes)
        seeds.rng(settings.seed, "order of scenes", turn).shuffle(order)
        begun = taken[len(taken) - len(taken) % settings.groups :]  # of the step that goes on
        order.sort(key=lambda number, held=frozenset(begun): number in held)  # type: ignore[misc]
        taken += order
        turn += 1
    return taken[:wanted]


def sandbox(earned: Sequence[Earned], log_metric: Any, **_: object) -> list[float | None]:
    """The reward function: what each episode has earned already; its parts go to the curves."""
    for name in sorted({name for reward in earned for name in reward.parts}):
        values = [reward.parts.get(name, 0.0) for reward in earned]
        log_metric(f"part/{name}", sum(values) / len(values))
    return [reward.total for reward in earned]


class GrpoTrainer(SafeTrainerMixin, _Trainer):  # type: ignore[misc]
    """TRL's trainer for rollouts in scenes.

    Args:
        model: a causal language model, or a peft model around one.
        player: plays the scenes.
        settings: of the run.
        out: where checkpoints go.
        tokenizer: saved beside each checkpoint.
        spent: what the run has cost before.
    """

    _last_loaded_step: int
    lr_scheduler: Any

    method = "grpo"
    settings: GrpoSettings

    def __init__(
        self,
        model: Any,
        player: Player,
        settings: GrpoSettings,
        out: Path,
        tokenizer: Any,
        spent: Spent,
    ) -> None:
        self.settings, self.player, self.spent = settings, player, spent
        self.curves = RewardCurves(out, spent, player.clock)
        self._own: torch.Tensor | None = None
        self._voice: PolicySampler | None = None
        self._heard_at = -1
        self._buffered_inputs: Any = None
        rows = [prompt_of(number) for number in in_order(settings)]
        with quiet():
            # An experimental feature of TRL, which says so each time: pinned and tested here.
            warnings.filterwarnings("ignore", "You are using 'rollout_func'")
            config = _config(settings, out)
            super().__init__(
                model,
                reward_funcs=[sandbox],
                args=config,
                train_dataset=Dataset.from_dict({"prompt": rows}),
                processing_class=tokenizer,
                callbacks=[
                    self.curves,
                    RewardProgress(spent),
                    Checkpoints(settings, out, spent),
                ],
                rollout_func=player,
            )
        self.remove_callback(PrinterCallback)
        self._prepare_models()

    def _prepare_models(self) -> None:
        """Scores instead of logits, also from the reference; on a CPU the quicker attention."""
        self._alone = self.accelerator.num_processes == 1 and not self.is_fsdp_enabled
        for model in filter(None, (self.accelerator.unwrap_model(self.model), self.ref_model)):
            _round_reference(model, self.settings.precision)
            inner = model.get_base_model() if hasattr(model, "get_base_model") else model
            plain = attends_plainly(inner) and self.args.device.type == "cpu"
            share = (
                self.settings.share
                and worth_sharing(inner)
                and Decoder.fits(inner)
                and self._alone
                and not self.settings.checkpointing
            )
            add_scores(inner, self.temperature, share, tree=share and plain)
            self._tree = share and plain
            if plain:
                use_plain_attention(inner)

    def voice(self) -> Backend:
        """What speaks in rollouts, with the weights of this step."""
        if self.use_vllm:
            if self._last_loaded_step != self.state.global_step:  # TRL's own note of it
                self.vllm_generation.sync_weights()
                self._last_loaded_step = self.state.global_step
            return VllmVoice(self.vllm_generation, self.player.scribe.stop)
        if self.is_fsdp_enabled or self.is_deepspeed_enabled:
            raise UsageError(
                "rollouts by torch need the whole model in each process, which FSDP and DeepSpeed "
                "split: use --vllm, or data parallel training"
            )
        model = self.accelerator.unwrap_model(self.model)
        if self._voice is None:
            self._voice = PolicySampler(model, self.settings.precision, self.player.scribe.stop)
        elif self._heard_at != self.state.global_step:
            self._voice.refresh(model)
        self._heard_at = self.state.global_step
        return self._voice

    def forget(self) -> None:
        """Clears cached keys and values; captured graphs keep their memory."""
        if self._voice is not None:
            self._voice.forget(keep_room=True)

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        """A rise of the learning rate from the first step on, and then no change."""
        rise = max(1.0, self.settings.warmup * num_training_steps)
        if self.lr_scheduler is None:
            self.lr_scheduler = LambdaLR(
                optimizer or self.optimizer, lambda step: min(1.0, (step + 1) / rise)
            )
            self._created_lr_scheduler = True
        return self.lr_scheduler

    def _prepare_inputs(self, generation_batch: Any) -> Any:
        """As TRL's, but the samples of a group stay together: they share a prompt.

        All rows of a batch go into one optimizer step, so their order changes nothing.
        """
        every = self.args.steps_per_generation
        if self._step % every == 0 or self._buffered_inputs is None:
            batch = self._generate_and_score_completions(generation_batch)
            self._buffered_inputs = split_tensor_dict(batch, every)
            self.spent.tokens += int(
                self.accelerator.gather(
                    batch["prompt_mask"].sum() + batch["completion_mask"].sum()
                ).sum()
            )
            self._note_flat(batch["advantages"])
        return self._buffered_inputs[self._step % every]

    def _note_flat(self, advantages: torch.Tensor) -> None:
        """Notes the share of groups all of whose samples earned alike, whatever divides them.

        TRL's own figure is of the whole batch where the batch's spread divides.
        """
        groups = self.accelerator.gather(advantages).view(-1, self.settings.group)
        flat = (groups.abs() < FLAT).all(dim=1).float().mean()
        self._metrics["train"]["flat_groups"].append(flat.item())

    def _compute_loss(self, model: Any, inputs: Any) -> Any:
        if self._alone and not self.beta and not inputs["advantages"].any():
            # All samples earned alike: the gradient is zero, so the passes are saved.
            return sum(
                0.0 * parameter.sum() for parameter in model.parameters() if parameter.requires_grad
            )
        self._own = (inputs["completion_mask"] * inputs["tool_mask"]).bool()
        if self._alone and not self.beta:
            # Without an advantage a row has no gradient, so it is not read.
            self._own &= inputs["advantages"].view(len(self._own), -1).any(dim=1)[:, None]
        loss = super()._compute_loss(model, inputs)
        drift = (self._scored - inputs["sampling_per_token_logps"]).abs()[self._own].mean()
        self._metrics["train"]["drift"].append(self.accelerator.gather(drift).mean().item())
        self._own = None
        return loss

    def _get_per_token_logps_and_entropies(
        self,
        model: Any,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        logits_to_keep: int,
        batch_size: int | None = None,
        compute_entropy: bool = False,
        **_: object,
    ) -> tuple[torch.Tensor, torch.Tensor | None, None]:
        own = self._own
        if own is None:
            own = self._preceded(input_ids, attention_mask, logits_to_keep)
        size = batch_size or len(input_ids)
        pieces = zip(
            *(torch.split(tensor, size) for tensor in (input_ids, attention_mask, own)), strict=True
        )
        scores = [self._scores(model, *piece) for piece in pieces]
        logps = torch.cat([part for part, _ in scores])
        self._scored = logps.detach()
        if not compute_entropy:
            return logps, None, None
        entropies = torch.cat([part for _, part in scores])
        # Rows that were not read count as the others do, on average.
        return logps, torch.where(own, entropies, entropies[own].mean().nan_to_num()), None

    def _preceded(self, ids: torch.Tensor, real: torch.Tensor, kept: int) -> torch.Tensor:
        """Which of the last tokens have one before them: a further sequence's first has none."""
        own = real[:, -kept:].bool().clone()
        prompts = real[:, :-kept].sum(dim=1).tolist()
        for row, prompt in enumerate(prompts if self.player.borders else ()):
            tokens = ids[row][real[row].bool()].tolist()
            for border in self.player.borders.get(key_of(tokens), ()):
                own[row, border - prompt] = False
        return own

    def _scores(
        self, model: Any, ids: torch.Tensor, real: torch.Tensor, own: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        logps = entropies = torch.zeros(own.shape, device=ids.device)
        for rows, mask in self._apart(ids, real, own):
            with self.accelerator.autocast():
                some, their = model(input_ids=rows.ids, scored=rows.scored, shared=rows.shared)
            logps, entropies = (
                logps.masked_scatter(mask, some),
                entropies.masked_scatter(mask, their),
            )
        return logps, entropies

    def _apart(
        self, ids: torch.Tensor, real: torch.Tensor, own: torch.Tensor
    ) -> list[tuple[Packed, torch.Tensor]]:
        """Rows as the model reads them, and which of the wanted tokens they score.

        A row of several sequences is one row for each. Sequences that begin with the same tools are
        read together, of whatever group: the tools are then computed once. As a tree all are read
        together, and over several processes, for each has to call the model equally often.
        """
        rows = pack(ids, real, own)
        spans = [
            (row, begin, end)
            for row, length in enumerate(real.sum(dim=1).tolist())
            for begin, end in self._sequences(rows.ids[row, :length])
        ]
        prompts = real[:, : -own.shape[1]].sum(dim=1).tolist()
        together = _alike(rows, spans) if self._alone and not self._tree else [spans]
        if len(spans) == len(ids) and len(together) == 1:
            return [(rows, own)]
        packs = []
        for here in together:
            mask = torch.zeros_like(own)
            for row, begin, end in here:
                span = slice(max(0, begin - prompts[row]), end - prompts[row])
                mask[row, span] = own[row, span]
            read = pad_sequence([rows.ids[row, a:b] for row, a, b in here], batch_first=True)
            scored = pad_sequence([rows.scored[row, a:b] for row, a, b in here], batch_first=True)
            packs.append((Packed(read, scored, shared_opening(read, scored)), mask))
        return packs

    def _sequences(self, tokens: torch.Tensor) -> list[tuple[int, int]]:
        """Where the sequences of a row begin and end."""
        known = self.player.borders
        further = known.get(key_of(tokens.tolist()), ()) if known else ()
        return list(pairwise((0, *further, len(tokens))))

    def calmer(self) -> str:
        """What may keep the loss a number."""
        return f"{super().calmer()} or raise beta (it is {self.settings.beta:g})"


def _alike(rows: Packed, spans: Sequence[Span]) -> list[list[Span]]:
    """Sequences by their openings: those that share half of one, so their tools, together."""
    found: list[list[Span]] = []
    for row, begin, end in spans:
        wanted = rows.scored[row, begin:end]
        half = (int(wanted.int().argmax()) if bool(wanted.any()) else end - begin) // 2
        mine = rows.ids[row, begin : begin + half]
        for those in found:
            other, start, stop = those[0]
            if torch.equal(mine, rows.ids[other, start : min(stop, start + half)]):
                those.append((row, begin, end))
                break
        else:
            found.append([(row, begin, end)])
    return found


def _round_reference(model: Any, precision: str) -> None:
    """Gives TRL's copy of the adapter, the reference, the form of the adapter itself."""
    for module in model.modules():
        for matrices in (getattr(module, "lora_A", {}), getattr(module, "lora_B", {})):
            if "ref" in matrices:
                matrices["ref"] = rounded(matrices["ref"], precision)


def _config(settings: GrpoSettings, out: Path) -> GRPOConfig:
    """TRL's configuration."""
    return GRPOConfig(
        **shared_arguments(settings, out),
        gradient_accumulation_steps=settings.passes,
        num_generations=settings.group,
        max_completion_length=settings.episode_tokens,  # the divisor of dr_grpo, too
        max_steps=settings.steps,
        temperature=settings.temperature,
        beta=settings.beta,
        epsilon=settings.epsilon,
        loss_type=settings.objective,
        scale_rewards=settings.scale,
        shuffle_dataset=False,
        use_vllm=settings.vllm,
        vllm_mode="colocate",
    )
