"""The model in training as an agent: how it does in the sandbox, and its loss on unseen scenes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from toolshift.agents.contestant import Contestant
from toolshift.agents.local import LocalAgent
from toolshift.core.errors import UsageError
from toolshift.core.scene import Scene
from toolshift.lm.inference import decoder_of, stop_tokens
from toolshift.lm.prompt import Layout
from toolshift.runs.cell import Cell
from toolshift.runs.run_folder import InMemoryStore
from toolshift.runs.study import run_cells
from toolshift.train.batches import Encoder, collate, encode_rows
from toolshift.train.callbacks import Evaluate
from toolshift.train.data import expert_rows
from toolshift.train.model import Base
from toolshift.train.scenes import Mix, dev_arms
from toolshift.train.settings import TrainSettings


class LiveAgent(LocalAgent):
    """A `LocalAgent` around a model that is in memory and may still change.

    Args:
        model: a transformers causal language model, LoRA layers and all; in eval mode, with its
            attention set to "sdpa", which decoding replaces by its own.
        base: its tokenizer and template.
        layout: how tools are listed.
        batch: how many turns are decoded together.
    """

    def __init__(self, model: Any, base: Base, layout: Layout, batch: int = 16) -> None:
        self.name, self.layout, self.batch = "live", layout, batch
        self.decoding, self.adapter, self.max_new_tokens = "free", None, 96
        self._directory, self._dtype = base.directory, "bfloat16"
        self._tokenizer, self._tool_role = base.tokenizer, base.tool_role
        self._model, self._vocabulary = model, None
        stop = stop_tokens(base.tokenizer, model)
        self.decoder = decoder_of(model, stop, memory_tokens=None)


def evaluation(
    rows: Sequence[Mapping[str, Any]], settings: TrainSettings, mix: Mix | None = None
) -> Callable[[Base], Evaluate]:
    """An evaluation on scenes of the dev pool, to hand to `train.sft.train`.

    Args:
        rows: of the training; without a mix, clean scenes of the worlds and kinds that they name.
        settings: of the run: how many scenes, and the layout.
        mix: that the rows were drawn from.

    Returns:
        What makes, from the base, a function of the live model. That returns for each arm the
        share of scenes passed, `ARM_passed`, and the mean loss of the oracle's words there,
        `ARM_loss`, in nats per token. Arms are those of `toolshift.train.scenes.dev_arms`.

    Raises:
        UsageError: where the rows name no world, so that there is nothing to play.
    """
    scenes = dev_arms(mix or _named_by(rows), settings.eval_scenes)

    def prepare(base: Base) -> Evaluate:
        encoder = Encoder(base.tokenizer, base.template, settings.layout, base.tool_role)

        def evaluate(model: Any) -> dict[str, float]:
            figures = {}
            with decoding(model) as inner:
                for arm, those in scenes.items():
                    figures[f"{arm}_loss"] = oracle_loss(model, those, encoder, settings.batch)
                agent = LiveAgent(inner, base, settings.layout)
                for arm, those in scenes.items():
                    figures[f"{arm}_passed"] = share_passed(agent, those)
            return figures

        return evaluate

    return prepare


def _named_by(rows: Sequence[Mapping[str, Any]]) -> Mix:
    worlds = _texts(rows, "world")
    if not worlds:
        raise UsageError(
            "an evaluation runs scenes of the worlds in the column 'world', which these rows do "
            "not have: leave --eval-every out, and measure with `toolshift run`"
        )
    return Mix(worlds=worlds, kinds=_texts(rows, "kind"))


def _texts(rows: Sequence[Mapping[str, Any]], column: str) -> tuple[str, ...]:
    found = {text for row in rows if isinstance(text := row.get(column), str) and text}
    return tuple(sorted(found))


def share_passed(agent: LocalAgent, scenes: Sequence[Scene]) -> float:
    """The share of scenes that an agent passes, decoded greedily."""
    memory = InMemoryStore()
    run_cells([_cell(scene) for scene in scenes], [Contestant(agent)], memory)
    return sum(record.grade.passed for record in memory.records()) / len(scenes)


def _cell(scene: Scene) -> Cell:
    task = scene.task
    return Cell(
        task.world, task.kind, task.index, task.seed, task.pool, task.size, scene.shifts, 0, task.id
    )


def oracle_loss(model: Any, scenes: Sequence[Scene], encoder: Encoder, batch: int) -> float:
    """The mean loss of what the oracle says in the scenes, in nats per token.

    Args:
        model: with our loss (`toolshift.train.loss`).
        scenes: that the oracle is asked about.
        encoder: of the model.
        batch: rows in one forward pass.

    Returns:
        Nats per token, each token weighed as in training.
    """
    examples = encode_rows([row for scene in scenes for row in expert_rows(scene)], encoder)
    total = weight = 0.0
    with torch.inference_mode():
        for begin in range(0, len(examples), batch):
            inputs = collate(examples[begin : begin + batch])
            inputs.pop("tokens")
            inputs["input_ids"] = inputs["input_ids"].to(model.device)
            inputs["weights"] = inputs["weights"].to(model.device)
            total += model(**inputs).item()
            weight += inputs["weights"].sum().item()
    return total / weight


@contextmanager
def decoding(model: Any) -> Iterator[Any]:
    """The model without its adapter's wrapper, ready to decode, and afterwards as it was."""
    inner = model.get_base_model() if hasattr(model, "get_base_model") else model
    attention, training = inner.config._attn_implementation, model.training
    model.eval()
    inner.set_attn_implementation("sdpa")  # what the decoder asks for before it sets its own
    try:
        yield inner
    finally:
        inner.set_attn_implementation(attention)
        model.train(training)
