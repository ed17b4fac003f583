"""Which scenes a model passes at times: from the others GRPO learns nothing.

    asked = preset("small", adapter="runs/start")
    found = screen(Mix(), asked, Path("runs/screen.jsonl"), count=160)
    train(Mix(), msgspec.structs.replace(asked, scenes=chosen(found, 1, 3)), Path("runs/rl"))

Looked at beforehand, scenes need not be drawn again within a step, where each further draw is a
round of its own and as long as its slowest episode.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from toolshift.core import seed as seeds
from toolshift.core.errors import UsageError
from toolshift.core.files import lines
from toolshift.core.tool import JSON
from toolshift.episode.grade import grade
from toolshift.lm.inference import load_model, stop_tokens, use_threads
from toolshift.train import scenes
from toolshift.train.generation import Sampler
from toolshift.train.grpo_settings import GrpoSettings
from toolshift.train.grpo_trainer import limits_of
from toolshift.train.model import Base, find_base
from toolshift.train.rollout import Backend, ConversationEncoder, Play, roll_out
from toolshift.train.scenes import Mix, draw


class Tried(msgspec.Struct, frozen=True):
    """A scene of a mix, by its number, and how many of its sampled episodes passed."""

    scene: int
    passed: int
    samples: int


def screen(
    mix: Mix,
    settings: GrpoSettings,
    file: Path,
    count: int,
    samples: int = 4,
    *,
    greedy: bool = False,
) -> list[Tried]:
    """Plays the first scenes of a mix, each several times, as a run with these settings would.

    Each scene is added to the file when it has been played, and what is in the file is not played
    again, so that a screen can be broken off. Greedily, one episode of each says all.
    """
    scenes.check(mix)
    use_threads(settings.threads)
    numbers = range(count)
    there = {each.scene: each for each in lines(file, Tried)} if file.exists() else {}
    if any(each.samples != samples for each in there.values()):
        raise UsageError(f"{file} is of a screen with other samples: name another file")
    left = [number for number in numbers if number not in there]
    if left:
        backend, scribe = _voice(settings, find_base(settings))
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("ab") as out:
            for each in _tried(mix, settings, left, samples, greedy, backend, scribe):
                out.write(JSON.encode(each) + b"\n")
                out.flush()
                there[each.scene] = each
    return [there[number] for number in numbers]


def chosen(found: Iterable[Tried], least: int, most: int) -> tuple[int, ...]:
    """The numbers of the scenes of which so many samples passed."""
    return tuple(each.scene for each in found if least <= each.passed <= most)


def _voice(settings: GrpoSettings, base: Base) -> tuple[Backend, ConversationEncoder]:
    model = load_model(base.directory, settings.precision, settings.adapter or None)
    stop = stop_tokens(base.tokenizer, model)
    scribe = ConversationEncoder(base.tokenizer, settings.layout, base.tool_role, stop)
    return Sampler(model, stop), scribe


def _tried(
    mix: Mix,
    settings: GrpoSettings,
    numbers: list[int],
    samples: int,
    greedy: bool,
    backend: Backend,
    scribe: ConversationEncoder,
) -> Iterator[Tried]:
    """Plays as many scenes together as one batch of rollouts holds."""
    size = max(1, settings.rollout_batch // samples)
    for at in range(0, len(numbers), size):
        some = numbers[at : at + size]
        plays = [
            Play(scene, seeds.derive(settings.seed, "screen", number, sample))
            for number in some
            for scene in [draw(mix, number)]
            for sample in range(samples)
        ]
        temperature = 0.0 if greedy else settings.temperature
        played = roll_out(backend, scribe, plays, temperature, limits_of(settings))
        passed = [grade(each.episode).passed for each in played]
        for place, number in enumerate(some):
            yield Tried(number, sum(passed[place * samples : (place + 1) * samples]), samples)
