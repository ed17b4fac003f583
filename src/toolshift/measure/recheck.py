"""Replays a sample of a run: do its stored verdicts hold?

The recorded calls, questions and endings are made in fresh scenes, so no agent and no model is
needed. What the scene answers is compared word for word, and the verdict with the stored one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from toolshift.core import seed as seeds
from toolshift.core.calls import Call, MalformedCall, ToolCall
from toolshift.core.errors import UsageError
from toolshift.core.message import PROTOCOL_NAMES
from toolshift.core.scene import Scene
from toolshift.core.step import Step
from toolshift.episode.budget import Budget
from toolshift.episode.episode import CONTEXT, Episode, Over
from toolshift.episode.grade import Grade, grade
from toolshift.measure.compare import shifts_as_they_were
from toolshift.runs.cell import build
from toolshift.runs.run_folder import Record, RunFolder

Watch = Callable[[int, int], None]
LIVE = "their tools are real, and would be called again"
VOID = "they are void, so there is no verdict on the agent"


class Difference(msgspec.Struct, frozen=True):
    """An episode whose replay differs from what is stored.

    Attributes:
        what: "verdict", or "trace" where the verdict is the same.
        step: the first step that differs; None where only the verdict does.
        stored: what the run says there, and `again` what came now.
    """

    episode: str
    what: Literal["verdict", "trace"]
    step: int | None
    stored: str
    again: str
    before: Grade
    after: Grade


class Recheck(msgspec.Struct, frozen=True):
    """The result of replaying a sample.

    Attributes:
        episodes: finished episodes of the run.
        left_out: those that cannot be played again, by reason.
        played: how many of the rest were played again; they are drawn with `seed`.
        differ: those that did not come out as they are stored.
    """

    episodes: int
    left_out: dict[str, int]
    played: int
    seed: int
    differ: list[Difference]

    @property
    def holds(self) -> bool:
        """Whether the replay of every episode matched what is stored."""
        return not self.differ


def recheck(
    folder: RunFolder, sample: int = 100, seed: int = 0, watch: Watch = lambda done, total: None
) -> Recheck:
    """Plays a sample of a run again."""
    if sample < 1:
        raise UsageError(f"--sample must be at least 1, not {sample}")
    folder.require_code()
    shifts_as_they_were(folder)
    reasons: Counter[str] = Counter()
    names = []
    for record in folder.records():
        reason = not_playable(folder, record)
        reasons[reason] += 1
        if not reason:
            names.append(record.episode)
    if not names:
        counts = "; ".join(f"{number} episodes: {why}" for why, number in reasons.items() if why)
        raise UsageError(f"{folder.path}: nothing can be played again ({counts or 'no episode'})")
    drawn = set(seeds.rng(seed, folder.manifest.plan_hash, "recheck").sample(sorted(names),
                min(sample, len(names))))  # fmt: skip
    differ, done = [], 0
    for record in folder.records():
        if record.episode in drawn:
            difference = played_again(folder, record)
            differ += [difference] if difference else []
            done += 1
            watch(done, len(drawn))
    left_out = {why: number for why, number in reasons.items() if why}
    return Recheck(reasons.total(), left_out, len(drawn), seed, differ)


def not_playable(folder: RunFolder, record: Record) -> str:
    """Why an episode cannot be played again; "" where it can."""
    if record.grade.void:
        return VOID
    scene = build(folder.cell(record))
    return LIVE if type(scene).open_live is not Scene.open_live else ""


def played_again(folder: RunFolder, record: Record) -> Difference | None:
    """Plays one episode again, call by call."""
    cell = folder.cell(record)
    again = play_again(build(cell), record.steps, cell.trial, folder.manifest.selection.max_repeats)
    after = grade(again)
    place = _first_difference(record.steps, again.steps)
    if place is None and after == record.grade:
        return None
    return Difference(
        episode=record.episode,
        what="trace" if after == record.grade else "verdict",
        step=place,
        stored=_text(record.steps, place),
        again=_text(again.steps, place),
        before=record.grade,
        after=after,
    )


def play_again(
    scene: Scene, steps: Sequence[Step], trial: int = 0, max_repeats: int = 0
) -> Episode:
    """Makes the recorded calls, questions and endings in a fresh scene."""
    episode = Episode(scene, Budget.of(scene, max_repeats), trial, live=False)
    try:
        for step in steps:
            while episode.turn < step.turn and not episode.end:
                episode.next_turn()
            if episode.end:
                break
            _act(episode, step)
    except Over:
        pass
    return episode


def _act(episode: Episode, step: Step) -> None:
    """Repeats the agent's action of a step."""
    if step.kind == "call":
        known = step.name not in PROTOCOL_NAMES or step.error != "unknown_tool"
        episode.take_call(_call(step), step.said, protocol=known)
    elif step.kind == "ask":
        episode.ask(step.said, step.prose)
    elif step.kind == "answer":
        episode.answer(step.said, step.prose)
    elif step.kind == "refuse":
        episode.refuse(step.name, step.said, step.prose, step.through)
    elif step.kind == "budget" and step.said.startswith(f"{CONTEXT}: "):
        episode.overflow(step.said.removeprefix(f"{CONTEXT}: "))
    elif step.kind == "budget":  # a call too many, which a trace does not keep
        episode.call("", {})
    else:
        episode.crash(step.said)
    if step.judge:
        episode.steps[-1] = msgspec.structs.replace(episode.steps[-1], judge=step.judge)


def _call(step: Step) -> Call:
    if isinstance(step.arguments, str):
        return MalformedCall(step.name, step.arguments)
    return ToolCall(step.name, step.arguments)


def _first_difference(stored: Sequence[Step], again: Sequence[Step]) -> int | None:
    for place, (one, other) in enumerate(zip(stored, again, strict=False)):
        if _plain(one) != _plain(other):
            return place
    return min(len(stored), len(again)) if len(stored) != len(again) else None


def _plain(step: Step) -> bytes:
    """A step as it is stored: a list and a tuple are the same there.

    What came beside the agent's message is the agent's own, and nothing that is played again.
    """
    return msgspec.json.encode(msgspec.structs.replace(step, call_id="", extra={}, beside={}))


def _text(steps: Sequence[Step], place: int | None) -> str:
    if place is None:
        return ""
    return _plain(steps[place]).decode() if place < len(steps) else "(no further step)"
