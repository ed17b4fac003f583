"""DAgger: the model acts, and where it has failed the oracle goes on; only the oracle is learned.

Trajectories of an expert never come into the states that a model's own mistakes lead to. So a model
that was trained on them is let act in shifted scenes of the training pool. Where it fails, its
first turns are made again in a fresh episode, up to the failure and a few of its repetitions, and
the oracle goes on from there to the right end. The model's turns are context, the oracle's are
learned. After S. Ross, G. Gordon and D. Bagnell (2011), A Reduction of Imitation Learning and
Structured Prediction to No-Regret Online Learning; here the model acts up to its failure.

There each round trains anew on all trajectories so far (`aggregate`). Without that, a round trains
the last one's model on, with what is new alone: cheaper, and the model forgets what it could do
(`studies/decisive/NOTES.md`).
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

import msgspec

from toolshift.agents.local import LocalAgent
from toolshift.core import seed as seeds
from toolshift.core.calls import Call, ToolCall
from toolshift.core.errors import UsageError
from toolshift.core.files import write
from toolshift.core.message import Reply
from toolshift.core.scene import Scene
from toolshift.core.solver import Untraceable
from toolshift.core.tool import JSON, Result
from toolshift.episode.budget import Budget
from toolshift.episode.episode import Episode, Over, messages
from toolshift.episode.grade import grade
from toolshift.episode.oracle import EpisodeBackend, OracleAgent
from toolshift.lm.bases import BASES
from toolshift.lm.checkpoint import training_record
from toolshift.train.callbacks import checkpoints
from toolshift.train.data import make_rows, rows_of
from toolshift.train.model import find_base
from toolshift.train.presets import Settings
from toolshift.train.record import changed_since
from toolshift.train.rows import Row
from toolshift.train.scenes import Mix, draws
from toolshift.train.settings import processes
from toolshift.train.sft import train as train_sft
from toolshift_lab.former_families import as_trained

SHARE = 0.4
"""The share of all trajectories that the rounds have together."""
MAX_REPEATED = 2
"""Turns of the model that are kept after its first failure, at most."""
PATIENCE = 3
"""Scenes that are played for each trajectory that is wanted, at most."""
ROWS = "rows.jsonl"


class Round(msgspec.Struct, frozen=True):
    """What a round was made of.

    Attributes:
        scenes: that the model has played.
        passed: of these.
        continued: failures from which the oracle has reached the right end.
        filled: trajectories of the mix, where failures were too few.
    """

    scenes: int
    passed: int
    continued: int
    filled: int


def train(
    mix: Mix, count: int, rounds: int, settings: Settings, out: Path, *, aggregate: bool = False
) -> Path:
    """Trains on trajectories of the oracle, and then in rounds on what it makes of failures.

    What is done is kept in `round-0` and so on beside `out`, and gone on from.
    """
    if processes() > 1:
        raise UsageError(
            "DAgger plays scenes between its fits, in one process: train it without "
            "`accelerate launch` or --launch"
        )
    each = round(count * SHARE / rounds) if rounds else 0
    if rounds < 1 or each < 1 or not mix.alpha:
        raise UsageError(
            f"DAgger takes at least 1 round of at least 1 trajectory in shifted scenes, not "
            f"{rounds} rounds for {count} trajectories at alpha {mix.alpha:g}"
        )
    first = count - each * rounds
    told: dict[str, Any] = {"mix": msgspec.to_builtins(mix), "count": count, "rounds": rounds}
    told.update({"aggregate": True} if aggregate else {})
    rows = make_rows(as_trained(mix), first)
    before = _fit(rows, settings, out.parent / "round-0", {**told, "round": 0})
    for number in range(1, rounds + 1):
        made, found = collected(mix, each, number, settings, before, out.parent / f"round-{number}")
        last = number == rounds
        start = {"model": str(before)} if settings.full else {"adapter": str(before)}
        rows = [*rows, *made] if aggregate else made
        before = _fit(
            rows,
            settings if aggregate else msgspec.structs.replace(settings, **start),
            out if last else out.parent / f"round-{number}" / "model",
            {**told, "round": number, **msgspec.to_builtins(found)},
        )
    return out


def _fit(rows: Sequence[Row], settings: Settings, out: Path, told: dict[str, Any]) -> Path:
    """One fit, as far as it is not done."""
    found = training_record(out)
    if found:
        changed = changed_since(found, settings, told)
        if changed:
            raise _of_another(out, ", ".join(changed))
    else:
        if out.exists() and not checkpoints(out):
            shutil.rmtree(out)  # it was broken off before its first checkpoint
        train_sft(rows, settings, out, resume=bool(checkpoints(out)), data=told)
    return out


def _of_another(place: Path, what: str) -> UsageError:
    return UsageError(
        f"{place} was made of something else ({what}): train in another folder, or delete the "
        "folders round-0 and so on beside it"
    )


def collected(
    mix: Mix, wanted: int, number: int, settings: Settings, model: Path, folder: Path
) -> tuple[list[Row], Round]:
    """The rows of a round: failures of the model that the oracle has put right."""
    file, of = folder / ROWS, _mark(mix, wanted, model)
    if file.exists():
        head, *lines = file.read_bytes().splitlines()
        rows: list[Row] = [msgspec.json.decode(line) for line in lines]
        kept = msgspec.json.decode(head, type=_Head)
        if kept.of not in ("", of):
            raise _of_another(file, "another mix, number of trajectories or model")
        return rows, msgspec.json.decode(head, type=Round)
    agent = _agent(settings, model)
    apart = msgspec.structs.replace(
        as_trained(mix),
        alpha=1.0,
        share=1,
        slips=0.0,
        seed=seeds.derive(mix.seed, "dagger", number) % 10**6,
    )
    rows, played, passed, put_right = [], 0, 0, 0
    while put_right < wanted and played < PATIENCE * wanted:
        some = list(draws(apart, min(agent.batch, PATIENCE * wanted - played), played))
        played += len(some)
        for scene, replies in zip(some, act(agent, some), strict=True):
            found = corrected(scene, replies)
            passed += found is None
            if found and put_right < wanted:
                put_right += 1
                rows += found
    agent.release()
    left = wanted - put_right
    if left:
        rows += make_rows(as_trained(mix), left, begin=number * 100_000)
    told = Round(played, passed, put_right, left)
    folder.mkdir(parents=True, exist_ok=True)
    first = {**msgspec.to_builtins(told), "of": of}
    write(file, b"\n".join(JSON.encode(each) for each in (first, *rows)) + b"\n")
    return rows, told


class _Head(msgspec.Struct):
    """What the rows of a round were made of; "" where that was not noted yet."""

    of: str = ""


def _mark(mix: Mix, wanted: int, model: Path) -> str:
    """A hash of what decides the rows of a round."""
    digest = sha256(JSON.encode([msgspec.to_builtins(mix), wanted]))
    for file in sorted(model.glob("*.safetensors")):
        with file.open("rb") as stream:
            digest.update(file_digest(stream, "sha256").digest())
    return digest.hexdigest()[:16]


def _agent(settings: Settings, model: Path) -> LocalAgent:
    """The model of a round, that decodes greedily."""
    if settings.full:
        return LocalAgent(model, layout=settings.layout)
    known = settings.model in BASES
    base = settings.model if known else find_base(settings).directory
    return LocalAgent(base, adapter=model, layout=settings.layout)


def act(agent: Any, scenes: Sequence[Scene]) -> list[list[Reply]]:
    """Lets an agent play scenes, all at once."""
    episodes = [Episode(scene, Budget.of(scene, repeats=MAX_REPEATED + 1)) for scene in scenes]
    said: list[list[Reply]] = [[] for _ in scenes]
    while going := [n for n, episode in enumerate(episodes) if not episode.end]:
        replies = agent.reply_batch([episodes[n].observation for n in going])
        for n, reply in zip(going, replies, strict=True):
            said[n].append(reply)
            episodes[n].take(reply)
    return said


def corrected(scene: Scene, replies: Sequence[Reply]) -> list[Row] | None:
    """The rows in which the oracle goes on from where a model has failed.

    Of the turns up to `MAX_REPEATED` after the first failed one, as many are kept as the oracle
    can still reach the right end from.
    """
    whole = _made_again(scene, replies)
    if whole.end and grade(whole).passed:
        return None
    wrong = [step.turn for step in whole.steps if step.kind == "call" and not step.ok]
    own = [s.turn for s in whole.steps if s.kind == "call" and not (s.ok or s.provoked)]
    end = len(replies) - 1  # the last reply has ended the episode
    kept = min(end, min(own or wrong or [end]) + 1 + MAX_REPEATED)
    for turns in range(kept, -1, -1):
        episode = _made_again(scene, replies[:turns])
        if episode.end or episode.turn != turns:
            continue
        rows = _continued(episode)
        if rows:
            return rows if turns else []
    return []


class _Watched(Episode):
    """An episode that remembers the tools of each turn, and what came back from each call."""

    def __init__(self, scene: Scene) -> None:
        oracle = len(scene.calls) + len(scene.rehearsal)
        super().__init__(scene, Budget(24 + oracle, 30 + oracle))
        self.views = [self.tools]
        self.got: dict[bytes, tuple[str, Result]] = {}

    def next_turn(self) -> None:
        super().next_turn()
        self.views.append(self.tools)

    def _call(self, call: Call, said: str) -> tuple[str, Result]:
        text, result = super()._call(call, said)
        if result.ok and result.hint is None and isinstance(call, ToolCall):
            self.got[_key(call.name, call.arguments)] = (text, result)
        return text, result


def _key(name: str, arguments: dict[str, Any]) -> bytes:
    return JSON.encode([name, dict(sorted(arguments.items()))])


def _made_again(scene: Scene, replies: Sequence[Reply]) -> _Watched:
    """A fresh episode in which a model's turns were made again."""
    episode = _Watched(scene)
    for reply in replies:
        if not episode.end:
            episode.take(reply)
    return episode


