"""GRPO: a model learns from its own episodes in scenes, paid by the grader.

    from toolshift.train.grpo import train
    from toolshift.train.grpo_settings import preset
    from toolshift.train.scenes import Mix

    train(Mix(alpha=0.3), preset("small", adapter="runs/static"), Path("runs/grpo"))

Each step draws a few scenes, plays each several times with the live model (`rollout`), grades the
episodes (`reward`), and makes what did better than its siblings likelier (TRL's GRPO). The mix
says what the scenes are: static (alpha 0), shifted, and unsolvable ones, where a right refusal is
paid unless its weight is 0.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from toolshift.core.errors import UsageError
from toolshift.core.scene import Scene
from toolshift.core.tool import JSON
from toolshift.episode.grade import grade
from toolshift.lm.inference import stop_tokens, use_threads
from toolshift.train import record, scenes
from toolshift.train.callbacks import Evaluations, GivesBackMemory, Spent
from toolshift.train.data import make_rows
from toolshift.train.grpo_settings import GrpoSettings, check, require_vllm
from toolshift.train.grpo_trainer import GrpoTrainer, Player, limits_of
from toolshift.train.model import Base, find_base, load, require_one_gpu
from toolshift.train.reward import Pay, earn
from toolshift.train.rollout import Backend, ConversationEncoder, Limits, Play, roll_out
from toolshift.train.running import complete, says_what_to_change
from toolshift.train.scenes import Mix, dev_arms

SAMPLE = 16
"""Scenes whose expert trajectories stand in the record of a run, by their hash."""


def train(
    mix: Mix,
    settings: GrpoSettings,
    out: Path,
    *,
    resume: bool | int = False,
    pay: Pay | None = None,
    callbacks: Sequence[TrainerCallback] = (),
) -> Path:
    """Trains a model by GRPO on scenes, and writes it."""
    check(settings)
    require_one_gpu()
    if settings.vllm:
        require_vllm()
    scenes.check(mix)
    base = find_base(settings)
    record_of_run = describe(mix, settings, base, pay)
    with record.begun(out, record_of_run, resume) as start:
        settings = record.with_kept(settings, record_of_run)
        use_threads(settings.threads)
        trainer = build(mix, settings, out, base, record.spent_at(start), pay)
        for callback in (GivesBackMemory(), *callbacks):
            trainer.add_callback(callback)
        if settings.eval_every:
            trainer.add_callback(_evaluations(trainer, mix))
        complete(trainer, start, record_of_run, ways_to_need_less(settings), left_out=0)
    return out


def ways_to_need_less(settings: GrpoSettings) -> tuple[str, ...]:
    """What may keep a run within its memory."""
    return (
        f"a smaller batch (it is {settings.batch}; a step then takes more passes)",
        f"--rollout-batch below {settings.rollout_batch}",
        f"--episode-tokens below {settings.episode_tokens}",
    )


def describe(mix: Mix, settings: GrpoSettings, base: Base, pay: Pay | None = None) -> record.Asked:
    """What decides a run, for its record.

    Where supervised training has rows, there stands the mix, and what the oracle does in a few of
    its scenes: that tells a shift from another of the same name.
    """
    described = record.Asked.of(settings, [], base, {"mix": msgspec.to_builtins(mix)})
    return replace(
        described,
        settings={**described.settings, "pay": None if pay is None else record.named(pay)},
        data_sha256=hashlib.sha256(JSON.encode([mix, make_rows(mix, SAMPLE)])).hexdigest(),
    )


def build(
    mix: Mix,
    settings: GrpoSettings,
    out: Path,
    base: Base,
    spent: Spent,
    pay: Pay | None = None,
) -> GrpoTrainer:
    """The trainer of a run, with its model loaded."""
    with says_what_to_change(settings, ways_to_need_less(settings)):
        model = load(settings, base)
    for config in getattr(model, "peft_config", {}).values():
        if config.use_dora:
            raise UsageError(
                f"the adapter {settings.adapter} is a DoRA adapter, whose weights cannot be merged "
                "for rollouts: start from a LoRA adapter, or from a whole model with --full"
            )
        # An adapter names its base by a name, which peft would look up on the hub at each save.
        config.base_model_name_or_path = str(base.directory)
    stop = stop_tokens(base.tokenizer, model)
    scribe = ConversationEncoder(base.tokenizer, settings.layout, base.tool_role, stop)
    player = Player(mix, settings, scribe, pay or partial(earn, weights=settings.reward))
    return GrpoTrainer(model, player, settings, out, base.tokenizer, spent)


# -- evaluation -------------------------------------------------------------------------------


class _Evaluations(Evaluations):
    """Evaluates before the first step too: what reinforcement changes is a difference."""

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Evaluates the model that the run starts from."""
        if state.global_step == 0:
            self.on_log(args, state, control, {"loss": 0.0}, **kwargs)


def _evaluations(trainer: GrpoTrainer, mix: Mix) -> _Evaluations:
    settings, arms = trainer.settings, dev_arms(mix, trainer.settings.eval_scenes, limits=True)

    def look(_: Any) -> dict[str, float]:
        figures = evaluate(trainer.voice(), trainer.player.scribe, arms, limits_of(settings))
        trainer.forget()  # or the next rollouts would begin from what a resumed run has not heard
        return figures

    # With vLLM, `voice` gathers the weights of all processes.
    return _Evaluations(settings.eval_every, look, trainer.curves, before=trainer.voice)


def evaluate(
    backend: Backend, scribe: ConversationEncoder, arms: dict[str, list[Scene]], limits: Limits
) -> dict[str, float]:
    """Plays scenes greedily."""
    plays = [Play(scene, 0) for scenes in arms.values() for scene in scenes]
    rollouts = roll_out(backend, scribe, plays, 0.0, limits)
    verdicts = iter([grade(rollout.episode) for rollout in rollouts])
    graded = {name: [next(verdicts) for _ in scenes] for name, scenes in arms.items()}
    everything = [outcome for outcomes in graded.values() for outcome in outcomes]
    figures = {f"{name}_passed": _share([v.passed for v in graded[name]]) for name in arms}
    figures["refused_rightly"] = _share([v.passed for v in everything if not v.solvable])
    figures["over_refused"] = _share([v.refused for v in everything if v.solvable])
    return {name: value for name, value in figures.items() if value is not None}


def _share(outcomes: Sequence[bool]) -> float | None:
    return sum(outcomes) / len(outcomes) if outcomes else None