class _GoesOn(EpisodeBackend):
    """Makes no call again that has brought its result already: what was shown is known."""

    def call(self, name: str, arguments: dict[str, Any]) -> tuple[str, Result]:
        episode: Any = self.episode
        known = episode.got.pop(_key(name, arguments), None)
        return known or super().call(name, arguments)


class _Oracle(OracleAgent):
    def work(self, episode: Episode, backend: EpisodeBackend) -> None:
        super().work(episode, _GoesOn(episode, backend.strict))


def _continued(episode: _Watched) -> list[Row]:
    """The rows of an episode that the oracle has brought to its right end; [] where it cannot."""
    turns = episode.turn
    try:
        _Oracle().play(episode)
    except (Untraceable, Over):
        return []
    if not grade(episode).passed:
        return []
    said = messages(episode.scene, episode.steps)
    spoken = sum(message["role"] == "assistant" for message in said)
    if spoken != len({step.turn for step in episode.steps}):
        return []  # a turn without a step: its words would be taken for those of the next
    rows = rows_of(episode.scene, said, episode.steps, episode.views, set(range(turns)))
    return [row for row in rows if any(_learned(message) for message in row["messages"])]


def _learned(message: dict[str, Any]) -> bool:
    return message["role"] == "assistant" and bool(message.get("weight", 1))
